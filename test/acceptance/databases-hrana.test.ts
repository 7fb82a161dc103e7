/** Hrana 3 as used by libSQL's own client: protobuf over HTTP and over WebSocket. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { createClient, type Client as Driver } from '@libsql/client';
import * as hrana from '@libsql/hrana-client';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { eventually } from '../harness/waiting.ts';
import { addressOf, type Database, newDatabase } from './hrana-kit.ts';

let cloud: CloudProcess;
let shop: Database;
before(async () => {
  cloud = await sharedCloud();
  shop = await newDatabase(await new Client(cloud.api).newUser(), 'shop');
});

const CLIENTS: Readonly<Record<string, () => hrana.Client>> = {
  'protobuf over HTTP': () =>
    hrana.openHttp(addressOf(shop, 'http'), shop.connection.password, undefined, undefined, 3),
  'protobuf over WebSocket': () => hrana.openWs(addressOf(shop, 'ws'), shop.connection.password, 3),
};

for (const [name, open] of Object.entries(CLIENTS)) {
  describe(name, () => {
    let client: hrana.Client;
    let stream: hrana.Stream;
    before(async () => {
      client = open();
      assert.equal(await client.getVersion(), 3);
      client.intMode = 'bigint';
      stream = client.openStream();
      await stream.sequence('DROP TABLE IF EXISTS t; CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b)');
    });
    after(() => client.close());

    test('values of every type come back as they went in', async () => {
      const bytes = Uint8Array.from({ length: 300 }, (_, index) => index % 256);
      const values = [
        'é"\\\n',
        '',
        1.5,
        -0.25,
        null,
        bytes,
        2n ** 62n,
        -(2n ** 63n),
        0n,
        -1n,
        'x'.repeat(70_000),
      ];
      for (const value of values) {
        const stored = await stream.queryValue(['SELECT ?', [value]]);
        const shown = stored.value instanceof ArrayBuffer ? new Uint8Array(stored.value) : stored.value;
        assert.deepEqual(shown, value);
      }
      const named = await stream.queryRow(['SELECT :a, @b, ?', { a: 1n, '@b': 'two' }]).catch(String);
      assert.match(String(named), /No argument|parameter/);
      const both = await stream.queryRow(['SELECT :a AS a, $b', { a: 1n, $b: 'two' }]);
      assert.deepEqual([both.row?.[0], both.row?.[1], both.columnNames], [1n, 'two', ['a', '$b']]);
    });

    test('rows, types, counts and row ids', async () => {
      const inserted = await stream.run(['INSERT INTO t (a, b) VALUES (?, ?), (?, ?)', ['x', 1n, 'y', 2n]]);
      assert.deepEqual([inserted.affectedRowCount, inserted.lastInsertRowid], [2, 2n]);
      const { rows, columnDecltypes } = await stream.query('SELECT * FROM t ORDER BY id');
      assert.deepEqual(
        rows.map(({ a, b }) => [a, b]),
        [
          ['x', 1n],
          ['y', 2n],
        ],
      );
      assert.deepEqual(columnDecltypes, ['INTEGER', 'TEXT', undefined]);
      const described = await stream.describe('SELECT a FROM t WHERE id = :id');
      assert.deepEqual(described, {
        paramNames: [':id'],
        columns: [{ name: 'a', decltype: 'TEXT' }],
        isExplain: false,
        isReadonly: true,
      });
      assert.equal((await stream.describe('EXPLAIN DELETE FROM t')).isExplain, true);
    });

    test('batches with conditions, at once and by a cursor', async () => {
      for (const isCursor of [false, true]) {
        const batch = stream.batch(isCursor);
        const good = batch.step();
        const one = good.queryValue('SELECT 1');
        const bad = batch.step().condition(hrana.BatchCond.ok(good));
        const failed = bad.run('SELECT missing').catch((error: Error) => error);
        const skipped = batch.step().condition(hrana.BatchCond.ok(bad)).queryValue('SELECT 2');
        const either = hrana.BatchCond.or(batch, [hrana.BatchCond.ok(bad), hrana.BatchCond.error(bad)]);
        const both = hrana.BatchCond.and(batch, [either, hrana.BatchCond.not(hrana.BatchCond.ok(bad))]);
        const inside = hrana.BatchCond.and(batch, [both, hrana.BatchCond.isAutocommit(batch)]);
        const rows = batch
          .step()
          .condition(inside)
          .query('SELECT value FROM json_each(?)'.replace('?', "'[1,2,3]'"));
        const counted = batch.step().run("INSERT INTO t (a) VALUES ('z')");
        await batch.execute();
        assert.equal((await one)?.value, 1n);
        const error = (await failed) as hrana.ResponseError;
        assert.match(`${error.code} ${error.message}`, /^SQLITE_ERROR .*no such column: missing/);
        assert.equal(await skipped, undefined);
        assert.deepEqual(
          (await rows)?.rows.map((row) => row[0]),
          [1n, 2n, 3n],
        );
        assert.equal((await counted)?.affectedRowCount, 1);
      }
    });

    test('a transaction is seen by its stream, and undone when that is closed', async () => {
      const other = client.openStream();
      await other.run('BEGIN');
      assert.equal(await other.getAutocommit(), false);
      await other.run("INSERT INTO t (a) VALUES ('undone')");
      const count = "SELECT count(*) FROM t WHERE a = 'undone'";
      assert.equal((await other.queryValue(count)).value, 1n);
      assert.equal((await stream.queryValue(count)).value, 0n);
      other.close();
      await eventually('the end of the transaction', async () => {
        const third = client.openStream();
        const isFree = await third.run("INSERT INTO t (a) VALUES ('free')").then(
          () => true,
          () => false,
        );
        third.closeGracefully();
        return isFree;
      });
      assert.equal((await stream.queryValue(count)).value, 0n);
      assert.equal(await stream.getAutocommit(), true);
    });

    test('texts that are stored are run and forgotten', async () => {
      const owner = client instanceof hrana.WsClient ? client : (stream as hrana.HttpStream);
      const sql = owner.storeSql('SELECT 7');
      assert.equal((await stream.queryValue(sql)).value, 7n);
      assert.equal((await stream.queryValue(sql)).value, 7n);
      sql.close();
    });

    test('a large result by a cursor, read in pieces', async () => {
      const series =
        'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, hex(randomblob(20)) FROM n';
      const batch = stream.batch(true);
      const rows = batch.step().query(series);
      await batch.execute();
      assert.equal((await rows)?.rows.length, 20_000);
      await assert.rejects(stream.query('SELECT zeroblob(17000000)'), /RESPONSE_TOO_LARGE|too large/);
      assert.equal((await stream.queryValue('SELECT 1')).value, 1n);
    });
  });
}

describe('the official driver over WebSocket', () => {
  let driver: Driver;
  before(() => {
    const { password } = shop.connection;
    driver = createClient({ url: addressOf(shop, 'ws'), authToken: password });
  });
  after(() => driver.close());

  test('executes, batches, migrates and keeps transactions apart', async () => {
    assert.equal(driver.protocol, 'ws');
    await driver.batch(['DROP TABLE IF EXISTS w', 'CREATE TABLE w (a)'], 'write');
    const { lastInsertRowid } = await driver.execute({ sql: 'INSERT INTO w VALUES (?)', args: [1] });
    assert.equal(lastInsertRowid, 1n);
    const transaction = await driver.transaction('write');
    await transaction.execute('INSERT INTO w VALUES (2)');
    const [seen] = (await driver.execute('SELECT count(*) AS n FROM w')).rows;
    assert.equal(seen?.n, 1);
    await transaction.commit();
    await driver.executeMultiple('INSERT INTO w VALUES (3); INSERT INTO w VALUES (4);');
    await assert.rejects(
      driver.batch(['INSERT INTO w VALUES (5)', 'INSERT INTO nowhere VALUES (1)'], 'write'),
    );
    const all = await Promise.all(
      Array.from({ length: 50 }, () => driver.execute('SELECT sum(a) AS s FROM w')),
    );
    assert.deepEqual([...new Set(all.map(({ rows }) => rows[0]?.s))], [10]);
  });
});

test('messages of protobuf may leave zeros and empty texts out, as proto3 has it', async () => {
  const { LengthDelimited, Varint } = WireType;
  /** A message of one field that is a message. */
  const inside = (field: number, message: Uint8Array) =>
    new BinaryWriter().tag(field, LengthDelimited).bytes(message).finish();
  const text = (field: number, value: string) =>
    new BinaryWriter().tag(field, LengthDelimited).string(value).finish();
  const number = (field: number, value: number) =>
    new BinaryWriter().tag(field, Varint).int32(value).finish();
  const NOTHING = new Uint8Array();
  const request = (id: number, field: number, message: Uint8Array) =>
    inside(2, Buffer.concat([id === 0 ? NOTHING : number(1, id), inside(field, message)]));
  const webSocket = new WebSocket(addressOf(shop, 'ws'), 'hrana3-protobuf');
  const answers: Buffer[] = [];
  webSocket.on('message', (data: Buffer) => answers.push(data));
  await once(webSocket, 'open');
  // A stream, a text and a request with the number 0.
  webSocket.send(inside(1, text(1, shop.connection.password)));
  webSocket.send(request(0, 2, NOTHING));
  webSocket.send(request(1, 11, text(2, 'SELECT 7')));
  webSocket.send(request(2, 4, inside(2, number(2, 0))));
  webSocket.send(request(3, 12, NOTHING));
  webSocket.send(request(4, 11, NOTHING));
  webSocket.send(request(5, 3, NOTHING));
  await eventually('the answers', () => answers.length === 7);
  // 3 is `response_ok`, 4 would be `response_error`.
  assert.deepEqual(
    answers.slice(1).map((answer) => new BinaryReader(answer).tag()[0]),
    [3, 3, 3, 3, 3, 3],
  );
  webSocket.close();
});

test('a body that is no protobuf is refused in words', async () => {
  const { password } = shop.connection;
  const post = (path: string, body: Uint8Array) =>
    fetch(`${addressOf(shop, 'http')}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${password}` },
      body: new Uint8Array(body),
    });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('v3-protobuf/pipeline', 'v3-protobuf/cursor'),
      fc.uint8Array({ maxLength: 300 }),
      async (path, body) => {
        const { status } = await post(path, body);
        assert.ok(status === 200 || status === 400, String(status));
      },
    ),
    { numRuns: 200 },
  );
  // Conditions within conditions.
  let nested: Buffer = Buffer.from([0x32, 0x00]);
  for (let depth = 0; depth < 5000; depth++) {
    const length = nested.length;
    const header =
      length < 128
        ? [length]
        : length < 16_384
          ? [(length & 127) | 128, length >> 7]
          : [(length & 127) | 128, ((length >> 7) & 127) | 128, length >> 14];
    nested = Buffer.concat([Buffer.from([0x1a, ...header]), nested]);
  }
  const { status } = await post('v3-protobuf/cursor', nested);
  assert.equal(status, 400);
});
