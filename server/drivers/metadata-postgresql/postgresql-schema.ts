/** Brings the schema in PostgreSQL to the newest version, while nodes of the previous one use it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { type AppliedMigration, checksum, pendingMigrations } from '../../metadata/migrate.ts';
import { type Migration, postgresqlMigrations } from '../../metadata/migrations/migrations.ts';
import { codeOf } from './connections.ts';

/**
 * These tables belong to this driver and not to the cloud's rows; they are created before the
 * migrations, which only one process at a time may run. A new column is a line here, nullable or
 * with a default, because nodes of the previous version continue beside this one. Lines are never
 * changed or removed.
 */
const STORE_TABLES: Readonly<Record<string, string>> = {
  store_batches: `
  writer TEXT COLLATE "C" PRIMARY KEY,
  last BIGINT NOT NULL,                  -- The last batch stored: shows the outcome of a COMMIT whose connection was lost
  may_write BIGINT NOT NULL DEFAULT 1    -- 0: another process has taken over`,
  // The only process that may write; NULL: none.
  store_holder: `
  id BIGINT PRIMARY KEY CHECK (id = 1),
  writer TEXT COLLATE "C",
  host TEXT COLLATE "C",
  pid BIGINT,
  since BIGINT,
  beat_at TIMESTAMPTZ`,
  // Processes that write side by side; then store_holder has no writer.
  store_nodes: `
  node_id TEXT COLLATE "C" PRIMARY KEY,  -- Of its data directory
  writer TEXT COLLATE "C" NOT NULL,      -- Of its newest process
  name TEXT COLLATE "C" NOT NULL,
  url TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  is_host BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,       -- up, draining; left: it was stopped; lost: it was silent
  pid BIGINT NOT NULL,
  since BIGINT NOT NULL,
  beat_at TIMESTAMPTZ NOT NULL,
  report TEXT COLLATE "C" NOT NULL DEFAULT '' -- JSON: what it tells the others, see node-rows.ts`,
  store_leases: `
  name TEXT COLLATE "C" PRIMARY KEY,
  writer TEXT COLLATE "C" NOT NULL`,
};

/** Arbitrary numbers shared by all Cloudlets: one at a time migrates, and makes tables. */
const MIGRATING = 2_024_041_808;
const LOCK = 2_024_041_807;
const RECORDS = `
CREATE TABLE IF NOT EXISTS migrations (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL, -- SHA-256 of the text
  applied_at BIGINT NOT NULL
)`;

/** All other users of a table wait behind an attempt to change it. */
const LOCK_WAIT_MS = 1000;
const LOCK_PAUSE_MS = 1000;
/** A start fails after some minutes in which the table was never free. */
const LOCK_TRIES = 150;
/** SQLSTATE of a lock that was not free in time, and of a deadlock. */
const NOT_FREE = ['55P03', '40P01'];
const LOOK_MS = 200;
const APART = /^(?:CREATE INDEX (?!IF\b)\w+ ON\b|DROP INDEX (?!IF\b)\w+$)/;

const HAS = `SELECT column_name AS name FROM information_schema.columns
  WHERE table_schema = current_schema() AND table_name = $1`;

/** Creates the tables with which processes hold the database, and adds missing columns. */
export async function makeStoreTables(client: Client): Promise<void> {
  await inTransaction(client, async () => {
    for (const [table, columns] of Object.entries(STORE_TABLES)) {
      await client.query(`CREATE TABLE IF NOT EXISTS ${table} (${columns}\n)`);
      const { rows } = await client.query<{ name: string }>(HAS, [table]);
      // Only if needed, because altering a table waits for its users.
      for (const [name, definition] of columnsOf(columns))
        if (!rows.some((row) => row.name === name))
          await client.query(`ALTER TABLE ${table} ADD COLUMN ${definition}`);
    }
    await client.query('INSERT INTO store_holder (id) VALUES (1) ON CONFLICT DO NOTHING');
  });
}

/** Definitions by name. */
function columnsOf(columns: string): [string, string][] {
  const lines = columns.trim().split('\n');
  return lines.map((line) => {
    const definition = line.replace(/,?\s*(?:--.*)?$/, '').trim();
    return [definition.split(' ', 1)[0] ?? '', definition];
  });
}

/**
 * Applies every pending migration while other nodes use the database: each in a transaction of its own, and
 * those of indexes outside of one. A new database gets all in one transaction. A kill leaves a schema that
 * the next start continues from. `nowMs`: ms since 1970. Rejects with an Error of one line if the database is
 * of a newer version or of another history, and with pg's errors.
 */
export async function migrateSchema(
  client: Client,
  nowMs: number,
  migrations: readonly Migration[] = postgresqlMigrations,
): Promise<void> {
  await alone(client, async () => {
    await inTransaction(client, () => client.query(RECORDS));
    while (await migrateNext(client, nowMs, migrations));
  });
}

/** False: nothing was pending. */
async function migrateNext(
  client: Client,
  nowMs: number,
  migrations: readonly Migration[],
): Promise<boolean> {
  const [next, ...further] = await pendingIn(client, migrations);
  if (next === undefined) return false;
  const parts = further.length === 0 ? partsOf(next) : null;
  if (parts !== null) await buildIndexes(client, parts.apart);
  await inTransaction(client, async () => {
    // A node of an earlier version knows only the lock of the transaction.
    const still = await pendingIn(client, migrations);
    if (still[0]?.number !== next.number) return;
    for (const migration of still) {
      const sql = parts === null ? migration.sql : parts.together.join(';\n');
      if (sql !== '') await client.query(sql);
      await client.query(
        'INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)',
        [migration.number, migration.name, checksum(migration), nowMs],
      );
    }
  });
  return true;
}

/** The next pending migration; for a new database all of them. */
async function pendingIn(client: Client, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  const { rows } = await client.query<AppliedMigration>(
    'SELECT number, name, checksum FROM migrations ORDER BY number',
  );
  const pending = pendingMigrations(rows, migrations);
  return rows.length === 0 ? pending : pending.slice(0, 1);
}

interface IndexParts {
  /** Statements that build and drop indexes, each outside of a transaction. */
  readonly apart: readonly string[];
  /** The others, which need a moment; in one transaction with the record. */
  readonly together: readonly string[];
}

/** null: it does more than build, drop and then rename indexes. */
function partsOf({ sql }: Migration): IndexParts | null {
  const statements = sql
    .replace(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
  const isApart = (statement: string) => APART.test(statement);
  const apart = statements.filter(isApart);
  const together = statements.slice(apart.length);
  const isOfIndexes = together.every((statement) => /^ALTER INDEX \w/.test(statement));
  return apart.length > 0 && isOfIndexes ? { apart, together } : null;
}

/**
 * Without a lock that others wait for. Waits for each transaction that began before, such as the snapshot of
 * a recovery point. Repeatable after a kill.
 */
async function buildIndexes(client: Client, statements: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ statement: string; lock: string }>(
    "SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock",
  );
  const [before = { statement: '0', lock: '0' }] = rows;
  const setLimits = (statement: string, lock: string) =>
    client.query("SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)", [
      statement,
      lock,
    ]);
  await setLimits('0', '0');
  try {
    for (const statement of statements) {
      const [verb, , name = ''] = statement.split(/\s+/, 3);
      if (verb === 'CREATE') await buildIndex(client, name, statement);
      else await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    }
  } finally {
    await setLimits(before.statement, before.lock).catch(() => {});
  }
}

async function buildIndex(client: Client, name: string, statement: string): Promise<void> {
  const { rows } = await client.query<{ is_valid: number }>(
    'SELECT indisvalid AS is_valid FROM pg_index WHERE indexrelid = to_regclass($1)',
    [name],
  );
  if (rows[0]?.is_valid === 1) return;
  // An interrupted build leaves an index that is written and never read.
  if (rows[0] !== undefined) await client.query(`DROP INDEX CONCURRENTLY ${name}`);
  await client.query(statement.replace(/^CREATE INDEX/, 'CREATE INDEX CONCURRENTLY'));
}

/**
 * One process at a time. Who waits asks again and again: a wait within one statement would keep its snapshot,
 * for which a build of an index waits in turn.
 */
async function alone(client: Client, work: () => Promise<void>): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ is: number }>(`SELECT pg_try_advisory_lock(${MIGRATING}) AS is`);
    if (rows[0]?.is === 1) break;
    await sleep(LOOK_MS);
  }
  try {
    await work();
  } finally {
    // A lost connection has released it.
    await client.query(`SELECT pg_advisory_unlock(${MIGRATING})`).catch(() => {});
  }
}

/** Tried again while others use the tables; then it may take as long as it needs. */
async function inTransaction(client: Client, work: () => Promise<unknown>): Promise<void> {
  for (let left = LOCK_TRIES; ; left--) {
    try {
      return await transactionOf(client, work);
    } catch (error) {
      if (left === 0 || !NOT_FREE.includes(codeOf(error))) throw error;
      await sleep(LOCK_PAUSE_MS);
    }
  }
}

async function transactionOf(client: Client, work: () => Promise<unknown>): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query('SET LOCAL statement_timeout = 0');
    await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await client.query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
    await work();
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}
