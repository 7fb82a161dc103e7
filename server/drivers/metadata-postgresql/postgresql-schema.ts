/** Brings the schema in PostgreSQL to the newest version. */
import type { Client } from 'pg';
import { type AppliedMigration, checksum, pendingMigrations } from '../../metadata/migrate.ts';
import { postgresqlMigrations } from '../../metadata/migrations/migrations.ts';

/** These are this driver's own, and no part of the cloud's rows. */
const STORE_TABLES = `
CREATE TABLE IF NOT EXISTS store_batches (
  writer TEXT COLLATE "C" PRIMARY KEY,
  last BIGINT NOT NULL,                  -- The last batch stored: tells the outcome of a COMMIT whose connection was lost
  may_write BIGINT NOT NULL DEFAULT 1    -- 0: another process has taken over
);
CREATE TABLE IF NOT EXISTS store_holder ( -- The one process that may write; NULL: none
  id BIGINT PRIMARY KEY CHECK (id = 1),
  writer TEXT COLLATE "C",
  host TEXT COLLATE "C",
  pid BIGINT,
  since BIGINT,
  beat_at TIMESTAMPTZ
);
INSERT INTO store_holder (id) VALUES (1) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS store_nodes ( -- Processes that write side by side; then store_holder has no writer
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
  report TEXT COLLATE "C" NOT NULL DEFAULT '' -- JSON: what it tells the others, see node-reports.ts
);
CREATE TABLE IF NOT EXISTS store_leases (
  name TEXT COLLATE "C" PRIMARY KEY,
  writer TEXT COLLATE "C" NOT NULL
)`;

/** Any number, the same for all Cloudlets: one migrates at a time. */
const LOCK = 2_024_041_807;
const RECORDS = `
CREATE TABLE IF NOT EXISTS migrations (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL, -- SHA-256 of the text
  applied_at BIGINT NOT NULL
)`;

/** Makes the tables by which one process at a time holds the database. */
export async function makeStoreTables(client: Client): Promise<void> {
  await inTransaction(client, () => client.query(STORE_TABLES));
}

/**
 * Applies every pending migration in one transaction. `nowMs`: ms since 1970. Rejects with an Error of one
 * line if the database is of a newer version or of another history, and with pg's errors.
 */
export async function migrateSchema(client: Client, nowMs: number): Promise<void> {
  await inTransaction(client, async () => {
    await client.query(RECORDS);
    const { rows } = await client.query<AppliedMigration>(
      'SELECT number, name, checksum FROM migrations ORDER BY number',
    );
    for (const migration of pendingMigrations(rows, postgresqlMigrations)) {
      await client.query(migration.sql);
      await client.query(
        'INSERT INTO migrations (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)',
        [migration.number, migration.name, checksum(migration), nowMs],
      );
    }
  });
}

/** One process at a time. */
async function inTransaction(client: Client, work: () => Promise<unknown>): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await work();
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}
