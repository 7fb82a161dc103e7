/** Databases that frameworks create for their tests, beside the given one. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { Document } from 'bson';
import type { MongoClient } from 'mongodb';
import mongoose from 'mongoose';
import type { EngineDatabase } from '../../../databases/engine.ts';
import { eventually } from '../../../testing/eventually.ts';
import { type MongodbFixture, openMongodb } from '../../../testing/mongodb-fixture.ts';

const STAYS = new AbortController().signal;
const MOST = 50;

interface Numbered {
  readonly _id: number;
  readonly text?: string;
}

describe('databases for tests in MongoDB', () => {
  let fixture: MongodbFixture;
  let own: EngineDatabase;
  let uri: string;
  let client: MongoClient;
  before(async () => {
    fixture = openMongodb({ firstPort: 27_850 });
    ({ database: own, uri } = await fixture.make());
    client = await fixture.connect(uri);
  });
  after(() => fixture.close());
  const names = async (of = own) => (await fixture.engine.testDatabases(of)).map(({ name }) => name);
  const dump = async (of: EngineDatabase) =>
    buffer((await fixture.engine.dump(of, 'archive', { signal: STAYS })).stream);
  const load = (of: EngineDatabase, archive: Buffer) =>
    fixture.engine.load(of, Readable.from([archive]), { signal: STAYS });

  test('the first write makes one, which is listed with its bytes and dropped', async () => {
    for (const name of ['test', 'test_Shop', 'shop-1_test', 'prisma_migrate_shadow_db_x', 'test_ä']) {
      const db = client.db(name);
      assert.equal(await db.collection('t').countDocuments(), 0);
      await db.collection<Numbered>('t').insertOne({ _id: 1, text: 'x'.repeat(100_000) });
      await db.collection('t').createIndex({ text: 1 });
      assert.deepEqual(await names(), [name]);
      const { databases } = await client.db('admin').admin().listDatabases();
      assert.deepEqual(
        databases.map((each) => each.name),
        [own.database, name],
      );
      assert.ok((databases[1]?.sizeOnDisk ?? 0) > 100_000);
      await eventually(async () => (await fixture.engine.measure(own)).sizeBytes > 100_000);
      assert.equal(await client.db().collection('t').countDocuments(), 0, 'the own one has nothing of it');
      assert.equal((await db.stats()).db, name);
      await db.collection('t').rename('renamed');
      assert.deepEqual((await db.listCollections({}, { nameOnly: true }).toArray())[0]?.name, 'renamed');
      await db.dropDatabase();
      assert.deepEqual(await names(), []);
    }
    const folder = join(fixture.folder, own.database);
    await eventually(() => !readdirSync(folder).some((file) => file.startsWith('test.')));
  });

  test('one that was only read is none, and lists are filtered as MongoDB does', async () => {
    assert.equal(await client.db('test_read').collection('t').findOne(), null);
    assert.deepEqual(await names(), []);
    for (const name of ['test_a', 'test_b']) await client.db(name).createCollection('t');
    const admin = client.db().admin();
    const listed = async (options: Document) =>
      (await admin.listDatabases(options)).databases.map(({ name }) => name);
    assert.deepEqual(await listed({ filter: { name: /^test_/ }, nameOnly: true }), ['test_a', 'test_b']);
    assert.deepEqual(await listed({ filter: { name: 'test_b' } }), ['test_b']);
    assert.deepEqual(Object.keys((await admin.listDatabases({ nameOnly: true })).databases[0] ?? {}), [
      'name',
    ]);
    for (const name of ['test_a', 'test_b']) await client.db(name).dropDatabase();
  });

  test('other names are refused, and the refusal says which are not', async () => {
    for (const name of ['shop', 'd_aaaaaaaaaaaaaaaa', 'latest'])
      await assert.rejects(client.db(name).collection('t').insertOne({}), {
        code: 13,
        message: /not authorized on .* only test databases are allowed, named test…, …_test… or …_shadow…/,
      });
    await assert.rejects(client.db('admin').collection('t').findOne(), {
      code: 13,
      message: 'not authorized on admin to execute command find',
    });
    for (const name of [`test_${'x'.repeat(60)}`])
      await assert.rejects(client.db(name).collection('t').insertOne({}), { code: 73 });
  });

  test('mongoose runs its tests on one, with transactions, and drops it', async () => {
    const connection = await mongoose.createConnection(uri, { dbName: 'shop_test' }).asPromise();
    const Product = connection.model('Product', new mongoose.Schema({ name: String, left: Number }));
    await Product.init();
    await connection.transaction(async (session) => {
      await Product.create([{ name: 'pear', left: 2 }], { session });
      await Product.updateOne({ name: 'pear' }, { $inc: { left: -1 } }, { session });
    });
    assert.equal((await Product.findOne({ name: 'pear' }))?.left, 1);
    const failing = connection.transaction(async (session) => {
      await Product.deleteMany({}, { session });
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    assert.equal(await Product.countDocuments(), 1);
    await connection.dropDatabase();
    await connection.close();
    assert.deepEqual(await names(), []);
  });

  test('many are used at once, more than are kept open', async () => {
    const all = Array.from({ length: 20 }, (_, number) => `test_worker_${number}`);
    for (let round = 0; round < 3; round++)
      await Promise.all(all.map((name) => client.db(name).collection('t').insertOne({ round })));
    for (const name of all) assert.equal(await client.db(name).collection('t').countDocuments(), 3, name);
    await fixture.engine.restart(own);
    for (const name of all) assert.equal(await client.db(name).collection('t').countDocuments(), 3, name);
    for (const name of all) await client.db(name).dropDatabase();
  });

  test('a neighbour has none of them, and its own of the same name', async () => {
    const { uri: other, database } = await fixture.make();
    const theirs = await fixture.connect(other);
    await client.db('test').collection('t').insertOne({ of: 'own' });
    assert.equal(await theirs.db('test').collection('t').countDocuments(), 0);
    await theirs.db('test').collection('t').insertOne({ of: 'neighbour' });
    assert.deepEqual(await names(database), ['test']);
    assert.equal((await client.db('test').collection('t').findOne())?.of, 'own');
    await fixture.engine.drop(database.database);
    await client.db('test').dropDatabase();
  });

  test('there is a bound of them, and one that is dropped makes room', async () => {
    for (let i = 0; i < MOST; i++) await client.db(`test_many_${i}`).createCollection('t');
    await assert.rejects(client.db('test_more').createCollection('t'), {
      code: 96,
      message: /there are 50 test databases, the maximum: drop/,
    });
    await client.db('test_many_0').dropDatabase();
    await client.db('test_more').createCollection('t');
    for (const name of await names()) await client.db(name).dropDatabase();
  });

  test('they count for the size limit, and are read only with the database', async () => {
    const { database, uri: address } = await fixture.make({ sizeLimitBytes: 2 ** 20 });
    const small = await fixture.connect(address);
    const half = { text: 'x'.repeat(500_000) };
    await small
      .db('test_full')
      .collection('t')
      .insertOne({ ...half });
    await assert.rejects(
      small
        .db()
        .collection('t')
        .insertOne({ ...half }),
      { code: 14_031 },
    );
    await assert.rejects(
      small
        .db('test_more')
        .collection('t')
        .insertOne({ ...half }),
      { code: 14_031 },
    );
    await small.db('test_full').dropDatabase();
    await eventually(() =>
      small
        .db()
        .collection('t')
        .insertOne({ ...half })
        .then(
          () => true,
          () => false,
        ),
    );
    await fixture.engine.restrict(database, 'read_only');
    await assert.rejects(
      small
        .db('test_more')
        .collection('t')
        .insertOne({ ...half }),
      { code: 14_031 },
    );
    await fixture.engine.drop(database.database);
  });

  test('dumps and copies hold them, and a load makes those that are missing', async () => {
    const { database: copy, uri: address } = await fixture.make();
    await client.db().collection<Numbered>('own').insertOne({ _id: 1 });
    await client
      .db('test_kept')
      .collection<Numbered>('t')
      .insertMany([{ _id: 1 }, { _id: 2 }]);
    await client.db('test_kept').collection('t').createIndex({ a: 1 }, { name: 'kept' });
    await client.db('shop_test').createCollection('v', { viewOn: 't', pipeline: [] });
    await fixture.engine.fork(own, copy, STAYS);
    const there = await fixture.connect(address);
    assert.deepEqual(await names(copy), ['shop_test', 'test_kept']);
    assert.equal(await there.db('test_kept').collection('t').countDocuments(), 2);
    assert.ok(await there.db('test_kept').collection('t').indexExists('kept'));
    await there.db('test_kept').collection<Numbered>('t').insertOne({ _id: 3 });
    // A load keeps the existing ones.
    await load(copy, await dump(own));
    assert.equal(await there.db('test_kept').collection('t').countDocuments(), 3);
    assert.equal(await there.db().collection('own').countDocuments(), 1);
    for (const name of await names()) await client.db(name).dropDatabase();
    await fixture.engine.drop(copy.database);
  });
});
