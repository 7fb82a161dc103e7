/**
 * One process per data directory. The lock is a POSIX lock that SQLite holds on a separate file:
 * the kernel releases it with the process, so that a kill leaves nothing to clean up.
 */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { isCode } from '../platform/files.ts';

export interface DirectoryLock {
  release(): void;
}

/** Referenced so that the garbage collector does not close the connection and release the lock. */
const held = new Set<Database.Database>();

/** Acquires the lock, or throws immediately. `directory` must exist. */
export function lockDirectory(directory: string): DirectoryLock {
  const path = join(directory, 'lock');
  makePrivate(path);
  const database = new Database(path, { timeout: 0 });
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
  held.add(database);
  return {
    release: () => {
      held.delete(database);
      database.close();
    },
  };
}

/**
 * Creates the file, because SQLite gives its journal the same mode. An existing file is not opened, because
 * closing it would release the lock.
 */
function makePrivate(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    chmodSync(path, 0o600);
  }
}
