/** Starts other programs. A failed start rejects, and has no other effect. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/**
 * Like Node's spawn, but resolves once the program runs, with every stream of its `stdio`, and rejects if it
 * cannot start: it is missing (`ENOENT`), or this process has too many open files (`EMFILE`). Node then
 * returns a child without streams, and emits the error only to listeners attached by then. A later error, for
 * example of the signal that ends the program, needs no listener: `exit` and `close` follow it.
 */
export async function startProgram(
  program: string,
  words: readonly string[],
  options: SpawnOptions,
): Promise<ChildProcess> {
  const child = spawn(program, words, options);
  child.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  return child;
}
