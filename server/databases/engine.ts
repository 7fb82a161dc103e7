/**
 * What the databases domain needs of an engine. One object per kind: SQLite files, a PostgreSQL server, …
 *
 * Every step is idempotent: done again after a crash, or twice at once by mistake, it leaves what doing it
 * once leaves. A step that fails throws AppError (`engine_unavailable` when the engine cannot be had now,
 * with the fix as `hint`; `host_disk_full`, `out_of_space`) or an Error, and leaves what was there.
 *
 * The suite testing/engine.conformance.ts is this contract as tests, through the users' own driver.
 */
import type { Readable } from 'node:stream';
import { AppError } from '../platform/errors.ts';

export const ENGINES = ['sqlite', 'postgresql', 'mysql', 'mongodb'] as const;
export type EngineName = (typeof ENGINES)[number];

/** One database as its engine knows it. Names are opaque and random: they tell a neighbour nothing. */
export interface EngineDatabase {
  readonly databaseId: string;
  /** Row id: small, never used again, for engines that need a number (a uid). */
  readonly number: number;
  /** Whose it is: what all accounts share is counted by it. */
  readonly accountId: number;
  /** Its name inside the engine, `d_` and 16 of a-z0-9. */
  readonly database: string;
  /** Its user inside the engine: as `database`, with `u_` for `d_`. */
  readonly username: string;
  readonly sizeLimitBytes: number;
  readonly limits: EngineLimits;
}

/** What each database may take at most. An engine holds a tenant to them, whatever the tenant sets. */
export interface EngineLimits {
  readonly connections: number;
  readonly statementMs: number;
}

export interface Readiness {
  readonly available: boolean;
  /** The engine's version; null when it is not known. */
  readonly version: string | null;
  readonly source: 'built-in' | 'managed' | 'external';
  /** Why it is not available, or a limitation to know of; null: nothing to say. */
  readonly reason: string | null;
  /** What the operator can do about it. */
  readonly fix: string | null;
  /** That tenants may create; missing where the engine has none. */
  readonly extensions?: readonly string[];
}

/** Where a driver connects. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  /** The certificate to trust (PEM), when it is one of ours. */
  readonly ca: string | null;
  /** For the driver; `password` is put in as it is, URL-safe. */
  uri(password: string): string;
}

/**
 * `full`; `read_only`: no growth, deleting goes on where the engine can tell; `none`: sessions end and nobody
 * logs in.
 */
export type Access = 'full' | 'read_only' | 'none';

export interface Measured {
  readonly sizeBytes: number;
  /** Sessions, or statements under way, now; null where the engine does not tell, here and below. */
  readonly connections: number | null;
  /** Since the engine began to count; falls back to 0 when it starts anew. */
  readonly statements: number | null;
  readonly rowsReturned: number | null;
  readonly rowsWritten: number | null;
}

export interface Query {
  /** SQL with `?` or `$1` as the engine has them, or, for MongoDB, one command in Extended JSON. */
  readonly statement: string | Readonly<Record<string, unknown>>;
  readonly params: readonly unknown[];
  readonly readOnly: boolean;
  readonly maxRows: number;
  /** The bound on the rows as JSON. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Aborts when the caller has left. */
  readonly signal: AbortSignal;
}

export interface QueryResult {
  readonly columns: readonly { readonly name: string; readonly type: string | null }[];
  /** As JSON can say it: what it cannot (64-bit integers beyond 2^53, bytes) as text. */
  readonly rows: readonly (readonly unknown[])[];
  /** Rows that the statement changed; null when it changes none. */
  readonly affected: number | null;
  readonly truncated: boolean;
}

export interface Table {
  readonly name: string;
  /** The table's schema; null where the engine has none. */
  readonly schema: string | null;
  readonly type: 'table' | 'view' | 'collection';
  readonly columns: readonly {
    readonly name: string;
    readonly type: string | null;
    readonly nullable: boolean;
    readonly default: string | null;
    readonly primary_key: boolean;
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
  /** Null where counting would be a scan. */
  readonly estimated_rows: number | null;
  readonly size_bytes: number | null;
}

export interface Dump {
  readonly contentType: string;
  /** Without the dot. */
  readonly extension: string;
  /** Null: not known before its end. */
  readonly sizeBytes: number | null;
  /** Destroying it ends the dump. */
  readonly stream: Readable;
}

export interface DumpHow {
  readonly signal: AbortSignal;
  /** For a recovery point, whose dumps wait for no user's. */
  readonly isForPoint?: boolean;
}

export interface Engine {
  readonly name: EngineName;
  /** Formats of dump(), the usual one first. What load() takes: the usual one. */
  readonly dumpFormats: readonly string[];
  /** Does nothing that takes seconds: status asks it. */
  readiness(): Promise<Readiness>;
  /** Has the engine up, starting its server where it has one. */
  prepare(): Promise<void>;
  /** Makes the database, empty and open to its user with that password. */
  provision(database: EngineDatabase, password: string): Promise<void>;
  /** From now on only this password is good; sessions of the old one end. */
  rotate(database: EngineDatabase, password: string): Promise<void>;
  /** Takes the limits of `database` and that access into force, also for sessions there are. */
  restrict(database: EngineDatabase, access: Access): Promise<void>;
  endpoint(database: EngineDatabase): Promise<Endpoint>;
  /** Cheap: asked every five seconds of databases that are in use. */
  measure(database: EngineDatabase): Promise<Measured>;
  /** Databases that were used since the last call. */
  takeActive(): readonly string[];
  /** Throws QueryFailed, AppError `query_timeout`. */
  query(database: EngineDatabase, query: Query): Promise<QueryResult>;
  tables(database: EngineDatabase, signal: AbortSignal): Promise<readonly Table[]>;
  /** As of one moment, while others write, and whatever access there is. Throws DumpsMissing. */
  dump(database: EngineDatabase, format: string, how: DumpHow): Promise<Dump>;
  /**
   * Replaces everything in the database by what a dump holds, once all of it was read and found good; else
   * leaves what is there and throws LoadFailed. Whatever access there is.
   */
  load(database: EngineDatabase, dump: Readable, signal: AbortSignal): Promise<void>;
  /** Fills `to`, which was provisioned, with what `from` holds now; sessions of `from` go on. */
  fork(from: EngineDatabase, to: EngineDatabase, signal: AbortSignal): Promise<void>;
  /** What its server told of this database last, whole lines; missing where none tells. */
  log?(database: EngineDatabase, maxBytes: number): Promise<string>;
  /**
   * Ends the sessions of the database of that name (`database`) and removes it and its user; fine when there
   * is none.
   */
  drop(database: string): Promise<void>;
  /** Names (`database`) of all there are, for the sweeper: one without a row is removed. */
  list(): Promise<readonly string[]>;
  /**
   * Ends the server of the database's account, whatever it does, and starts it anew; missing where none is.
   */
  restart?(database: EngineDatabase): Promise<void>;
  /**
   * Moves databases that an earlier version kept elsewhere; `all`: those of this engine. Until then they
   * are not to be had. Rejects when one could not be moved: it is tried again with the next call.
   */
  moveIn?(all: readonly { readonly database: EngineDatabase; readonly access: Access }[]): Promise<void>;
  close(): Promise<void>;
}

interface QueryFailedMore {
  readonly position?: number | null;
  readonly hint?: string | undefined;
}

/** The engine refused a statement: its own error, for the tenant. */
export class QueryFailed extends Error {
  /** The engine's own: `SQLITE_ERROR`, `42601`. */
  readonly engineCode: string;
  /** The first wrong character of the statement, from 1; null where the engine does not tell. */
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

/** A dump that cannot be loaded, and why, for the tenant. */
export class LoadFailed extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LoadFailed';
  }
}

/** Its host lacks what dumps and loads need: trying again is of no use. */
export class DumpsMissing extends AppError {
  constructor(reason: string, fix: string) {
    super('engine_unavailable', reason, { hint: fix });
  }
}
