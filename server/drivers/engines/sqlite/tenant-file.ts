/** Connections to a tenant's file; neither the file nor the statements are trusted. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { hostSpace } from '../../../../libs/sqlite/index.ts';
import type { SizeLimit } from '../../engine-children/child-call.ts';
import { authorizer, type Sessions } from './authorizer.ts';
import { asReplace, insertOf, isSchemaRow, partsOf, virtualTableOf } from './dumps/virtual-tables.ts';
import { harmless } from './harmless-pragmas.ts';
import { defineVectorFunctions, withVectorHint } from './vectors.ts';

export const PAGE_BYTES = 4096;
/** Size of the log file kept after a checkpoint, bytes. */
const LOG_KEPT_BYTES = 8 * 2 ** 20;
/** SQLite's defaults are a thousand times a child's memory. */
export const LIMITS = {
  attach: 0,
  length: 32 * 2 ** 20,
  sqlLength: 16 * 2 ** 20,
  vdbeOp: 10_000_000,
  triggerDepth: 100,
};

/** `.schema` of the sqlite3 program writes the parts of virtual tables, which exist once the table does. */
const MADE_IF_MISSING = /^\s*CREATE\s+TABLE\s+IF\s+NOT\s+EXISTS\s/i;
const RESERVED = /^object name reserved for internal use: (.+)$/;
const CHANGES_NOTHING = 'DROP TABLE IF EXISTS temp.cloudlet_nothing';

/** The exact line of `.dump` around virtual tables, which has no effect here; others are refused. */
const SCHEMA_SWITCH = /^\s*PRAGMA writable_schema=(?:ON|OFF)\s*;?\s*$/;
const NOT_MODIFIED = 'table sqlite_master may not be modified';

class TenantDatabase extends DatabaseSync {
  /** Virtual tables that `.dump` wrote as rows of the schema, in lower case: rows of their parts follow. */
  readonly #dumped = new Set<string>();
  /** Their parts, as far as known. */
  #parts: ReadonlyMap<string, string> = new Map();
  /** Its statements belong together, such as the lines of `.dump`. */
  isSession = false;

  override prepare(...[sql, options]: Parameters<DatabaseSync['prepare']>): StatementSync {
    try {
      return super.prepare(this.#isDumpedPart(sql) ? asReplace(sql) : harmless(sql), options);
    } catch (error) {
      const message = error instanceof Error ? error.message : '';
      const isPart = MADE_IF_MISSING.test(sql) && this.#hasPart(RESERVED.exec(message)?.[1]);
      if (isPart || (this.isSession && SCHEMA_SWITCH.test(sql)))
        return super.prepare(CHANGES_NOTHING, options);
      const created =
        this.isSession && message === NOT_MODIFIED && isSchemaRow(sql) ? virtualTableOf(sql) : undefined;
      if (created === undefined) throw withVectorHint(error);
      this.#dumped.add(created.name);
      // A file that is loaded may have the same parts. The authorizer still protects the schema.
      this.enableDefensive(false);
      return super.prepare(created.sql, options);
    }
  }

  /** Whether SQLite refused to create a part of an existing virtual table. */
  #hasPart(name: string | undefined): boolean {
    if (name === undefined) return false;
    return super.prepare("SELECT 1 FROM pragma_table_list(?) WHERE type = 'shadow'").get(name) !== undefined;
  }

  /** Whether it inserts a row that the new table may have already. */
  #isDumpedPart(sql: string): boolean {
    const table = this.#dumped.size === 0 ? undefined : insertOf(sql)?.table;
    if (table === undefined) return false;
    const isPart = (name: string) => table.startsWith(`${name}_`);
    if (!this.#parts.has(table) && [...this.#dumped].some(isPart)) this.#parts = partsOf(this);
    const owner = this.#parts.get(table);
    return owner !== undefined && this.#dumped.has(owner);
  }
}

export interface OpenOptions extends SizeLimit {
  /** Refuses all writes. */
  readonly queryOnly: boolean;
  readonly sessions: Sessions;
}

/**
 * Opens the file at `path`, which must exist and may be empty, in WAL mode. It never waits for a lock: a
 * locked file fails with SQLITE_BUSY. Answers to writes must wait for DurableLog: until then a commit
 * survives a crash of the child, but perhaps not a power failure.
 */
export function openTenantFile(path: string, options: OpenOptions): DatabaseSync {
  const url = pathToFileURL(path);
  // Otherwise SQLite would recreate a lost file, empty.
  url.searchParams.set('mode', 'rw');
  const database = new TenantDatabase(url, {
    timeout: 0,
    allowExtension: false,
    defensive: true,
    enableForeignKeyConstraints: true,
    // The default of the sqlite3 program and of drivers, and of schemas created with them.
    enableDoubleQuotedStringLiterals: true,
    limits: LIMITS,
  });
  try {
    // `trusted_schema` must be set before a schema is read.
    database.exec(`PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;
      PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;
      PRAGMA journal_size_limit = ${LOG_KEPT_BYTES};`);
    // These also rewrite existing values, and fail while another connection writes.
    if (numberOf(database, 'PRAGMA page_count') === 0) {
      database.exec(`PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL`);
    }
    database.exec('PRAGMA journal_mode = WAL');
    limitSize(database, options);
    defineVectorFunctions(database);
    if (options.queryOnly) database.exec('PRAGMA query_only = ON');
    database.setAuthorizer(authorizer(options.sessions));
    database.isSession = options.sessions === 'own';
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Applies the size limit to an open connection; larger writes fail with SQLITE_FULL. */
export function setSizeLimit(database: DatabaseSync, sizeLimit: SizeLimit, sessions: Sessions): void {
  database.setAuthorizer(null);
  try {
    limitSize(database, sizeLimit);
  } finally {
    database.setAuthorizer(authorizer(sessions));
  }
}

export function limitSize(database: DatabaseSync, { sizeLimitBytes, mayGrow }: SizeLimit): void {
  const pageBytes = numberOf(database, 'PRAGMA page_size');
  const sizeBytes = numberOf(database, 'PRAGMA page_count') * pageBytes;
  // SQLite never goes below the current number of pages.
  const limit = mayGrow ? hostSpace.limitFor(sizeBytes, sizeLimitBytes) : 0;
  const pages = Math.max(1, Math.floor(limit / pageBytes));
  database.exec(`PRAGMA max_page_count = ${pages}`);
}

/** The single number that a statement returns. */
export function numberOf(database: DatabaseSync, sql: string): number {
  return Number(Object.values(database.prepare(sql).get() ?? {})[0]);
}
