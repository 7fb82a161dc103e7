/**
 * The engine port of databases. One object per kind: SQLite files, a PostgreSQL server, …
 *
 * Every step is idempotent, also when it runs again after a crash or twice at once. A failing step throws
 * AppError (`engine_unavailable` with the fix as `hint`, `host_disk_full`, `out_of_space`) or Error, and
 * changes nothing.
 *
 * The suite testing/engine.conformance.ts tests this contract through the users' own drivers.
 */
import type { Duplex, Readable } from 'node:stream';
import { AppError } from '../platform/errors.ts';
import type { Preparing } from '../platform/host/preparing.ts';
import type { JsonText } from '../platform/json/json.ts';
import type { LoadHow } from './left-out.ts';
import type { ServerLogs } from './points/server-logs.ts';

/** Engine names in the API and in rows; EngineDescription describes each engine. */
export const ENGINES = ['sqlite', 'postgresql', 'mysql', 'mongodb'] as const;
export type EngineName = (typeof ENGINES)[number];
/** The default engine of a new database. */
export const DEFAULT_ENGINE: EngineName = 'sqlite';

/** A database as its engine knows it. Names are opaque and random, and reveal nothing to other tenants. */
export interface EngineDatabase {
  readonly databaseId: string;
  /** Row id: small and never reused, for engines that need a number (a uid). */
  readonly number: number;
  /** Account of the owner; shared resources are counted by account. */
  readonly accountId: number;
  /** Name in the engine, `d_` and 16 of a-z0-9. */
  readonly database: string;
  /** User in the engine: `database` with `u_` instead of `d_`. */
  readonly username: string;
  readonly sizeLimitBytes: number;
  readonly limits: EngineLimits;
}

/** Limits of each database, which tenants cannot override. */
export interface EngineLimits {
  readonly connections: number;
  readonly statementMs: number;
}

export interface Readiness {
  readonly available: boolean;
  /** The engine's version; null: unknown. */
  readonly version: string | null;
  readonly source: 'built-in' | 'managed' | 'external';
  /** Reason for being unavailable, or a known limitation; null: none. */
  readonly reason: string | null;
  /** Fix for the operator. */
  readonly fix: string | null;
  /** Whether the host is still installing the engine; new databases wait until it is installed. */
  readonly preparing?: Preparing;
  /** Extensions that tenants may create; missing if the engine has none. */
  readonly extensions?: readonly string[];
}

/** Where a driver connects. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** CA certificate to trust (PEM), if Cloudlet issued the server's certificate. */
  readonly ca: string | null;
  /** The same over TLS that drivers verify by its `ca`, where `tls` is false and the server offers it. */
  readonly verified?: Endpoint | undefined;
  /** Connection URI for drivers; `password` is inserted unescaped and must be URL-safe. */
  uri(password: string): string;
}

export interface UserConnection {
  readonly stream: Duplex;
  /** Egress of this connection is counted only here. */
  readonly isUncounted: boolean;
}

/**
 * `full`; `read_only`: no growth, but deletes are allowed if the engine can distinguish them;
 * `none`: sessions end and logins are refused.
 */
export type Access = 'full' | 'read_only' | 'none';

export interface Measured {
  readonly sizeBytes: number;
  /** Current sessions, or statements in progress; null if the engine does not report it, here and below. */
  readonly connections: number | null;
  /** Cumulative; resets to 0 when the engine restarts. */
  readonly statements: number | null;
  readonly rowsReturned: number | null;
  readonly rowsWritten: number | null;
}

export interface Query {
  /** SQL with the engine's placeholders (`?` or `$1`), or for MongoDB one command in Extended JSON. */
  readonly statement: string | Readonly<Record<string, unknown>>;
  readonly params: readonly unknown[];
  readonly readOnly: boolean;
  readonly maxRows: number;
  /** Number of rows to skip; default: 0. */
  readonly skip?: number;
  /** Limit of the rows as JSON. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Whether values of documents keep their types, as Extended JSON; default: false. */
  readonly isExact?: boolean;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface ResultColumn {
  readonly name: string;
  readonly type: string | null;
}

export interface QueryResult {
  readonly columns: JsonText<readonly ResultColumn[]>;
  /** Values that JSON cannot represent (64-bit integers beyond 2^53, bytes) are text. */
  readonly rows: JsonText<readonly (readonly unknown[])[]>;
  readonly rowCount: number;
  /** Rows changed by the statement; null when it changes none. */
  readonly affected: number | null;
  readonly truncated: boolean;
}

/** Statements that each change exactly one row, or document; all of them or none are applied. */
export interface RowChanges {
  readonly statements: readonly Statement[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

type Statement = Pick<Query, 'statement' | 'params'>;

/** The same rows as one statement, or as one statement each, to find the refused rows. */
export interface InsertBatch {
  readonly whole: () => Statement;
  readonly each: () => readonly Statement[];
}

/** New rows of one table, all of which are stored, or none. */
export interface Insertion {
  /** Creates the table, in the same transaction where the engine can; null: it exists. */
  readonly first: Query['statement'] | null;
  /** Removes the table again, if the engine creates it outside the transaction. */
  readonly undo: Query['statement'] | null;
  readonly batches: AsyncIterable<InsertBatch>;
  readonly signal: AbortSignal;
}

/** All rows of a statement, in one snapshot. */
export interface Scan extends Pick<Query, 'statement' | 'params' | 'signal'> {
  /** Receives the next rows, as in QueryResult; the engine continues when this resolves. */
  readonly onRows: (rows: readonly (readonly unknown[])[]) => Promise<void>;
}

export interface Table {
  readonly name: string;
  /** The table's schema; null if the engine has none. */
  readonly schema: string | null;
  readonly type: 'table' | 'view' | 'collection';
  readonly columns: readonly {
    readonly name: string;
    readonly type: string | null;
    readonly nullable: boolean;
    readonly default: string | null;
    readonly primary_key: boolean;
    /** Computed from other columns, so that it takes no values; missing: false. */
    readonly generated?: boolean;
  }[];
  readonly indexes: readonly {
    readonly name: string;
    readonly columns: readonly string[];
    readonly unique: boolean;
  }[];
  readonly foreign_keys: readonly {
    readonly columns: readonly string[];
    readonly references: { readonly table: string; readonly columns: readonly string[] };
  }[];
  /** null if counting would need a scan. */
  readonly estimated_rows: number | null;
  readonly size_bytes: number | null;
}

/** A database that an account's programs created on its server, for tests or as a shadow database. */
export interface TestDatabase {
  readonly name: string;
  readonly sizeBytes: number;
  /** The Cloudlet database (`database`) whose user created it; null: any of the account's. */
  readonly madeBy: string | null;
}

export interface Dump {
  readonly contentType: string;
  /** File extension without the dot. */
  readonly extension: string;
  /** null: unknown before the end. */
  readonly sizeBytes: number | null;
  /** Destroying it cancels the dump. */
  readonly stream: Readable;
}

export interface DumpHow {
  readonly signal: AbortSignal;
  /** Whether the dump is for a recovery point: such dumps are not queued behind users' dumps. */
  readonly isForPoint?: boolean;
  /** Whether the dump includes test databases of unknown origin. */
  readonly hasTests?: boolean;
}

/** `host_disk_full`: the database cannot grow now; `engine_unavailable`: it cannot be used at all. */
export interface Trouble {
  readonly code: 'engine_unavailable' | 'host_disk_full';
  readonly message: string;
}

export interface Engine {
  readonly name: EngineName;
  /** An account's first database may have to wait until the account's server is created. */
  readonly startsServers?: boolean;
  /** Formats of dump(), the default first. load() takes the default. */
  readonly dumpFormats: readonly string[];
  /** Logs of the engine's servers, for continuous archiving; undefined: not supported. */
  readonly serverLogs?: ServerLogs | undefined;
  /** Must be fast: the status call uses it. */
  readiness(): Promise<Readiness>;
  /**
   * Why this database cannot be used, for its owner; null: nothing is known. Missing: the engine
   * never knows. Uses only what is in memory.
   */
  trouble?(database: EngineDatabase): Trouble | null;
  /** Makes the engine ready, starting its server if it has one. */
  prepare(): Promise<void>;
  /**
   * Reserves the endpoint of a new database without starting it: endpoint() works from now on, also
   * while the host is still preparing the engine; drop() releases it. Missing: endpoint() always
   * works.
   */
  reserve?(database: EngineDatabase): Promise<void>;
  /** Creates an empty database that its user can open with that password. */
  provision(database: EngineDatabase, password: string): Promise<void>;
  /** From now on only this password is valid; sessions of the old one end. */
  rotate(database: EngineDatabase, password: string): Promise<void>;
  /** Applies limits and access of `database`, also to existing sessions. */
  restrict(database: EngineDatabase, access: Access): Promise<void>;
  /** Whether the limits of `database` are in force; missing: each call applies them. */
  isLimited?(database: EngineDatabase): Promise<boolean>;
  endpoint(database: EngineDatabase): Promise<Endpoint>;
  /**
   * A connection to the server of this database's account, and of no other account; missing if
   * Cloudlet does not run the server. Allows half-open. A sleeping server wakes up. Throws
   * `engine_unavailable`.
   */
  connect?(database: EngineDatabase): Promise<UserConnection>;
  /** Cheap: called every five seconds for active databases. */
  measure(database: EngineDatabase): Promise<Measured>;
  /** Databases used since the last call. */
  takeActive(): readonly string[];
  /** Throws QueryFailed, AppError `query_timeout`. */
  query(database: EngineDatabase, query: Query): Promise<QueryResult>;
  tables(database: EngineDatabase, signal: AbortSignal): Promise<JsonText<readonly Table[]>>;
  /**
   * Reads all rows of a statement in one snapshot, in parts, for at most an hour. Throws the errors of
   * query() and those of `onRows`. Missing: rows are read by query() only.
   */
  scan?(database: EngineDatabase, scan: Scan): Promise<void>;
  /**
   * Stores rows as they arrive, in one transaction, for at most an hour. Throws RowsRefused, the errors of
   * query() and those of `batches`; nothing is changed then, unless it is TableLeft. Missing: not supported.
   */
  insert?(database: EngineDatabase, insertion: Insertion): Promise<void>;
  /**
   * Runs all statements in one transaction, in order. Throws RowNotChanged, as well as QueryFailed
   * and `query_timeout`; nothing is changed then. Missing: rows are changed by query() only.
   */
  change?(database: EngineDatabase, changes: RowChanges): Promise<void>;
  /** Dumps one consistent snapshot, concurrently with writes, in any access mode. Throws DumpsMissing. */
  dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump>;
  /**
   * Replaces the whole database with a dump after it was read and validated completely; otherwise
   * throws LoadFailed and changes nothing. Works with any access. `leftOut`: collects the parts
   * that this server or tenant cannot have, which are skipped. `adding`: rows without tables are
   * added to the existing tables.
   */
  load(database: EngineDatabase, dump: Readable, how: LoadHow): Promise<void>;
  /** Copies the present content of `from` into `to`, which was provisioned; sessions of `from` continue. */
  fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void>;
  /** Databases that programs created on the account's server; missing if they cannot. */
  testDatabases?(database: EngineDatabase): Promise<readonly TestDatabase[]>;
  /** Latest log lines of this database, complete lines only; missing if the engine has no log. */
  log?(database: EngineDatabase, maxBytes: number): Promise<string>;
  /** Ends the sessions of the database named `database` and removes it and its user; no error if missing. */
  drop(database: string): Promise<void>;
  /** Names (`database`) of all databases in the engine; the sweeper removes those without a row. */
  list(): Promise<readonly string[]>;
  /** Restarts the server of the database's account; missing if it has none. */
  restart?(database: EngineDatabase): Promise<void>;
  /**
   * Moves databases from the layout of an earlier version; `all`: those of this engine. They are
   * unavailable until then. Rejects if a database could not be moved; the next call retries it.
   */
  moveIn?(all: readonly { readonly database: EngineDatabase; readonly access: Access }[]): Promise<void>;
  close(): Promise<void>;
}

interface QueryFailedMore {
  readonly position?: number | null;
  readonly hint?: string | undefined;
}

/** A statement refused by the engine, with the engine's own error, for the tenant. */
export class QueryFailed extends Error {
  /** The engine's own code: `SQLITE_ERROR`, `42601`. */
  readonly engineCode: string;
  /**
   * Position of the first wrong character in the statement, from 1; null if the engine does not report it.
   */
  readonly position: number | null;
  readonly hint: string | undefined;

  constructor(message: string, engineCode: string, { position = null, hint }: QueryFailedMore = {}) {
    super(message);
    this.name = 'QueryFailed';
    this.engineCode = engineCode;
    this.position = position;
    this.hint = hint;
  }
}

/** A statement of RowChanges changed no row or several, and everything was rolled back. */
export class RowNotChanged extends Error {
  /** Index of the statement, from 0. */
  readonly at: number;
  readonly rows: number;

  constructor({ at, rows }: { readonly at: number; readonly rows: number }) {
    super(`statement ${at + 1} changed ${rows} rows`);
    this.name = 'RowNotChanged';
    this.at = at;
    this.rows = rows;
  }
}

export interface RefusedRow {
  /** Index among all rows of the insertion, from 0. */
  readonly at: number;
  readonly message: string;
}

/** Rows of an Insertion that the engine refused, the first few, and everything was rolled back. */
export class RowsRefused extends Error {
  readonly rows: readonly RefusedRow[];

  constructor(rows: readonly RefusedRow[]) {
    super(`${rows.length} rows were refused`);
    this.name = 'RowsRefused';
    this.rows = rows;
  }
}

/** An Insertion failed for `cause`, and the new table, which has no rows, could not be removed again. */
export class TableLeft extends Error {
  constructor(cause: unknown) {
    super('the new table could not be removed again', { cause });
    this.name = 'TableLeft';
  }
}

/** Maximum number of refused rows in an error. */
export const MOST_REFUSED = 20;

/** A dump that cannot be loaded, with the reason for the tenant. */
export class LoadFailed extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LoadFailed';
  }
}

/** The host lacks the programs for dumps and loads: retrying does not help. */
export class DumpsMissing extends AppError {
  constructor(reason: string, fix: string) {
    super('engine_unavailable', reason, { hint: fix });
  }
}
