/** One thread of SqliteThreads: runs one module's `run` on a connection of its own, answers, and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Reads } from '../../metadata/metadata.ts';
import { openReader } from './connection.ts';
import { SqliteReads } from './sqlite-reads.ts';
import type { ThreadInput } from './sqlite-threads.ts';

interface ThreadModule {
  run(reads: Reads, input: unknown): unknown;
}

const { directory, module, input } = workerData as ThreadInput;
const { run } = (await import(module)) as ThreadModule;
const database = openReader(directory);
try {
  parentPort?.postMessage(await run(new SqliteReads(database), input));
} finally {
  database.close();
}
