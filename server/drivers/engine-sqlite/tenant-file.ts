/** Connections to a tenant's file, none of which trusts what is in the file or in a statement. */
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Room } from '../engine-children/child-call.ts';
import { hostRoom } from '../engine-children/host-room.ts';
import { authorizer, type Sessions } from './authorizer.ts';

const PAGE_BYTES = 4096;
/** Kept of the log once it was written back, bytes. */
const LOG_KEPT_BYTES = 8 * 2 ** 20;
/** SQLite's own are a thousand times what a child has as memory. */
const LIMITS = {
  attach: 0,
  length: 32 * 2 ** 20,
  sqlLength: 16 * 2 ** 20,
  vdbeOp: 10_000_000,
  triggerDepth: 100,
};

export interface OpenOptions extends Room {
  /** Nothing can be written through it. */
  readonly queryOnly: boolean;
  readonly sessions: Sessions;
}

/**
 * Opens the file at `path`, which must be there and may be empty, in WAL mode. It never waits for a lock:
 * what finds it taken fails with SQLITE_BUSY. The answer to a write must wait for DurableLog: a commit is
 * whole after a crash of the child, but may be gone after a power cut until then.
 */
export function openTenantFile(path: string, options: OpenOptions): DatabaseSync {
  const url = pathToFileURL(path);
  // Without it SQLite would make a file that was lost anew, empty.
  url.searchParams.set('mode', 'rw');
  const database = new DatabaseSync(url, {
    timeout: 0,
    allowExtension: false,
    defensive: true,
    enableForeignKeyConstraints: true,
    // As the sqlite3 program and the drivers have it, and so the schemas that were made with them.
    enableDoubleQuotedStringLiterals: true,
    limits: LIMITS,
  });
  try {
    // `trusted_schema` comes before anything reads a schema.
    database.exec(`PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;
      PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;
      PRAGMA journal_size_limit = ${LOG_KEPT_BYTES};`);
    // They write also what is there already, and fail while another connection writes.
    if (numberOf(database, 'PRAGMA page_count') === 0) {
      database.exec(`PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL`);
    }
    database.exec('PRAGMA journal_mode = WAL');
    limitSize(database, options);
    if (options.queryOnly) database.exec('PRAGMA query_only = ON');
    database.setAuthorizer(authorizer(options.sessions));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Takes the room into force on a connection that is open; beyond it a write fails with SQLITE_FULL. */
export function setRoom(database: DatabaseSync, room: Room, sessions: Sessions): void {
  database.setAuthorizer(null);
  try {
    limitSize(database, room);
  } finally {
    database.setAuthorizer(authorizer(sessions));
  }
}

function limitSize(database: DatabaseSync, { sizeLimitBytes, mayGrow }: Room): void {
  const pageBytes = numberOf(database, 'PRAGMA page_size');
  const sizeBytes = numberOf(database, 'PRAGMA page_count') * pageBytes;
  // SQLite never goes below the pages there are.
  const limit = mayGrow ? hostRoom.limitFor(sizeBytes, sizeLimitBytes) : 0;
  const pages = Math.max(1, Math.floor(limit / pageBytes));
  database.exec(`PRAGMA max_page_count = ${pages}`);
}

/** The one number that a statement gives. */
export function numberOf(database: DatabaseSync, sql: string): number {
  return Number(Object.values(database.prepare(sql).get() ?? {})[0]);
}
