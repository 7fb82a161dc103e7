/** Questions at the terminal, and secrets typed without echo. */
import { createInterface } from 'node:readline/promises';
import { isTerminal } from './environment.ts';
import { ClientError, EXIT, UsageError } from './failures.ts';
import { printable } from './output.ts';
import { readTextFile } from './text-file.ts';

const [ENTER, LINE_FEED, INTERRUPT, END, BACKSPACE, DELETE] = [
  '\r',
  '\n',
  '\u0003',
  '\u0004',
  '\b',
  '\u007f',
];

/**
 * Asks for a secret without showing the input. Throws UsageError without a terminal, and
 * ClientError if interrupted.
 */
export function askSecret(question: string): Promise<string> {
  const { stdin } = process;
  if (!isTerminal(stdin))
    throw new UsageError(
      'cannot ask for a secret: no terminal',
      'Use --key -, --key-file or --password-file',
    );
  // First, because the terminal would echo text pasted earlier.
  stdin.setRawMode(true).setEncoding('utf8').resume();
  process.stderr.write(question);
  return new Promise((resolve, reject) => {
    let typed = '';
    const end = () => {
      stdin.setRawMode(false).pause().off('data', take);
      process.stderr.write('\n');
    };
    const take = (text: string) => {
      for (const character of text) {
        if (character === ENTER || character === LINE_FEED || character === END) {
          end();
          resolve(typed.trim());
          return;
        }
        if (character === INTERRUPT) {
          end();
          reject(new ClientError('interrupted', EXIT.interrupted));
          return;
        }
        if (character === BACKSPACE || character === DELETE) typed = typed.slice(0, -1);
        else if (character >= ' ') typed += character;
      }
    };
    stdin.on('data', take);
  });
}

/** True for `y` and `yes`. False without a terminal. Throws ClientError at Ctrl-C. */
export async function confirm(question: string): Promise<boolean> {
  if (!isTerminal(process.stdin)) return false;
  const asked = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asked.question(`${printable(question)} [y/N] `)).trim());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ABORT_ERR') throw error;
    process.stderr.write('\n');
    throw new ClientError('interrupted', EXIT.interrupted);
  } finally {
    asked.close();
  }
}

/** The first line of a file; `-`: of standard input. */
export function readSecret(path: string, kind: 'key' | 'password' = 'key'): string {
  const text = readTextFile(path);
  const [line = ''] = text.split('\n');
  if (line.trim() === '')
    throw new UsageError(`${path === '-' ? 'standard input' : path} contains no ${kind}`);
  return line.trim();
}
