/** Looks for damage in the whole database, on a thread of its own. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/**
 * SQLite's report on the database in `directory`; null: its pages are intact and its indexes match its rows.
 * A flipped bit in a value without an index is not detected.
 */
export async function damageIn(directory: string): Promise<string | null> {
  const url = new URL('./integrity-thread.ts', import.meta.url);
  const [found] = await once(new Worker(url, { workerData: directory, execArgv: [] }), 'message');
  return found;
}
