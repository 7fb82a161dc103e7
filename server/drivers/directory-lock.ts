/**
 * One process per data directory. The lock is a POSIX lock that SQLite holds on a file of its own: the
 * kernel drops it with the process, so that a kill leaves nothing to clean up.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';

export interface DirectoryLock {
  release(): void;
}

/** Takes the lock or throws at once. `directory` must exist. */
export function lockDirectory(directory: string): DirectoryLock {
  const database = new Database(join(directory, 'lock'), { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) {
      throw new Error(
        `Another Cloudlet uses the data directory ${directory}: stop it, or set CLOUDLET_DATA_DIR`,
      );
    }
    throw error;
  }
  return { release: () => void database.close() };
}
