/** Looks for damage in the whole database, on its own thread. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { programFile } from '../../platform/program-files.ts';

/**
 * SQLite's report on the database in `directory`; null: its pages are intact and its indexes match its rows.
 * A flipped bit in a value without an index is not detected.
 */
export async function damageIn(directory: string): Promise<string | null> {
  const file = programFile('drivers/metadata-sqlite/integrity-thread');
  const [found] = await once(new Worker(file, { workerData: directory, execArgv: [] }), 'message');
  return found;
}
