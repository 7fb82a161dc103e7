/** Migrations beside nodes that go on: what they wait for, and what a kill in the middle leaves. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type Migration, postgresqlMigrations } from '../../metadata/migrations/migrations.ts';
import { systemClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { sharedPostgresql } from '../../testing/shared-postgresql.ts';
import { connect } from './connections.ts';
import { makeStoreTables, migrateSchema } from './postgresql-schema.ts';

/** The one that rebuilds an index of the largest table. */
const INDEX_AT = postgresqlMigrations.findIndex(({ name }) => name === 'folder sizes');
const BEFORE_INDEX = postgresqlMigrations.slice(0, INDEX_AT);
const WITH_INDEX = postgresqlMigrations.slice(0, INDEX_AT + 1);
/** Longer than a lock of a moment, shorter than what holds one up. */
const PATIENCE_MS = 3000;

describe('migrations beside nodes', { skip: noPostgresql }, () => {
  const { newDatabase, keep } = sharedPostgresql();

  async function database(migrations: readonly Migration[]) {
    const url = await newDatabase();
    const open = async () => {
      const client = await connect({ url, writer: 'w', onEnd: () => {} });
      void keep(Promise.resolve({ close: () => client.end().catch(() => {}) }));
      return client;
    };
    const client = await open();
    await makeStoreTables(client);
    await migrateSchema(client, 0, migrations);
    return { client, open };
  }

  /** Another node, whose statements fail rather than wait. */
  async function impatient(open: () => Promise<pg.Client>): Promise<pg.Client> {
    const client = await open();
    await client.query(`SET statement_timeout = ${PATIENCE_MS}`);
    return client;
  }

  /** A recovery point that copies rows: it began before, and reads them as they were. */
  async function snapshot(open: () => Promise<pg.Client>, table: string): Promise<pg.Client> {
    const client = await open();
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query(`SELECT count(*) FROM ${table}`);
    return client;
  }

  async function indexes(client: pg.Client): Promise<[string, number][]> {
    const { rows } = await client.query<{ name: string; is_valid: number }>(
      `SELECT c.relname AS name, i.indisvalid AS is_valid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
       WHERE c.relname LIKE 'objects\\_live%' ORDER BY 1`,
    );
    return rows.map(({ name, is_valid }) => [name, is_valid]);
  }

  const isBuilding = (client: pg.Client) =>
    eventually(async () => (await indexes(client)).some(([, isValid]) => isValid === 0));

  test('while an index is built the others read and write, and a recovery point goes on', async () => {
    const { client, open } = await database(BEFORE_INDEX);
    const other = await impatient(open);
    const point = await snapshot(open, 'objects');
    const migrating = migrateSchema(client, 0, WITH_INDEX);
    await isBuilding(other);
    await other.query('UPDATE objects SET size_bytes = 0');
    await other.query('SELECT count(*) FROM objects');
    await sleep(PATIENCE_MS / 2);
    await other.query('UPDATE objects SET size_bytes = 0');
    await point.query('COMMIT');
    await migrating;
    assert.deepEqual(await indexes(other), [['objects_live', 1]]);
    const { rows } = await other.query<{ text: string }>(
      "SELECT pg_get_indexdef('objects_live'::regclass) AS text",
    );
    assert.match(rows[0]?.text ?? '', /INCLUDE \(size_bytes\)/);
  });

  test('two that start at once while an index is built come to the same schema', async () => {
    const { client, open } = await database(BEFORE_INDEX);
    const [second, third] = [await open(), await open()];
    const point = await snapshot(open, 'objects');
    const both = [migrateSchema(client, 0, WITH_INDEX), migrateSchema(second, 0, WITH_INDEX)];
    await isBuilding(third);
    // Both ask for locks by now, and the server looks for deadlocks each second.
    await sleep(PATIENCE_MS / 2);
    await point.query('COMMIT');
    await Promise.all(both);
    assert.deepEqual(await indexes(third), [['objects_live', 1]]);
    const { rows } = await third.query('SELECT count(*) AS n FROM migrations');
    assert.deepEqual(rows, [{ n: WITH_INDEX.length }]);
  });

  test('a kill while an index is built leaves nothing that the next start does not mend', async () => {
    const { client, open } = await database(BEFORE_INDEX);
    const next = await open();
    const point = await snapshot(open, 'objects');
    const killed = assert.rejects(migrateSchema(client, 0, WITH_INDEX));
    await isBuilding(next);
    await next.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%'",
    );
    await killed;
    await point.query('COMMIT');
    assert.deepEqual(await indexes(next), [
      ['objects_live', 1],
      ['objects_live_sizes', 0],
    ]);
    await migrateSchema(next, 0, WITH_INDEX);
    assert.deepEqual(await indexes(next), [['objects_live', 1]]);
  });

  test('a migration waits for who reads a table, and holds up others for a moment only', async () => {
    const { client, open } = await database(postgresqlMigrations);
    const other = await impatient(open);
    const point = await snapshot(open, 'billing_accounts');
    const sql = 'ALTER TABLE billing_accounts ADD COLUMN extra BIGINT';
    const migrating = migrateSchema(client, 0, [
      ...postgresqlMigrations,
      { number: 999, name: 'extra', sql },
    ]);
    const until = systemClock.monotonic() + 2 * PATIENCE_MS;
    while (systemClock.monotonic() < until) await other.query('SELECT count(*) FROM billing_accounts');
    await point.query('COMMIT');
    await migrating;
    await other.query('SELECT extra FROM billing_accounts');
  });

  test('a slow migration keeps nobody from the tables of the one before', async () => {
    const { client, open } = await database(postgresqlMigrations);
    const other = await impatient(open);
    const further = [
      { number: 998, name: 'quick', sql: 'ALTER TABLE billing_accounts ADD COLUMN extra BIGINT' },
      { number: 999, name: 'slow', sql: `SELECT pg_sleep(${(2 * PATIENCE_MS) / 1000})` },
    ];
    const migrating = migrateSchema(client, 0, [...postgresqlMigrations, ...further]);
    await eventually(() =>
      other.query('SELECT extra FROM billing_accounts').then(
        () => true,
        () => false,
      ),
    );
    const { rows } = await other.query('SELECT name FROM migrations WHERE number > 900');
    assert.deepEqual(rows, [{ name: 'quick' }]);
    await migrating;
  });
});
