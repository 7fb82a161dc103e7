/** Copies the database in one step: one moment's state, not restarted by commits meanwhile. */
import { workerData } from 'node:worker_threads';
import { openReader } from './connection.ts';
import type { SnapshotInput } from './sqlite-snapshots.ts';

const ALL_PAGES = 0x7fff_ffff;

const { directory, to } = workerData as SnapshotInput;
const database = openReader(directory);
try {
  await database.backup(to, { progress: () => ALL_PAGES });
} finally {
  database.close();
}
