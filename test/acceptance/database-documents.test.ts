/** Documents of MongoDB over REST, and their types as read by the driver. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  Binary,
  BSON,
  type Collection,
  type Db,
  Decimal128,
  type Document,
  Double,
  Int32,
  Long,
  MongoClient,
  ObjectId,
  Timestamp,
  UUID,
} from 'mongodb';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { CliUser } from './cli-kit.ts';
import { DATABASES, newDatabase } from './databases-kit.ts';

const { EJSON } = BSON;
type Item = Document & { _id: string | number | ObjectId };

let cloud: CloudProcess;
let key: string;
let user: CheckedClient;
let path: string;
let client: MongoClient;
let db: Db;
before(async () => {
  cloud = await CloudProcess.start();
  ({ key } = await CliUser.signedIn(cloud.api));
  user = await CheckedClient.open(cloud.api, key);
  const made = await user.expect(201, DATABASES, { json: { name: 'documents', engine: 'mongodb' } });
  path = `${DATABASES}/${made.database_id}`;
  client = await new MongoClient(String(made.connection.uri)).connect();
  db = client.db();
});
after(async () => {
  await client?.close();
  await cloud?.stop();
});

const EXACT = { promoteValues: false } as const;
const items = (name: string): Collection<Item> => db.collection<Item>(name);
const read = (table: string, more: object = {}) =>
  user.expect(200, `${path}/rows/read`, { json: { table, ...more } });
const documents = async (table: string, more: object = {}): Promise<Item[]> =>
  (await read(table, more)).rows.map(([document]: [Item]) => document);
const change = (table: string, changes: readonly object[], more: object = {}) =>
  user.expect(200, `${path}/rows/change`, { json: { table, changes, ...more } });
const target = (query: Record<string, string>) => `${path}/rows/import?${new URLSearchParams(query)}`;
const form = (text: string) => {
  const made = new FormData();
  made.set('file', new Blob([text]), 'rows');
  return { body: made };
};
const imported = (text: string, query: Record<string, string>) => user.expect(200, target(query), form(text));
const exported = async (table: string, format: string) => {
  const url = `${cloud.api}${path}/rows/export?${new URLSearchParams({ table, format })}`;
  const response = await fetch(url, { headers: { 'x-api-key': key } });
  return { status: response.status, text: await response.text() };
};

const TYPED = {
  _id: new ObjectId('507f1f77bcf86cd799439011'),
  int: new Int32(5),
  double: new Double(5),
  half: new Double(0.5),
  great: new Double(1e12),
  zero: new Double(-0),
  nan: new Double(Number.NaN),
  long: Long.fromNumber(7),
  large: Long.fromString('9007199254740993'),
  money: Decimal128.fromString('1.10'),
  at: new Date('2026-02-03T04:05:06.007Z'),
  before: new Date(-5),
  bytes: new Binary(Buffer.from([0, 255])),
  uuid: new UUID('3b241101-e2bb-4255-8caf-4136c566a962'),
  time: new Timestamp({ t: 1, i: 2 }),
  none: null,
  '<b>': '<img src=x onerror=alert(1)>',
  'a.b': true,
  inner: { z: [1, { a: [] }], a: 'x' },
};

describe('documents over REST', () => {
  test('a document comes with the type of each value, and an edit keeps those of the others', async () => {
    await items('typed').insertOne(TYPED);
    const [found] = await documents('typed');
    assert.deepEqual(found?._id, { $oid: '507f1f77bcf86cd799439011' });
    assert.deepEqual([found?.int, found?.double, found?.half], [5, { $numberDouble: '5.0' }, 0.5]);
    assert.deepEqual(found?.at, { $date: '2026-02-03T04:05:06.007Z' });
    const shown = await change('typed', [{ action: 'update', old: found, values: { ...found, int: 6 } }], {
      dry_run: true,
    });
    assert.equal(shown.changed, 0);
    assert.equal(shown.statements[0].command.update, 'typed');
    await change('typed', [{ action: 'update', old: found, values: { ...found, int: 6 } }]);
    const stored = await items('typed').findOne({ _id: TYPED._id }, EXACT);
    const expected = { ...TYPED, int: new Int32(6), inner: { z: [new Int32(1), { a: [] }], a: 'x' } };
    assert.equal(EJSON.stringify(stored, { relaxed: false }), EJSON.stringify(expected, { relaxed: false }));
  });

  test('a document that was changed meanwhile is not overwritten, and nothing else is changed', async () => {
    await items('raced').insertMany([
      { _id: 1, n: 1 },
      { _id: 2, n: 1 },
    ]);
    const [one, two] = await documents('raced');
    await items('raced').updateOne({ _id: 2 }, { $set: { seen: true } });
    const changes = [
      { action: 'insert', values: { _id: 3 } },
      { action: 'update', old: one, values: { _id: 1, n: 2 } },
      { action: 'update', old: two, values: { _id: 2, n: 2 } },
    ];
    const refused = await user.refused(409, 'write_conflict', [
      `${path}/rows/change`,
      { json: { table: 'raced', changes } },
    ]);
    assert.equal(refused.index, 2);
    assert.deepEqual(await items('raced').find().sort({ _id: 1 }).toArray(), [
      { _id: 1, n: 1 },
      { _id: 2, n: 1, seen: true },
    ]);
    await user.refused(409, 'write_conflict', [
      `${path}/rows/change`,
      { json: { table: 'raced', changes: [{ action: 'delete', old: two }] } },
    ]);
    await change('raced', [{ action: 'delete', old: one }, changes[0] as object]);
    assert.deepEqual(await items('raced').distinct('_id'), [2, 3]);
  });

  test('one of several changes that the database refuses undoes the others', async () => {
    await items('unique').insertOne({ _id: 1 });
    const changes = [
      { action: 'insert', values: { _id: 2 } },
      { action: 'insert', values: { _id: 1 } },
    ];
    const body = { json: { table: 'unique', changes } };
    await user.refused(400, 'query_failed', [`${path}/rows/change`, body]);
    assert.deepEqual(await items('unique').distinct('_id'), [1]);
    const operators = [{ action: 'update', old: { _id: 1 }, values: { $set: { a: 1 } } }];
    await user.refused(400, 'invalid_request', [
      `${path}/rows/change`,
      { json: { table: 'unique', changes: operators } },
    ]);
    const dated = [{ action: 'insert', values: { at: { $date: 'yesterday' } } }];
    await user.refused(400, 'query_failed', [
      `${path}/rows/change`,
      { json: { table: 'unique', changes: dated } },
    ]);
  });

  test('a filter of MongoDB, conditions, an order, and pages by the key over all types of it', async () => {
    const ids = [null, -1, 2.5, 10, 'a', 'b', { a: 1 }, new ObjectId(), new ObjectId(), true, new Date(0)];
    // The driver creates an _id for a document where it is null.
    const all = ids.map((_id, n) => ({ _id, n, word: n % 2 ? 'Odd.' : 'even' }));
    await db.command({ insert: 'many', documents: all });
    for (const descending of [false, true]) {
      const found: unknown[] = [];
      let after: unknown[] | undefined;
      for (let pages = 0; pages === 0 || after !== undefined; pages++) {
        assert.ok(pages < 20);
        const page = await read('many', {
          limit: 2,
          sort: [{ column: '_id', descending }],
          ...(after === undefined ? {} : { after }),
        });
        found.push(...page.rows.map(([{ n }]: [Item]) => n));
        after = page.next ?? undefined;
      }
      const order = [...ids.keys()];
      assert.deepEqual(found, descending ? order.toReversed() : order);
    }
    const match = { n: { $gte: { $numberLong: '9' } } };
    const filtered = await read('many', { match, count: true });
    assert.equal(filtered.total, 2);
    const odd = await documents('many', {
      filter: [{ column: 'word', operator: 'starts_with', value: 'ODD.' }],
      match: { n: { $lt: 4 } },
      sort: [{ column: 'n', descending: true }],
    });
    assert.deepEqual(
      odd.map(({ n }) => n),
      [3, 1],
    );
    const refuse = (more: object) =>
      user.refused(400, 'invalid_request', [`${path}/rows/read`, { json: { table: 'many', ...more } }]);
    await refuse({ after: [1], sort: [{ column: 'n' }] });
    await refuse({ after: [1], skip: 1 });
    await user.refused(400, 'query_failed', [
      `${path}/rows/read`,
      { json: { table: 'many', match: { $bogus: 1 } } },
    ]);
  });

  test('conditions in MongoDB and pages by key are refused for tables', async () => {
    const sql = await newDatabase(user, 'CREATE TABLE t (id INTEGER PRIMARY KEY)');
    for (const more of [{ match: {} }, { after: [1] }])
      await user.refused(400, 'invalid_request', [`${sql}/rows/read`, { json: { table: 't', ...more } }]);
  });

  test('a view is read, not changed', async () => {
    await db.createCollection('seen', { viewOn: 'many', pipeline: [{ $match: { n: { $lt: 2 } } }] });
    const page = await read('seen', { limit: 1 });
    assert.deepEqual([page.rows.length, page.key, page.next], [1, [], null]);
    await user.refused(400, 'invalid_request', [
      `${path}/rows/change`,
      { json: { table: 'seen', changes: [{ action: 'insert', values: {} }] } },
    ]);
  });

  test('a document of 16 MB is named by its _id and its bytes', async () => {
    const body = 'x'.repeat(16 * 2 ** 20 - 100);
    const large = { _id: 1, body };
    await items('large').insertMany([large, { _id: 2 }]);
    const page = await read('large');
    assert.deepEqual(page.rows[0], [{ _id: 1 }, BSON.calculateObjectSize(large)]);
    assert.equal(page.rows.length, 2);
    const { text } = await exported('large', 'jsonl');
    assert.equal(JSON.parse(text.split('\n')[0] as string).body.length, body.length);
  });
});

describe('imports and exports of documents', () => {
  test('what is exported as Extended JSON is imported with its types', async () => {
    await items('out').insertMany([TYPED, { _id: 'text', n: 1 } as Item]);
    const { text } = await exported('out', 'jsonl');
    assert.equal(text.trim().split('\n').length, 2);
    const done = await imported(text, { table: 'back' });
    assert.deepEqual([done.created, done.rows, done.format], [true, 2, 'json']);
    const all = async (name: string) =>
      EJSON.stringify(await items(name).find({}, EXACT).sort({ _id: 1 }).toArray(), {
        relaxed: false,
      });
    assert.equal(await all('back'), await all('out'));
    const refused = await user.refused(400, 'load_failed', [target({ table: 'back' }), form(text)]);
    assert.deepEqual(
      refused.lines.map(({ line }: { line: number }) => line),
      [1, 2],
    );
    assert.match(refused.lines[0].reason, /duplicate key/);
  });

  test('a list of objects keeps what its numbers say, and gets an _id where it has none', async () => {
    const text = '[{"a":1,"b":1.0,"c":9007199254740993,"d":3000000000,"__proto__":{"x":1}},\n {"e":[1.0]}]';
    const done = await imported(text, { table: 'numbers' });
    assert.equal(done.rows, 2);
    const [one, two] = await items('numbers').find({}, EXACT).toArray();
    assert.ok(one?._id instanceof ObjectId && two?._id instanceof ObjectId);
    assert.ok(one?.a instanceof Int32 && one.b instanceof Double && one.d instanceof Long);
    assert.equal(String(one.c), '9007199254740993');
    assert.ok(one.c instanceof Long && two?.e[0] instanceof Double);
    assert.deepEqual(Object.getOwnPropertyDescriptor(one, '__proto__')?.value, { x: new Int32(1) });
  });

  test('a packed CSV of mongoexport is imported, its ids as ObjectIds', async () => {
    const id = '507f1f77bcf86cd799439011';
    const file = new Blob([gzipSync(`_id,by,n\nObjectId(${id}),"ObjectId(""${id}"")",5\n`)]);
    const body = new FormData();
    body.set('file', file, 'goods.csv.gz');
    await user.expect(200, target({ table: 'mongoexport' }), { body });
    const one = await items('mongoexport').findOne({});
    assert.deepEqual([one?._id, one?.by], [new ObjectId(id), new ObjectId(id)]);
    const workbook = new Blob([`PK\u0003\u0004${'.'.repeat(26)}[Content_Types].xml${'.'.repeat(300)}`]);
    body.set('file', workbook, 'goods.xlsx');
    const { detail } = await user.refused(400, 'load_failed', [target({ table: 'none' }), { body }]);
    assert.match(detail, /is a workbook of Excel, not CSV: save it as CSV there/);
  });

  test('columns get types by a guess that can be changed, and a 24-digit _id is an ObjectId', async () => {
    const csv =
      '_id,zip,n,score,ok,at,note\r\n507f1f77bcf86cd799439011,01234,5,1.5,true,2026-02-03T04:05:06Z,\r\n' +
      '507f1f77bcf86cd799439012,99999,3000000000,2,false,2026-02-04T00:00:00+01:00,""\r\n';
    const shown = await imported(csv, { table: 'guests', dry_run: 'true' });
    const kinds = ['text', 'text', 'integer', 'number', 'boolean', 'timestamp', 'text'];
    assert.deepEqual(
      shown.columns.map(({ type }: { type: string }) => type),
      kinds,
    );
    const columns = JSON.stringify({ score: { type: 'text', name: 'points' } });
    await imported(csv, { table: 'guests', columns });
    const [one, two] = await items('guests').find({}, EXACT).sort({ _id: 1 }).toArray();
    assert.ok(one?._id instanceof ObjectId);
    assert.deepEqual(
      [one?.zip, one?.points, one?.ok, one?.at, 'note' in (one ?? {}), two?.note],
      ['01234', '1.5', true, new Date('2026-02-03T04:05:06Z'), false, ''],
    );
    assert.ok(one?.n instanceof Int32 && two?.n instanceof Long);
    assert.deepEqual(two?.at, new Date('2026-02-03T23:00:00Z'));
    const more = await imported('_id,n\n7,8\n', { table: 'guests' });
    assert.deepEqual([more.created, more.rows], [false, 1]);
    assert.deepEqual(await items('guests').findOne({ _id: 7 }), { _id: 7, n: 8 });
    const csvOut = await exported('guests', 'csv');
    assert.match(csvOut.text, /^_id,at,n,note,ok,points,zip\r\n/);
    assert.match(csvOut.text, /507f1f77bcf86cd799439011,2026-02-03T04:05:06\.000Z,5,,true,1\.5,01234\r\n/);
    const sql = await exported('guests', 'sql');
    assert.equal(sql.status, 400);
  });

  test('one bad document is named with its line, and nothing is imported', async () => {
    const lines = Array.from({ length: 3000 }, (_, n) => JSON.stringify({ _id: n, n }));
    lines[2500] = '{"_id": {"$oid": "no"}}';
    const refused = await user.refused(400, 'load_failed', [
      target({ table: 'bad' }),
      form(lines.join('\n')),
    ]);
    assert.equal(refused.lines[0].line, 2501);
    assert.deepEqual(await db.listCollections({ name: 'bad' }).toArray(), []);
    lines[2500] = '{"_id": 1}';
    await user.refused(400, 'load_failed', [target({ table: 'bad' }), form(lines.join('\n'))]);
    assert.deepEqual(await db.listCollections({ name: 'bad' }).toArray(), []);
    await items('bad').insertOne({ _id: 'kept' });
    await user.refused(400, 'load_failed', [target({ table: 'bad' }), form(lines.join('\n'))]);
    assert.deepEqual(await items('bad').distinct('_id'), ['kept']);
  });
});
