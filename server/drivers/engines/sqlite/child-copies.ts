/** Copies of an open database as files, and checks of an uploaded one. */
import { rmSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { DiskFull, hostSpace, isFull } from '../../../../libs/sqlite/index.ts';
import type { LeftOut } from '../../../databases/left-out.ts';
import type { Handler } from '../../engine-children/child-call.ts';
import { makeOfText, RefusedText } from './dumps/sql-text.ts';
import type { TenantConnections } from './tenant-connections.ts';
import { numberOf, openTenantFile } from './tenant-file.ts';

/** Exceeds every file. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Copies the database into the file `target`, consistently while others write. All pages are copied in one
 * step within one read transaction, because a backup in several steps restarts at every write. Runs on
 * another thread.
 */
export function copyHandler(tenant: TenantConnections, target: string): Handler {
  // Leftover of a killed child.
  removeCopy(target);
  return async () => {
    removeCopy(target);
    const database = tenant.openFor('single', true);
    try {
      hostSpace.assertSpaceFor(sizeOf(database));
      await backup(database, target, { rate: ALL_PAGES });
      asOneFile(target);
      return { head: {} };
    } catch (error) {
      removeCopy(target);
      throw isFull(error) ? new DiskFull(error) : error;
    } finally {
      tenant.close(database);
    }
  };
}

/** File size after a checkpoint, bytes. */
export function sizeOf(database: DatabaseSync): number {
  return numberOf(database, 'PRAGMA page_count') * numberOf(database, 'PRAGMA page_size');
}

/** Includes the files of an unfinished copy. */
function removeCopy(path: string): void {
  for (const end of ['', '-journal', '-wal', '-shm']) rmSync(path + end, { force: true });
}

/** Some programs cannot open SQLite files in WAL mode, which needs files beside it. */
function asOneFile(path: string): void {
  const copy = new DatabaseSync(path, { defensive: true, limits: { attach: 0 } });
  try {
    copy.exec('PRAGMA trusted_schema = OFF; PRAGMA journal_mode = DELETE');
  } finally {
    copy.close();
  }
}

/**
 * Checks an untrusted file for damage, prepares it for use and syncs it. With the SQL text `text`, first
 * creates the file from the text, or adds the text to it (`isAdded`). The answer's `fault` is the reason for
 * refusing the file; null: usable.
 */
export const checkHandler: Handler = async ({ head }) => {
  const sizeLimit = { sizeLimitBytes: Number(head.sizeLimitBytes), mayGrow: true };
  let leftOut: Pick<LeftOut, 'notes' | 'count'> | undefined;
  try {
    const how = { sizeLimit, isAdded: head.isAdded === true, lenient: head.lenient === true };
    if (typeof head.text === 'string') {
      const { notes, count } = await makeOfText(head.text, String(head.file), how);
      leftOut = { notes, count };
    }
  } catch (error) {
    if (isFull(error instanceof RefusedText ? (error.cause ?? error) : error)) {
      if (hostSpace.limitFor(0, sizeLimit.sizeLimitBytes) < sizeLimit.sizeLimitBytes)
        throw new DiskFull(error);
      return { head: { fault: 'the dump is larger than the size limit of the database' } };
    }
    if (error instanceof RefusedText) return { head: { fault: error.message } };
    throw error;
  }
  const database = openTenantFile(String(head.file), {
    ...sizeLimit,
    queryOnly: false,
    sessions: 'single',
  });
  try {
    return { head: { fault: faultIn(database), leftOut } };
  } finally {
    database.close();
  }
};

function faultIn(database: DatabaseSync): string | null {
  const [damage] = database.prepare('PRAGMA integrity_check(1)').all();
  const found = String(Object.values(damage ?? {})[0]);
  if (found !== 'ok') return `the file is damaged: ${found}`;
  const [orphan] = database.prepare('PRAGMA foreign_key_check').all();
  if (orphan === undefined) return null;
  return `a row of the table ${String(orphan.table)} refers to a missing row of ${String(orphan.parent)}`;
}
