/** Text files of users: policies, rules, scripts. */
import { readFileSync } from 'node:fs';
import { UsageError } from './failures.ts';

/**
 * The text of a file, `-`: of standard input, without the byte order mark that some editors add.
 * Throws UsageError for an unreadable file, and for UTF-16.
 */
export function readTextFile(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    throw new UsageError(`${path} is not readable: ${(error as Error).message}`);
  }
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    throw new UsageError(`${path} is UTF-16, as PowerShell writes with ">"`, 'save it as UTF-8');
  }
  return new TextDecoder().decode(bytes);
}

/** The value given: `@FILE` reads it from that file, `@-` from standard input. */
export function givenText(value: string): string {
  return value.startsWith('@') ? readTextFile(value.slice(1)) : value;
}
