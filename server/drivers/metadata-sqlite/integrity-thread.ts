/** Checks the whole database, and posts the damage of its pages and indexes; null: none. */
import { parentPort, workerData } from 'node:worker_threads';
import { openReader } from './connection.ts';

const database = openReader(workerData as string);
try {
  const found = database.prepare('PRAGMA integrity_check(5)').pluck().all().join('; ');
  parentPort?.postMessage(found === 'ok' ? null : found);
} catch (error) {
  parentPort?.postMessage((error as Error).message);
} finally {
  database.close();
}
