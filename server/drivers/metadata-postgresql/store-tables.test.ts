/** The store's own tables, as created by earlier versions, and a slow migration. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { postgresqlMigrations } from '../../metadata/migrations/migrations.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { connect } from './connections.ts';
import { makeStoreTables, migrateSchema } from './postgresql-schema.ts';

/**
 * Columns required in each new row, as in the first version that had the table. The list never grows: nodes
 * of the previous version write rows without the new columns.
 */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  store_batches: ['last', 'writer'],
  store_holder: ['id'],
  store_leases: ['name', 'writer'],
  store_nodes: 'beat_at is_host name node_id pid since state url version writer'.split(' '),
};

interface Column {
  readonly table_name: string;
  readonly column_name: string;
  readonly data_type: string;
  readonly is_nullable: string;
  readonly column_default: string | null;
}

describe("the store's tables", { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let client: pg.Client;
  before(async () => {
    server = await operatorPostgresql();
    client = await connect({ url: server.url('postgres', 'of-the-operator'), writer: 'w', onEnd: () => {} });
    await makeStoreTables(client);
  });
  after(async () => {
    await client?.end();
    await server?.close();
  });

  async function columns(): Promise<Column[]> {
    const { rows } = await client.query<Column>(
      `SELECT table_name, column_name, data_type, is_nullable, column_default
       FROM information_schema.columns WHERE table_name LIKE 'store\\_%' ORDER BY table_name, column_name`,
    );
    return rows;
  }

  const mayLack = ({ is_nullable, column_default }: Column) =>
    is_nullable === 'YES' || column_default !== null;

  test('each column that an earlier version may lack is added, with its rows kept', async () => {
    await client.query("INSERT INTO store_batches (writer, last) VALUES ('w', 7)");
    const whole = await columns();
    const later = whole.filter(mayLack);
    assert.ok(later.some(({ column_name }) => column_name === 'report'));
    for (const { table_name, column_name } of later)
      await client.query(`ALTER TABLE ${table_name} DROP COLUMN ${column_name}`);
    assert.equal((await columns()).length, whole.length - later.length);
    for (let i = 0; i < 2; i++) await makeStoreTables(client);
    assert.deepEqual(await columns(), whole);
    const { rows } = await client.query("SELECT last, may_write FROM store_batches WHERE writer = 'w'");
    assert.deepEqual(rows.flatMap(Object.values).map(Number), [7, 1]);
  });

  test('a node of an earlier version can write every row', async () => {
    const required = (await columns()).filter((column) => !mayLack(column));
    const byTable = Map.groupBy(required, ({ table_name }) => table_name);
    const found = [...byTable].map(([table, of]) => [table, of.map(({ column_name }) => column_name)]);
    assert.deepEqual(Object.fromEntries(found), REQUIRED);
  });

  test('a migration takes longer than a statement may, and waits for the one of another node', async () => {
    const sql = 'CREATE TABLE slow (id BIGINT); SELECT pg_sleep(1)';
    const slow = [...postgresqlMigrations, { number: 9999, name: 'slow', sql }];
    const url = server.url('postgres', 'of-the-operator');
    const other = await connect({ url, writer: 'x', onEnd: () => {} });
    try {
      for (const node of [client, other]) await node.query('SET statement_timeout = 300');
      await Promise.all([client, other].map((node) => migrateSchema(node, 0, slow)));
      await makeStoreTables(other);
      const { rows } = await client.query("SELECT to_regclass('slow')::text AS name");
      assert.deepEqual(rows, [{ name: 'slow' }]);
      await assert.rejects(other.query('SELECT pg_sleep(1)'), /statement timeout/);
    } finally {
      await other.end();
    }
  });
});
