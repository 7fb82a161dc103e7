/** MongoDB databases in use by their owners: over the API, with MongoDB's own driver, and with mongoose. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import mongoose from 'mongoose';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const ROOT = join(import.meta.dirname, '../..');

describe('MongoDB databases', () => {
  let cloud: CloudProcess;
  let user: Client;
  const drivers: MongoClient[] = [];
  before(async () => {
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
  });
  after(async () => {
    await Promise.all(drivers.map((driver) => driver.close(true)));
    await cloud.stop();
  });

  async function connect(uri: string): Promise<MongoClient> {
    const driver = new MongoClient(uri);
    drivers.push(driver);
    return driver.connect();
  }
  async function expect(status: number, path: string, more?: Parameters<Client['call']>[1]) {
    const answer = await user.call(path, more);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    return answer.body;
  }
  const make = (name: string, more: object = {}) =>
    expect(201, '/api/databases', { json: { name, engine: 'mongodb', ...more } });

  test('the code for mongoose runs as it is shown', async () => {
    const { database_id: id } = await make('snippet');
    const { frameworks } = await expect(200, `/api/databases/${id}/credentials`);
    assert.equal(frameworks[0].framework, 'mongoose');
    const run = ['--input-type=module', '--eval', frameworks[0].code];
    const { stdout } = await promisify(execFile)(process.execPath, run, { cwd: ROOT });
    assert.equal(stdout, '1\n');
  });

  test('a database is made, used with the driver, dumped, loaded, copied, and gone with its sessions', async () => {
    const made = await make('shop');
    const path = `/api/databases/${made.database_id}`;
    const driver = await connect(made.connection.uri);
    const orders = driver.db().collection<{ _id: number; what: string }>('orders');
    await orders.createIndex({ what: 1 }, { unique: true });
    await orders.insertMany([
      { _id: 1, what: 'tea' },
      { _id: 2, what: 'milk' },
    ]);
    await assert.rejects(orders.insertOne({ _id: 3, what: 'tea' }), { code: 11000 });
    const json = { command: { find: 'orders', filter: { what: 'tea' } } };
    const { columns, rows } = await expect(200, `${path}/query`, { json });
    assert.deepEqual(
      columns.map(({ name }: { name: string }) => name),
      ['_id', 'what'],
    );
    assert.deepEqual(rows, [[1, 'tea']]);
    const rowsOf = async (command: object) =>
      (await expect(200, `${path}/query`, { json: { command } })).rows.map((row: unknown[]) => row[0]);
    await expect(200, `${path}/query`, { json: { command: { ping: 1 } } });
    assert.deepEqual(await rowsOf({ listCollections: 1 }), ['orders']);
    assert.deepEqual(await rowsOf({ listIndexes: 'orders' }), [2, 2]);
    assert.deepEqual(await rowsOf({ aggregate: 'orders', pipeline: [{ $count: 'n' }], cursor: {} }), [2]);
    const { cursor } = await driver.db().command({ find: 'orders', batchSize: 0 }, { promoteLongs: false });
    assert.deepEqual(
      await rowsOf({ getMore: { $numberLong: `${cursor.id}` }, collection: 'orders' }),
      [1, 2],
    );
    const failed = await user.call(`${path}/query`, { json: { command: { drop: 'orders' } } });
    const { code, engine_code } = failed.body;
    assert.deepEqual([failed.status, code, engine_code], [400, 'query_failed', 'Unauthorized']);
    const [table] = await expect(200, `${path}/tables`);
    assert.deepEqual([table.name, table.type, table.estimated_rows], ['orders', 'collection', 2]);
    assert.deepEqual(
      table.indexes.map(({ columns: fields, unique }: { columns: string[]; unique: boolean }) => [
        fields,
        unique,
      ]),
      [
        [['_id'], true],
        [['what'], true],
      ],
    );
    const dump = await (await user.fetch(`${path}/dump`)).blob();
    await orders.drop();
    const body = new FormData();
    body.set('file', dump, 'shop.archive');
    await expect(200, `${path}/load`, { body });
    assert.deepEqual(await orders.find().sort({ _id: 1 }).toArray(), [
      { _id: 1, what: 'tea' },
      { _id: 2, what: 'milk' },
    ]);
    await assert.rejects(orders.insertOne({ _id: 3, what: 'tea' }), { code: 11000 });
    const copy = await make('copy', { from: { database_id: made.database_id } });
    const other = await connect(copy.connection.uri);
    assert.equal(await other.db().collection('orders').countDocuments(), 2);
    await user.call(path, { method: 'DELETE' });
    await assert.rejects(orders.findOne());
    await assert.rejects(connect(made.connection.uri), { code: 18 });
    await expect(200, `${path}/undelete`, { method: 'POST' });
    const back = await connect((await expect(200, `${path}/credentials`)).connection.uri);
    assert.equal(await back.db().collection('orders').countDocuments(), 2);
  });

  test('it is used with mongoose', async () => {
    const { connection } = await make('mongoose');
    const odm = await mongoose.createConnection(connection.uri).asPromise();
    const schema = new mongoose.Schema(
      { email: { type: String, required: true, unique: true }, tags: [String] },
      { timestamps: true },
    );
    const Person = odm.model('Person', schema);
    try {
      await Person.init();
      const ada = await Person.create({ email: 'ada@example.org', tags: ['a'] });
      await assert.rejects(Person.create({ email: 'ada@example.org' }), { code: 11000 });
      ada.tags.push('b');
      await ada.save();
      const found = await Person.findOne({ tags: 'b' }).lean();
      assert.deepEqual(found?.tags, ['a', 'b']);
      const changed = await Person.findOneAndUpdate(
        { email: 'ada@example.org' },
        { $set: { tags: [] } },
        { returnDocument: 'after' },
      );
      assert.deepEqual([...(changed?.tags ?? ['?'])], []);
      assert.deepEqual((await Person.deleteMany({})).deletedCount, 1);
    } finally {
      await odm.close();
    }
  });

  test('the database of another account is refused by its name, from within a pipeline too', async () => {
    const [mine, theirs] = [await make('mine'), await make('theirs')];
    const nameOf = (made: { connection: { database: string } }) => made.connection.database;
    const driver = await connect(mine.connection.uri);
    const secrets = (await connect(theirs.connection.uri)).db().collection('secrets');
    await secrets.insertOne({ secret: true });
    const orders = driver.db().collection('orders');
    await orders.insertOne({ a: 1 });
    const into = { db: nameOf(theirs), coll: 'secrets' };
    await assert.rejects(driver.db(nameOf(theirs)).collection('secrets').findOne(), { code: 13 });
    for (const stage of [
      { $lookup: { from: into, localField: 'a', foreignField: 'a', as: 'b' } },
      { $out: into },
      { $merge: { into } },
    ])
      await assert.rejects(orders.aggregate([stage]).toArray(), JSON.stringify(stage));
    const asTheirs = mine.connection.uri.replaceAll(nameOf(mine), nameOf(theirs));
    await assert.rejects(connect(asTheirs), { code: 18 });
    assert.equal(await secrets.countDocuments(), 1);
  });

  test('nobody has a program of theirs run', async () => {
    const driver = await connect((await make('scripts')).connection.uri);
    const notes = driver.db().collection('notes');
    await notes.insertOne({ a: 1 });
    const code = { body: 'function() { return 1 }', args: [], lang: 'js' };
    const refused: readonly [string, () => Promise<unknown>][] = [
      ['$where', () => notes.find({ $where: 'true' }).toArray()],
      ['$function', () => notes.aggregate([{ $project: { b: { $function: code } } }]).toArray()],
      ['$accumulator', () => notes.aggregate([{ $group: { _id: 1, b: { $accumulator: {} } } }]).toArray()],
      [
        'mapReduce',
        () =>
          driver.db().command({ mapReduce: 'notes', map: code.body, reduce: code.body, out: { inline: 1 } }),
      ],
    ];
    for (const [what, run] of refused) await assert.rejects(run(), isServerError(what));
  });

  test('what is too large, too deep or never ends is refused, and the database goes on', async () => {
    const driver = await connect((await make('hostile')).connection.uri);
    const notes = driver.db().collection<Document>('notes');
    await notes.insertOne({ text: `${'a'.repeat(60)}b` });
    const nested = (levels: number) => {
      let document: Document = {};
      for (let level = 0; level < levels; level++) document = { a: document };
      return document;
    };
    await assert.rejects(notes.insertOne({ big: 'x'.repeat(17 * 2 ** 20) }));
    await assert.rejects(notes.insertOne(nested(1001)));
    for (let cursor = 0; cursor < 500; cursor++) {
      await driver.db().command({ find: 'notes', batchSize: 0 });
    }
    const isOver = { code: 50, codeName: 'MaxTimeMSExpired' };
    const pipeline = [{ $match: { text: { $regex: '^(a+)+$' } } }];
    await assert.rejects(notes.aggregate(pipeline).toArray(), isOver);
    await notes.insertOne({ _id: new ObjectId(), after: true });
  });

  test('it is there again, with what was acknowledged, when Cloudlet was killed', async () => {
    const { connection } = await make('kept');
    const notes = (await connect(connection.uri)).db().collection<{ _id: number }>('notes');
    await notes.insertOne({ _id: 1 });
    await cloud.crash();
    await cloud.start();
    user = new Client(cloud.api, user.key);
    await eventually('the database', () => notes.findOne({ _id: 1 }).catch(() => null));
  });
});

function isServerError(what: string) {
  return (error: { name?: string }) => {
    assert.equal(error.name, 'MongoServerError', what);
    return true;
  };
}
