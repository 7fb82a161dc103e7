/** Brings the schema in PostgreSQL to the newest version. */
import type { Client } from 'pg';
import { type AppliedMigration, checksum, pendingMigrations } from '../../metadata/migrate.ts';
import { type Migration, postgresqlMigrations } from '../../metadata/migrations/migrations.ts';

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

/** An arbitrary number shared by all Cloudlets: one migrates at a time. */
const LOCK = 2_024_041_807;
const RECORDS = `
CREATE TABLE IF NOT EXISTS migrations (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL, -- SHA-256 of the text
  applied_at BIGINT NOT NULL
)`;

/** A start fails rather than wait longer for users of a table: all other users wait behind it. */
const LOCK_WAIT_MS = 60_000;

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
 * Applies every pending migration in one transaction. `nowMs`: ms since 1970. Rejects with an Error of one
 * line if the database is of a newer version or of another history, and with pg's errors.
 */
export async function migrateSchema(
  client: Client,
  nowMs: number,
  migrations: readonly Migration[] = postgresqlMigrations,
): Promise<void> {
  await inTransaction(client, async () => {
    await client.query(RECORDS);
    const { rows } = await client.query<AppliedMigration>(
      'SELECT number, name, checksum FROM migrations ORDER BY number',
    );
    for (const migration of pendingMigrations(rows, migrations)) {
      await client.query(migration.sql);
      await client.query(
        'INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)',
        [migration.number, migration.name, checksum(migration), nowMs],
      );
    }
  });
}

/** One process at a time, for as long as it takes: an index over many millions of rows takes minutes. */
async function inTransaction(client: Client, work: () => Promise<unknown>): Promise<void> {
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
