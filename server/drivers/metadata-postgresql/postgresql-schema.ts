/** Brings the schema in PostgreSQL to the newest version. */
import type { Client } from 'pg';
import { type AppliedMigration, checksum, pendingMigrations } from '../../metadata/migrate.ts';
import { postgresqlMigrations } from '../../metadata/migrations/migrations.ts';

/** Any number, the same for all Cloudlets: one migrates at a time. */
const LOCK = 2_024_041_807;
const RECORDS = `
CREATE TABLE IF NOT EXISTS migrations (
  number BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL, -- SHA-256 of the text
  applied_at BIGINT NOT NULL
)`;

/**
 * Applies every pending migration in one transaction. `nowMs`: ms since 1970. Rejects with an Error of one
 * line if the database is of a newer version or of another history, and with pg's errors.
 */
export async function migrateSchema(client: Client, nowMs: number): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
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
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}
