/**
 * The simple way to store a small object: its own file, fdatasync, and an fsync of the directory. Threads
 * with synchronous calls, because they were faster than fs/promises at the same concurrency.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, fsyncSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { childInput } from '../child.ts';

interface Input {
  readonly directory: string;
  readonly seconds: number;
  readonly writers: number;
  readonly bytes: number;
}

async function runAll(input: Input): Promise<void> {
  mkdirSync(input.directory);
  const script = new URL(import.meta.url);
  const rates = await Promise.all(
    Array.from({ length: input.writers }, async (_, writer) => {
      const [rate] = await once(new Worker(script, { workerData: { ...input, writer } }), 'message');
      return rate as number;
    }),
  );
  rmSync(input.directory, { recursive: true });
  console.log(JSON.stringify({ perSecond: rates.reduce((sum, rate) => sum + rate, 0) }));
}

/** Objects per second of this thread. */
function writeFiles({ directory, seconds, bytes, writer }: Input & { writer: number }): number {
  const content = randomBytes(bytes);
  const parent = openSync(directory, 'r');
  const began = performance.now();
  const end = began + seconds * 1000;
  let written = 0;
  while (performance.now() < end) {
    const file = openSync(join(directory, `${writer}-${written}`), 'wx');
    writeSync(file, content);
    fdatasyncSync(file);
    closeSync(file);
    fsyncSync(parent);
    written++;
  }
  closeSync(parent);
  return (written * 1000) / (performance.now() - began);
}

if (isMainThread) await runAll(childInput<Input>());
else parentPort?.postMessage(writeFiles(workerData));
