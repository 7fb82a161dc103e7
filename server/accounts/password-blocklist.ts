/** Passwords that everybody tries first: an operator's own list, off by default (contract §3). */
import { readFileSync, statSync } from 'node:fs';

/** As many lines as fit in it are kept in memory. */
const MAX_BYTES = 16 * 2 ** 20;

/** The form in which passwords are compared with the list. */
export function foldPassword(password: string): string {
  return password.normalize('NFC').toLowerCase();
}

/** One password a line, in UTF-8; empty path: none. Throws an Error of one line that names the file. */
export function readBlocklist(path: string): ReadonlySet<string> {
  if (path === '') return new Set();
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES / 2 ** 20} MiB`);
    const lines = new TextDecoder().decode(readFileSync(path)).split(/\r?\n/);
    return new Set(lines.filter((line) => line !== '').map(foldPassword));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`CLOUDLET_PASSWORD_BLOCKLIST: ${path} cannot be read: ${why}`, { cause });
  }
}
