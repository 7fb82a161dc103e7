/** Progress and prompts of the commands at a terminal. */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { readRecoveryKey } from '../recovery/repository/recovery-keys.ts';

/** A line that is drawn again on a terminal; elsewhere a line for each tenth. */
export class Progress {
  #shown = -1;

  /** `about`: shown after it. */
  show(percent: number, about = ''): void {
    const isTerminal = process.stdout.isTTY === true;
    const step = isTerminal ? Math.floor(percent) : Math.floor(percent / 10) * 10;
    if (step === this.#shown) return;
    this.#shown = step;
    if (!isTerminal) console.log(`${step} % ${about}`.trimEnd());
    else {
      const filled = Math.floor(step / 4);
      process.stdout.write(`\r[${'='.repeat(filled)}${' '.repeat(25 - filled)}] ${step} % ${about}\x1b[K`);
    }
  }

  end(): void {
    if (process.stdout.isTTY === true && this.#shown >= 0) process.stdout.write('\r\x1b[K');
  }
}

/** From the file, or typed at the terminal. */
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
