/**
 * Metadata of earlier versions migrates completely, in both engines. `server/metadata/earlier/` has the
 * metadata of each version, written by `KEEP_METADATA=1` with test/long/upgrade.test.ts.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import Database from 'better-sqlite3';
import type pg from 'pg';
import { checksum, migrate } from '../../metadata/migrate.ts';
import { migrations, postgresqlMigrations } from '../../metadata/migrations/migrations.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { WRONG_SUMS } from '../../testing/part-uploads-fixture.ts';
import { connect } from './connections.ts';
import { makeStoreTables, migrateSchema } from './postgresql-schema.ts';
import { copyToPostgresql, copyToSqlite, tablesOf } from './table-copy.ts';

const FOLDER = new URL('../../metadata/earlier/', import.meta.url);
const FILES = readdirSync(FOLDER).sort();
/** PostgreSQL's schema begins with migration 21. */
const FIRST_POSTGRESQL = 21;
const NOW = 1_800_000_000_000;

/** Columns with values from users: no migration changes them. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  accounts: ['id', 'username', 'email', 'password_hash', 'credits_micro', 'created_at'],
  api_keys: ['account_id', 'key_hash', 'sealed_key'],
  blobs: ['id', 'size_bytes', 'data', 'checksum'],
  buckets: ['id', 'name', 'account_id', 'versioning', 'encryption'],
  databases: ['database_id', 'name', 'engine', 'state', 'sealed_password', 'engine_database', 'username'],
  ledger_transfers: ['id', 'debit', 'credit', 'amount_micro', 'code', 'reference'],
  recovery_points: ['point_id', 'state'],
  secrets: ['name', 'sealed'],
  versions: ['version_id', 'blob', 'size_bytes', 'etag'],
  vms: ['vm_id', 'name', 'state', 'mac'],
  webhooks: ['url', 'sealed_secret'],
};

let server: OperatorServer;
before(async () => {
  server = await operatorPostgresql();
});
after(() => server?.close());

function rowsOf(database: Database.Database, table: string, columns: readonly string[]): unknown[] {
  const list = columns.join(', ');
  return database.prepare(`SELECT ${list} FROM ${table} ORDER BY ${list}`).safeIntegers().all();
}

/** The database as left by this version. */
function earlier(file: string): Database.Database {
  const database = new Database(':memory:');
  database.pragma('foreign_keys = OFF');
  database.exec(readFileSync(new URL(file, FOLDER), 'utf8'));
  return database;
}

/** All rows of all tables, by table, without the random values of migrations. */
function allOf(database: Database.Database): Record<string, unknown[]> {
  return Object.fromEntries(
    tablesOf(database).map(({ name, columns }) => [
      name,
      rowsOf(
        database,
        name,
        columns.filter((column) => column !== 'canonical_id'),
      ),
    ]),
  );
}

test('each version that was given out has its metadata here', () => {
  assert.ok(FILES.length >= 3);
  assert.ok(FILES.every((file) => /^\d{4}-[0-9a-f]{8}\.sql$/.test(file)));
});

for (const file of FILES) {
  test(`SQLite: ${file} migrates with all that people gave`, () => {
    const database = earlier(file);
    const tables = Object.entries(KEPT);
    const before = tables.map(([table, columns]) => rowsOf(database, table, columns));
    assert.ok(before.every((rows) => rows.length > 0));
    migrate(database, migrations, NOW);
    for (const [at, [table, columns]] of tables.entries())
      assert.deepEqual(rowsOf(database, table, columns), before[at], table);
    assert.deepEqual(database.prepare(WRONG_SUMS).all(), []);
    const metadata = database.prepare('SELECT sum(metadata_bytes) FROM versions').pluck().get();
    assert.ok(Number(metadata) > 0);
    database.close();
  });

  const number = Number(file.slice(0, 4));
  test(`PostgreSQL: ${file} migrates to the same rows`, {
    skip: number < FIRST_POSTGRESQL && 'metadata in PostgreSQL began with migration 21',
  }, async () => {
    const name = `earlier_${file.slice(0, 13).replace('-', '_')}`;
    await server.run(`CREATE DATABASE ${name}`);
    const url = server.url('postgres', 'of-the-operator').replace(/postgres$/, name);
    const client = await connect({ url, onEnd: () => {} });
    try {
      const sqlite = earlier(file);
      await begin(client, number);
      await client.query('BEGIN');
      await copyToPostgresql(sqlite, client);
      await client.query('COMMIT');
      await migrateSchema(client, NOW);
      const copy = new Database(':memory:');
      migrate(copy, migrations, NOW);
      await client.query('BEGIN');
      await copyToSqlite(client, copy);
      await client.query('COMMIT');
      migrate(sqlite, migrations, NOW);
      assert.deepEqual(allOf(copy), allOf(sqlite));
    } finally {
      await client.end();
    }
  });
}

/** Migrates an empty database to that schema. */
async function begin(client: pg.Client, number: number): Promise<void> {
  await makeStoreTables(client);
  await client.query(
    'CREATE TABLE migrations (number BIGINT PRIMARY KEY, name TEXT, checksum TEXT, applied_at BIGINT)',
  );
  for (const migration of postgresqlMigrations.filter((one) => one.number <= number)) {
    await client.query(migration.sql);
    const values = [migration.number, migration.name, checksum(migration), NOW];
    await client.query('INSERT INTO migrations VALUES ($1, $2, $3, $4)', values);
  }
}
