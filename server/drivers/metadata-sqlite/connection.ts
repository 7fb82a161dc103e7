/** Connections to metadata.db: opened with durable settings, which are verified, and read from. */
import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Reads, SqlValue } from '../../metadata/metadata.ts';
import { syncFolder } from '../../platform/files.ts';
import { type ExactQuery, readExactly, readFirstExactly } from './integers.ts';

/** Below this SQLite has the WAL-reset race, which corrupts a database written by two connections. */
const LEAST_SQLITE = [3, 51, 3];

export const DATABASE_FILE = 'metadata.db';
const WAL_BYTES_KEPT = 64 * 2 ** 20;

/**
 * Memory mapping is off: an I/O error on a mapped page is SIGBUS and ends the process, while a
 * failed read is an error that can be handled.
 */
const WRITER_PRAGMAS: readonly (readonly [string, number | string])[] = [
  ['busy_timeout', 5000],
  // Incremental, and set before the first table: freed pages can be returned to a full disk.
  ['auto_vacuum', 2],
  ['journal_mode', 'wal'],
  ['synchronous', 2],
  ['foreign_keys', 1],
  ['mmap_size', 0],
  ['cache_size', -16384],
  ['temp_store', 2],
  ['journal_size_limit', WAL_BYTES_KEPT],
  // The writer checkpoints explicitly, after it has answered.
  ['wal_autocheckpoint', 0],
];

const READER_PRAGMAS: readonly (readonly [string, number | string])[] = [
  // A reader in WAL waits only while the log is being recovered.
  ['busy_timeout', 2000],
  ['mmap_size', 0],
  ['cache_size', -32768],
  ['temp_store', 2],
  ['query_only', 1],
];

function setPragmas(database: Database.Database, pragmas: typeof WRITER_PRAGMAS): void {
  for (const [name, value] of pragmas) {
    database.pragma(`${name} = ${value}`);
    const got = database.pragma(name, { simple: true });
    if (got !== value) throw new Error(`SQLite did not take ${name} = ${value}: it reads back ${got}`);
  }
}

/** Throws when `version` (`3.51.3`) is older than the safe minimum. */
export function assertSqliteVersion(version: string): void {
  const parts = version.split('.').map(Number);
  for (const [i, least] of LEAST_SQLITE.entries()) {
    const part = parts[i] ?? 0;
    if (part > least) return;
    if (part < least) {
      throw new Error(`SQLite ${version} is too old: ${LEAST_SQLITE.join('.')} or newer is needed`);
    }
  }
}

function sqliteVersion(database: Database.Database): string {
  return String(database.prepare('SELECT sqlite_version()').pluck().get());
}

/**
 * Lower-case hex SHA-256 of a text in UTF-8, null of null: the ledger's hash chain is computed in SQL by it.
 */
function sha256Hex(text: unknown): string | null {
  return text === null ? null : createHash('sha256').update(String(text), 'utf8').digest('hex');
}

/**
 * Makes an empty file and its directory entry durable, readable by the owner alone; SQLite gives its log the
 * same mode.
 */
function createFile(directory: string): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, DATABASE_FILE);
  closeSync(openSync(path, 'a', 0o600));
  syncFolder(directory);
  return path;
}

/** The one connection that writes. Creates `<directory>/metadata.db` if it is missing. */
export function openWriter(directory: string): Database.Database {
  const database = new Database(createFile(directory));
  try {
    assertSqliteVersion(sqliteVersion(database));
    setPragmas(database, WRITER_PRAGMAS);
    database.function('sha256_hex', { deterministic: true }, sha256Hex);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A connection that cannot write. The writer must have opened the database before. */
export function openReader(directory: string): Database.Database {
  const database = new Database(join(directory, DATABASE_FILE), { readonly: true, fileMustExist: true });
  try {
    setPragmas(database, READER_PRAGMAS);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The names of its tables. */
export function tableNames(database: Database.Database): string[] {
  const sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
  return database
    .prepare<[], { name: string }>(sql)
    .all()
    .map(({ name }) => name);
}

/** Same as openReader(), in one read transaction while it is open; the WAL grows meanwhile. */
export function openSnapshot(directory: string): Database.Database {
  const database = openReader(directory);
  database.exec('BEGIN');
  return database;
}

/** The version of SQLite, such as `3.51.3`, asked without touching any data. Throws when it is too old. */
export function checkedSqliteVersion(): string {
  const database = new Database(':memory:');
  try {
    const version = String(database.prepare('SELECT sqlite_version()').pluck().get());
    assertSqliteVersion(version);
    return version;
  } finally {
    database.close();
  }
}

/**
 * Keeps a prepared statement prepared. This SQLite is built with STAT4: its planner inspects the
 * values bound to bare `?` in a join, and plans again for every other value, so that a 2 µs join
 * takes 14 µs. SQLITE_DBCONFIG_ENABLE_QPSG would prevent that, but better-sqlite3 cannot set it;
 * the planner does not look behind a unary plus, which changes no value and costs nothing when run.
 */
const QUOTED_OR_PLACEHOLDER = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g;

/** `sql` with every placeholder `?` as `+?`. */
export function stablePlan(sql: string): string {
  return sql.replace(QUOTED_OR_PLACEHOLDER, (match) => (match === '?' ? '+?' : match));
}

const MAX_PREPARED = 500;

/** Queries on one connection, prepared once each. SQLite's errors are passed on. */
export class SqliteReads implements Reads {
  readonly #database: Database.Database;
  readonly #queries = new Map<string, ExactQuery>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  get<T>(sql: string, ...params: SqlValue[]): T | undefined {
    return readFirstExactly(this.#query(sql), params) as T | undefined;
  }

  all<T>(sql: string, ...params: SqlValue[]): T[] {
    return readExactly(this.#query(sql), params) as T[];
  }

  #query(sql: string): ExactQuery {
    const known = this.#queries.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(stablePlan(sql));
    const query = { statement, columns: statement.columns().map((column) => column.name) };
    if (this.#queries.size >= MAX_PREPARED) {
      for (const oldest of this.#queries.keys()) {
        this.#queries.delete(oldest);
        break;
      }
    }
    this.#queries.set(sql, query);
    return query;
  }
}
