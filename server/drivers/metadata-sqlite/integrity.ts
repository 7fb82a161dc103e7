/** Looks for damage in the whole database, on a thread of its own. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/**
 * What is wrong with the database in `directory`, as SQLite says it; null: its pages are sound, and its
 * indexes agree with its rows. A bit that flipped in a value that no index has is not seen.
 */
export async function damageIn(directory: string): Promise<string | null> {
  const url = new URL('./integrity-thread.ts', import.meta.url);
  const [found] = await once(new Worker(url, { workerData: directory, execArgv: [] }), 'message');
  return found;
}
