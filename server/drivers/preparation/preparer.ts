/** Runs scripts/prepare.js beside the server while a part of this host is missing. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../../platform/program-files.ts';

/** The receiver of its lines. */
export type PreparingOutput = 'stdout' | 'stderr' | ((line: string) => void);

const PROGRAM = join(ROOT, 'scripts/prepare.js');

/**
 * Starts it; it prints a line to our `output` when a part is ready, or why it is not. `words`: its
 * arguments. Returns the function that ends it. Does nothing if the installation lacks the program.
 */
export function startPreparing(words: readonly string[], output: PreparingOutput): () => void {
  if (!existsSync(PROGRAM)) return () => {};
  // The program's input ends when Cloudlet ends, however it ends.
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, ...words], {
    cwd: ROOT,
    stdio: typeof output === 'string' ? ['pipe', process[output], 'inherit'] : 'pipe',
  });
  if (typeof output !== 'string')
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface({ input: stream }).on('line', output);
  child.on('error', (error) => console.error(`  ${PROGRAM} could not be started: ${error.message}`));
  child.unref();
  return () => void child.kill();
}
