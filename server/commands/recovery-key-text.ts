/** Prompts of the terminal commands, such as for the recovery key when no cloud runs. */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { readRecoveryKey } from '../recovery/recovery-keys.ts';

/** From the file, or from who sits there. */
export async function givenRecoveryKey(file: string | undefined): Promise<Buffer> {
  if (file !== undefined) return readRecoveryKey(readFileSync(file, 'utf8'));
  const typed = await ask('Recovery key: ');
  if (typed === '') throw new Error('a recovery key is required: enter it, or pass a file with --key-file');
  return readRecoveryKey(typed);
}

/** Empty without a terminal. */
export async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return (await Promise.race([lines.question(question), ended])).trim();
  } finally {
    lines.close();
  }
}
