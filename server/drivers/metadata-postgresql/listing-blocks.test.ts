/** The amount that PostgreSQL reads for a page of a listing: blocks, which do not depend on the host. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import type { Reads, SqlValue } from '../../metadata/metadata.ts';
import { ObjectSql } from '../../storage/objects/object-sql.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { connect, prepared, readsOf, toSent } from './connections.ts';
import { migrateSchema } from './postgresql-schema.ts';

const ROWS = 50_000;
const PAGE = 1000;
/** One block per row, because names and rows are in different orders, and some for the index. */
const MAX_BLOCKS = 1100;
const MIDDLE = { name: '8', after: true };

describe('a page of 1,000 names', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let client: pg.Client;
  let asked: { readonly sql: string; readonly params: readonly SqlValue[] }[] = [];
  let objects: ObjectSql;
  before(async () => {
    server = await operatorPostgresql();
    client = await connect({ url: server.url('postgres', 'of-the-operator'), onEnd: () => {} });
    await migrateSchema(client, 0);
    const { all, get } = readsOf(client);
    const noted: Reads = {
      all: (sql, ...params) => {
        asked.push({ sql, params });
        return all(sql, ...params);
      },
      get,
    };
    objects = new ObjectSql(noted);
    await fill();
  });
  after(async () => {
    await client?.end();
    await server?.close();
  });

  /** Rows in the order of their times, names in no order. */
  async function fill(): Promise<void> {
    // They belong to no bucket.
    await client.query('SET session_replication_role = replica');
    await client.query(`
      INSERT INTO objects (id, object_id, bucket_id, name, current, size_bytes, changed_at, listed, etag, storage_class)
      SELECT i, 'obj-' || lpad(i::text, 26, '0'), 1, md5(i::text) || '/a-name.txt', i, 4096, i, i, md5(i::text), 'STANDARD'
      FROM generate_series(1, ${ROWS}) AS i`);
    await client.query(`
      INSERT INTO versions (id, version_id, object, size_bytes, etag, mime_type, storage_class, created_at)
      SELECT i, 'ver-' || lpad(i::text, 26, '0'), i, 4096, md5(i::text), 'text/plain', 'STANDARD', i
      FROM generate_series(1, ${ROWS}) AS i`);
    await client.query('VACUUM (ANALYZE) objects, versions');
  }

  /** Blocks read by the statements of `read`. */
  async function blocksOf(read: () => PromiseLike<unknown> | unknown): Promise<number> {
    asked = [];
    await read();
    let blocks = 0;
    for (const { sql, params } of asked) {
      const text = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${prepared(sql).text}`;
      const { rows } = await client.query({ text, values: params.map(toSent) });
      const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
      blocks += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    }
    return blocks;
  }

  test('that lists of S3 show reads the rows of objects alone', async (t) => {
    const rows = await objects.listedEntries(1, MIDDLE, PAGE);
    assert.equal(rows.length, PAGE);
    assert.equal(rows[0]?.size_bytes, 4096);
    const blocks = await blocksOf(() => objects.listedEntries(1, MIDDLE, PAGE));
    t.diagnostic(`${blocks} blocks`);
    assert.ok(blocks >= PAGE / 10 && blocks <= MAX_BLOCKS, `${blocks} blocks`);
    // It does not depend on the start of the page.
    const last = await blocksOf(() => objects.listedEntries(1, { name: 'f', after: true }, PAGE));
    assert.ok(last <= MAX_BLOCKS, `${last} blocks at the end`);
  });

  test('with all columns of their versions reads several times as much', async (t) => {
    const blocks = await blocksOf(() => objects.liveEntries(1, MIDDLE, PAGE));
    t.diagnostic(`${blocks} blocks`);
    assert.ok(blocks > 2 * MAX_BLOCKS, 'otherwise this test measures nothing');
  });
});
