/** Starts other programs. A program that cannot be started is an error to its caller, and no more. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/**
 * As Node's spawn, but resolves once the program runs, with every stream of its `stdio`, and rejects when it
 * cannot be run: it is missing (`ENOENT`), or this process may open no more files (`EMFILE`). Then Node gives
 * a child without streams, and tells the error only to who listens by then. A later error, for example of
 * the signal that ends the program, needs no listener: `exit` and `close` follow it.
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
