/** SQL of databases. */
import type { Awaitable, Reads, ResourceChange, RowIdOf, Statement } from '../metadata/metadata.ts';
import type { EngineName } from './engine.ts';
import type { DatabaseState } from './life/states.ts';

export interface DatabaseRow {
  /** Row id. */
  readonly id: number;
  readonly database_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly engine: EngineName;
  readonly version: string | null;
  readonly region: string;
  readonly state: DatabaseState;
  readonly reason_code: string | null;
  readonly reason_message: string | null;
  readonly generation: number;
  readonly applied: number;
  readonly engine_database: string;
  readonly username: string;
  readonly sealed_password: Uint8Array;
  readonly sealed_next_password: Uint8Array | null;
  /** SHA-256 of the current password. */
  readonly password_hash: Uint8Array;
  readonly size_limit_bytes: number;
  readonly size_bytes: number;
  readonly is_protected: number;
  readonly created_at: number;
  readonly state_changed_at: number;
  readonly deletes_at: number | null;
  /** Remaining retention of the last dump, ms; null: none. */
  readonly keep_left_ms: number | null;
  readonly is_dropped: number;
  readonly kept_dump_bytes: number | null;
  /** The account's price plan. */
  readonly plan: string;
}

export interface DatabaseCount {
  readonly engine: EngineName;
  readonly state: DatabaseState;
  readonly count: number;
}

const OWN = `id, database_id, account_id, name, engine, version, region, state, reason_code, reason_message,
  generation, applied, engine_database, username, sealed_password, sealed_next_password,
  password_hash, size_limit_bytes, size_bytes, is_protected, created_at, state_changed_at, deletes_at, keep_left_ms,
  is_dropped, kept_dump_bytes`;
const COLUMNS = `${OWN}, (SELECT plan FROM accounts WHERE accounts.id = databases.account_id) AS plan`;

/** Deleted databases that are still kept are listed separately. */
const LIVE = `(state <> 'deleting')`;
const KEPT = `(state = 'deleting' AND deletes_at IS NOT NULL)`;

/** Number of databases with an address in a private network: 2^20 less 16. */
const PRIVATE_NUMBERS = 1_048_560;

interface Page {
  /** A row id. */
  readonly after: number;
  readonly limit: number;
}

export class DatabaseStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(databaseId: string): Awaitable<DatabaseRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM databases WHERE database_id = ?`, databaseId);
  }

  /** The database with this password. */
  findByPassword(passwordHash: Uint8Array): Awaitable<DatabaseRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM databases WHERE password_hash = ?`, passwordHash);
  }

  /**
   * An account's databases, oldest first, after row id `after`; `kept`: deleted ones that can be undeleted.
   */
  listOf(accountId: number, kept: boolean, { after, limit }: Page): Awaitable<DatabaseRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM databases WHERE account_id = ? AND id > ? AND ${kept ? KEPT : LIVE}
       ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  /** All databases of an account, including deleted ones, by row id. */
  listAllOf(accountId: number, { after, limit }: Page): Awaitable<DatabaseRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM databases WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  /** Databases that may differ from their engine, and deleted ones whose retention is over. */
  listUnapplied(): Awaitable<DatabaseRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM databases
       WHERE (applied <> generation OR state IN ('creating', 'deleting'))
         AND (applied <> generation OR state = 'creating' OR coalesce(keep_left_ms, 0) <= 0) ORDER BY id`,
    );
  }

  /** Whether any last dump is still within its retention. */
  async keepsAny(): Promise<boolean> {
    const sql = `SELECT 1 FROM databases WHERE ${KEPT} AND keep_left_ms > 0 LIMIT 1`;
    return (await this.#reads.get(sql)) !== undefined;
  }

  /** An account's deleted databases that can be undeleted, in order of deletion. */
  keptOf(accountId: number): Awaitable<DatabaseRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM databases WHERE account_id = ? AND ${KEPT} AND keep_left_ms > 0
       ORDER BY keep_left_ms, id`,
      accountId,
    );
  }

  /** Subtracts the elapsed time from the retention of last dumps. */
  countKept(passedMs: number, now: number): Statement {
    const left = 'CASE WHEN keep_left_ms > ? THEN keep_left_ms - ? ELSE 0 END';
    const passed = Math.round(passedMs);
    return {
      sql: `UPDATE databases SET keep_left_ms = ${left}, deletes_at = ? + ${left}
            WHERE ${KEPT} AND keep_left_ms > 0`,
      params: [passed, passed, now, passed, passed],
    };
  }

  listCreating(): Awaitable<DatabaseRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM databases
       WHERE (applied <> generation OR state IN ('creating', 'deleting')) AND state = 'creating'`);
  }

  /** Whether a database that is not deleted has this name. */
  async hasName(accountId: number, name: string): Promise<boolean> {
    const sql = `SELECT 1 FROM databases WHERE account_id = ? AND name = ? AND state <> 'deleting'`;
    return (await this.#reads.get(sql, accountId, name)) !== undefined;
  }

  /** The account's database with that name, unless deleted. */
  findNamed(accountId: number, name: string): Awaitable<DatabaseRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM databases WHERE account_id = ? AND name = ? AND ${LIVE}`,
      accountId,
      name,
    );
  }

  /** The account's newest database that is not deleted whose row id is `number`, modulo PRIVATE_NUMBERS. */
  findNumbered(accountId: number, number: number): Awaitable<DatabaseRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM databases WHERE account_id = ? AND id % ${PRIVATE_NUMBERS} = ? AND ${LIVE}
       ORDER BY id DESC LIMIT 1`,
      accountId,
      number,
    );
  }

  /** Names in an engine that rows reference. */
  async engineDatabases(engine: EngineName): Promise<Set<string>> {
    const rows = await this.#reads.all<{ name: string }>(
      'SELECT engine_database AS name FROM databases WHERE engine = ? AND is_dropped = 0',
      engine,
    );
    return new Set(rows.map(({ name }) => name));
  }

  /** Databases completely present in that engine. */
  listIn(engine: EngineName): Awaitable<DatabaseRow[]> {
    const sql = `SELECT ${COLUMNS} FROM databases WHERE engine = ? AND is_dropped = 0 AND state <> 'creating' ORDER BY id`;
    return this.#reads.all(sql, engine);
  }

  /** Databases that their engine must have: created, and neither deleted nor waiting for their dump. */
  expectedIn(engine: EngineName): Awaitable<{ id: string; name: string }[]> {
    return this.#reads.all(
      `SELECT database_id AS id, engine_database AS name FROM databases
       WHERE engine = ? AND state NOT IN ('creating', 'deleting') AND is_dropped = 0 AND kept_dump_bytes IS NULL`,
      engine,
    );
  }

  /** Ids of databases whose last dump is kept, or must still be loaded after a restore. */
  async withKeptDump(): Promise<Set<string>> {
    const rows = await this.#reads.all<{ id: string }>(
      'SELECT database_id AS id FROM databases WHERE kept_dump_bytes IS NOT NULL',
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** By row id, after `after`. */
  listOpen({ after, limit }: Page): Awaitable<DatabaseRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM databases WHERE id > ? AND state IN ('ready', 'read_only') ORDER BY id LIMIT ?`,
      after,
      limit,
    );
  }

  /**
   * Databases that a recovery point includes: neither still being created nor purged. By row id, after
   * `after`.
   */
  listPersistent({ after, limit }: Page): Awaitable<DatabaseRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM databases WHERE id > ? AND state <> 'creating' AND (${LIVE} OR ${KEPT})
       ORDER BY id LIMIT ?`,
      after,
      limit,
    );
  }

  counts(): Awaitable<DatabaseCount[]> {
    return this.#reads.all('SELECT engine, state, count(*) AS count FROM databases GROUP BY engine, state');
  }

  insert(row: Omit<DatabaseRow, 'id' | 'plan'>): Statement {
    return {
      sql: `INSERT INTO databases (database_id, account_id, name, engine, version, region, state, generation,
              applied, engine_database, username, sealed_password, password_hash, size_limit_bytes, is_protected,
              created_at, state_changed_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        ...[row.database_id, row.account_id, row.name, row.engine, row.version, row.region, row.state],
        ...[
          row.generation,
          row.applied,
          row.engine_database,
          row.username,
          row.sealed_password,
          row.password_hash,
        ],
        ...[row.size_limit_bytes, row.is_protected, row.created_at, row.state_changed_at],
      ],
      tells: tellsOf(row),
    };
  }

  /** Updates all mutable columns. Refuses unless the row's generation is the one before `row`'s. */
  update(row: DatabaseRow): Statement {
    return {
      sql: `UPDATE databases SET name = ?, version = ?, state = ?, reason_code = ?, reason_message = ?,
              generation = ?, applied = ?, sealed_password = ?, sealed_next_password = ?, password_hash = ?,
              size_limit_bytes = ?,
              is_protected = ?, state_changed_at = ?, deletes_at = ?, keep_left_ms = ?,
              is_dropped = ?, kept_dump_bytes = ?
            WHERE id = ? AND generation = ?`,
      params: [
        ...[row.name, row.version, row.state, row.reason_code, row.reason_message, row.generation],
        ...[
          row.applied,
          row.sealed_password,
          row.sealed_next_password,
          row.password_hash,
          row.size_limit_bytes,
        ],
        ...[row.is_protected, row.state_changed_at, row.deletes_at, row.keep_left_ms],
        ...[row.is_dropped, row.kept_dump_bytes],
        ...[row.id, row.generation - 1],
      ],
      tells: tellsOf(row),
      expectChanges: 1,
    };
  }

  /** Refuses if the row has changed since. */
  delete(row: DatabaseRow): Statement {
    const sql = `DELETE FROM databases WHERE id = ? AND generation = ? AND state = 'deleting'`;
    return { sql, params: [row.id, row.generation], expectChanges: 1, tells: tellsOf(row) };
  }

  /** Bytes of databases and of last dumps, by account id. */
  async heldBytes(): Promise<ReadonlyMap<number, number>> {
    const rows = await this.#reads.all<{ account_id: number; bytes: number | bigint }>(
      `SELECT account_id, sum(CASE WHEN is_dropped = 1 THEN 0 ELSE size_bytes END + coalesce(kept_dump_bytes, 0)) AS bytes
       FROM databases GROUP BY account_id`,
    );
    return new Map(rows.map(({ account_id, bytes }) => [account_id, Number(bytes)]));
  }

  /** Does nothing if the row is gone. */
  setSize(id: number | RowIdOf, sizeBytes: number): Statement {
    return { sql: 'UPDATE databases SET size_bytes = ? WHERE id = ?', params: [sizeBytes, id] };
  }
}

function tellsOf({
  database_id,
  account_id,
}: Pick<DatabaseRow, 'database_id' | 'account_id'>): ResourceChange {
  return { accountId: account_id, kind: 'database', id: database_id };
}
