/**
 * Behaviour of a server with MongoDB's own driver, and with mongoose: written so that a real server passes as
 * well. TEST_MONGODB_URL is a database of a standalone server for the test, which empties it; otherwise it
 * uses the built-in engine.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import {
  Binary,
  type Collection,
  type Db,
  Decimal128,
  type Document,
  Double,
  GridFSBucket,
  Long,
  MaxKey,
  MinKey,
  MongoClient,
  ObjectId,
  Timestamp,
  UUID,
} from 'mongodb';
import mongoose from 'mongoose';
import { Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';

type Item = Document & { _id: number };

describe('a server of MongoDB', () => {
  let cloud: CloudProcess | null = null;
  let url = process.env.TEST_MONGODB_URL;
  let client: MongoClient;
  let db: Db;
  let items: Collection<Item>;
  before(async () => {
    if (url === undefined) {
      cloud = await sharedCloud();
      const user = await new Client(cloud.api).newUser();
      const made = await user.call('/api/databases', { json: { name: 'driver', engine: 'mongodb' } });
      url = String(made.body.connection.uri);
    }
    client = await new MongoClient(url).connect();
    db = client.db();
    items = db.collection('items');
  });
  after(async () => {
    await db?.dropDatabase();
    await client?.close();
  });
  beforeEach(async () => {
    await db.dropDatabase();
  });

  const ids = async (filter: Document) =>
    (await items.find(filter).sort({ _id: 1 }).toArray()).map(({ _id }) => _id);

  test('has a client wait at the end of a capped collection', async () => {
    const log = await db.createCollection('log', { capped: true, size: 4096 });
    await log.insertOne({ n: 1 });
    const cursor = log.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 20_000 });
    assert.equal((await cursor.next())?.n, 1);
    for (const n of [2, 3]) {
      const waited = cursor.next();
      await log.insertOne({ n });
      assert.equal((await waited)?.n, n);
    }
    await cursor.close();
    const short = log.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 10 });
    for (const n of [1, 2, 3]) assert.equal((await short.tryNext())?.n, n);
    assert.equal(await short.tryNext(), null);
    await short.close();
  });

  test('renames a collection', async () => {
    await items.insertOne({ _id: 1 });
    const renamed = await items.rename('things');
    assert.equal(await renamed.countDocuments(), 1);
    await assert.rejects(items.rename('things'), { code: 26 });
  });

  test('keeps every type', async () => {
    const all = {
      double: new Double(5),
      long: Long.fromString('9007199254740993'),
      decimal: Decimal128.fromString('1.10'),
      id: new ObjectId(),
      uuid: new UUID(),
      binary: new Binary(Buffer.from('ab'), 0x80),
      date: new Date(-5),
      regex: /a.b/i,
      timestamp: new Timestamp({ t: 5, i: 2 }),
      min: new MinKey(),
      max: new MaxKey(),
      none: null,
      nested: [{ a: [[]] }, {}],
      'dotted.name': 1,
      ref: { $ref: 'items', $id: 1 },
    };
    await items.insertOne({ _id: 1, ...all });
    const exact = { promoteValues: false, promoteLongs: false, bsonRegExp: false } as const;
    const found = await items.findOne({ _id: 1 }, exact);
    assert.ok(found?.double instanceof Double && found.long instanceof Long);
    for (const [name, value] of Object.entries(all)) {
      if (name !== 'ref') assert.deepEqual(JSON.stringify(found?.[name]), JSON.stringify(value), name);
    }
    await items.updateOne(
      { _id: 1 },
      { $inc: { double: 1, long: 1, decimal: Decimal128.fromString('0.05') } },
    );
    const changed = await items.findOne({ _id: 1 }, exact);
    assert.ok(changed?.double instanceof Double);
    assert.deepEqual(
      [String(changed.double), String(changed.long), String(changed.decimal)],
      ['6', '9007199254740994', '1.15'],
    );
  });

  test('writes one, many, and in bulk', async () => {
    assert.equal(
      (
        await items.insertMany([
          { _id: 1, n: 1 },
          { _id: 2, n: 2 },
          { _id: 3, n: 3 },
        ])
      ).insertedCount,
      3,
    );
    const result = await items.bulkWrite([
      { insertOne: { document: { _id: 4, n: 4 } } },
      { updateOne: { filter: { _id: 1 }, update: { $set: { n: 10 } } } },
      { updateMany: { filter: { n: { $lt: 4 } }, update: { $inc: { n: 1 } } } },
      { replaceOne: { filter: { _id: 9 }, replacement: { n: 9 }, upsert: true } },
      { deleteOne: { filter: { _id: 4 } } },
    ]);
    assert.deepEqual(
      [
        result.insertedCount,
        result.matchedCount,
        result.modifiedCount,
        result.upsertedCount,
        result.deletedCount,
      ],
      [1, 3, 3, 1, 1],
    );
    await assert.rejects(items.insertMany([{ _id: 1 }, { _id: 20 }], { ordered: false }), { code: 11000 });
    assert.deepEqual(await ids({}), [1, 2, 3, 9, 20]);
    const before = await items.findOneAndUpdate({ _id: 2 }, { $set: { n: 0 } });
    assert.equal(before?.n, 3);
    const replaced = await items.findOneAndReplace({ _id: 2 }, { n: 7 }, { returnDocument: 'after' });
    assert.deepEqual(replaced, { _id: 2, n: 7 });
    assert.equal((await items.findOneAndDelete({ n: 7 }))?._id, 2);
    const upserted = await items.updateOne({ _id: 50 }, { $setOnInsert: { a: 1 } }, { upsert: true });
    assert.deepEqual([upserted.upsertedId, upserted.matchedCount], [50, 0]);
    await items.replaceOne(
      { _id: 50 },
      {
        list: [
          { k: 1, v: 1 },
          { k: 2, v: 1 },
        ],
      },
    );
    await items.updateOne({ _id: 50, 'list.k': 2 }, { $set: { 'list.$.v': 5 } });
    await items.updateOne({ _id: 50 }, { $inc: { 'list.$[e].v': 1 } }, { arrayFilters: [{ 'e.k': 1 }] });
    assert.deepEqual((await items.findOne({ _id: 50 }))?.list, [
      { k: 1, v: 2 },
      { k: 2, v: 5 },
    ]);
    assert.equal((await items.deleteMany({ _id: { $gt: 1 } })).deletedCount, 4);
  });

  test('finds, counts, and gives all of a long result', async () => {
    await items.insertMany(Array.from({ length: 1000 }, (_, _id) => ({ _id, n: _id % 10, text: `t${_id}` })));
    assert.equal((await items.find().batchSize(50).toArray()).length, 1000);
    assert.equal(await items.countDocuments({ n: 3 }), 100);
    assert.equal(await items.countDocuments(), 1000);
    assert.equal(await items.estimatedDocumentCount(), 1000);
    assert.deepEqual((await items.distinct('n')).sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const page = await items
      .find({ n: 1 })
      .sort({ text: -1 })
      .skip(1)
      .limit(2)
      .project({ text: 1, _id: 0 })
      .toArray();
    assert.deepEqual(page, [{ text: 't981' }, { text: 't971' }]);
    const cursor = items.find().batchSize(10);
    assert.equal((await cursor.next())?._id, 0);
    await cursor.close();
    const groups = items.aggregate(
      [{ $group: { _id: '$n', sum: { $sum: '$_id' } } }, { $sort: { sum: -1 } }],
      { batchSize: 3 },
    );
    assert.deepEqual(
      (await groups.toArray()).map(({ _id }) => _id),
      [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    );
    await client.withSession((session) => items.find({}, { session, batchSize: 100 }).toArray());
  });

  test('joins collections, and writes what comes of it into others', async () => {
    await db.collection<Item>('people').insertMany([
      { _id: 1, name: 'ada' },
      { _id: 2, name: 'bob' },
    ]);
    await items.insertMany([
      { _id: 1, by: 1 },
      { _id: 2, by: 1 },
      { _id: 3, by: 9 },
    ]);
    const join = { $lookup: { from: 'people', localField: 'by', foreignField: '_id', as: 'who' } };
    const joined = await items
      .aggregate([join, { $unwind: '$who' }, { $sort: { _id: 1 } }, { $replaceWith: '$who' }])
      .toArray();
    assert.deepEqual(
      joined.map(({ name }) => name),
      ['ada', 'ada'],
    );
    await items.aggregate([{ $sortByCount: '$by' }, { $out: 'totals' }]).toArray();
    await items
      .aggregate([
        { $match: { _id: 3 } },
        { $project: { _id: '$by', more: { $literal: true } } },
        { $merge: 'totals' },
      ])
      .toArray();
    assert.deepEqual(await db.collection<Item>('totals').find().sort({ _id: 1 }).toArray(), [
      { _id: 1, count: 2 },
      { _id: 9, count: 1, more: true },
    ]);
  });

  test('keeps collections and indexes', async () => {
    await db.createCollection('made');
    await assert.rejects(db.command({ create: 'made', capped: false, validator: 5 }));
    assert.equal(await items.createIndex({ a: 1, b: -1 }), 'a_1_b_-1');
    await items.createIndexes([
      { key: { mail: 1 }, unique: true, sparse: true },
      { key: { at: 1 }, expireAfterSeconds: 3600 },
    ]);
    await items.insertMany([{ _id: 1, mail: 'x' }, { _id: 2 }, { _id: 3 }]);
    await assert.rejects(items.insertOne({ _id: 4, mail: 'x' }), { code: 11000, keyValue: { mail: 'x' } });
    assert.deepEqual((await items.indexes()).map(({ name }) => name).sort(), [
      '_id_',
      'a_1_b_-1',
      'at_1',
      'mail_1',
    ]);
    await items.dropIndex('mail_1');
    await items.insertOne({ _id: 4, mail: 'x' });
    assert.deepEqual((await db.listCollections().toArray()).map(({ name }) => name).sort(), [
      'items',
      'made',
    ]);
    assert.equal((await db.stats()).objects, 4);
    assert.equal(await db.dropCollection('made'), true);
  });

  test('says what it has not as MongoDB does', async () => {
    await items.insertOne({ _id: 1 });
    await assert.rejects(items.watch().next(), { code: 40573 });
    await assert.rejects(items.find({ $text: { $search: 'a' } }).toArray(), { code: 27 });
    await assert.rejects(items.find({ a: { $nothing: 1 } }).toArray(), { code: 2 });
    await assert.rejects(items.updateOne({ _id: 1 }, { $set: { _id: 2 } }), { code: 66 });
    await assert.rejects(db.command({ noSuchCommand: 1 }), { code: 59 });
    assert.deepEqual(await ids({}), [1]);
  });

  /** The number of transactions that count one after the other, each based on its own read. */
  const countTogether = async (own: MongoClient, times: number) => {
    const list = own.db(db.databaseName).collection<Item>('items');
    const count = () =>
      own.withSession((session) =>
        session.withTransaction(async () => {
          const { n } = (await list.findOne({ _id: 1 }, { session })) as Item;
          await list.updateOne({ _id: 1 }, { $set: { n: n + 1 } }, { session });
          return n;
        }),
      );
    await Promise.all(Array.from({ length: times }, count));
    return (await list.findOne({ _id: 1 }))?.n;
  };

  test('runs transactions, those that meet one after the other', async () => {
    await items.insertOne({ _id: 1, n: 0 });
    assert.equal(await countTogether(client, 6), 6);
    const session = client.startSession();
    session.startTransaction();
    await items.insertOne({ _id: 2 }, { session });
    assert.deepEqual(await ids({}), [1]);
    const outside = items.insertOne({ _id: 3 });
    await session.commitTransaction();
    await session.commitTransaction();
    await outside;
    assert.deepEqual(await ids({}), [1, 2, 3]);
    session.startTransaction();
    await items.deleteMany({}, { session });
    await session.abortTransaction();
    await session.endSession();
    assert.deepEqual(await ids({}), [1, 2, 3]);
  });

  test('has transactions for who finds it by a forward, with directConnection and without', async () => {
    const { port, hostname } = new URL((url ?? '').replace('mongodb:', 'http:'));
    const forward = createServer((near) => {
      const far = connect(Number(port), hostname);
      pipeline(near, far, near, () => {});
    }).listen(0, '127.0.0.1');
    await once(forward, 'listening');
    const { port: own } = forward.address() as AddressInfo;
    const address = (url ?? '').replace(`${hostname}:${port}`, `localhost:${own}`);
    const ways = [address, address.replace('directConnection=true&', '')];
    if (cloud !== null)
      ways.push(address.replace('directConnection=true', 'loadBalanced=true&retryWrites=false'));
    for (const way of ways) {
      await items.drop();
      await items.insertOne({ _id: 1, n: 0 });
      const there = await new MongoClient(way, { serverSelectionTimeoutMS: 10_000 }).connect();
      assert.equal(await countTogether(there, 3), 3, way.replace(/:[^:@]+@/, '@'));
      await there.close();
    }
    forward.close();
  });

  test('keeps files of GridFS', async () => {
    const bucket = new GridFSBucket(db, { chunkSizeBytes: 1000 });
    const bytes = Buffer.from(Array.from({ length: 5500 }, (_, i) => i % 251));
    const upload = bucket.openUploadStream('a.bin', { metadata: { a: 1 } });
    upload.end(bytes);
    await once(upload, 'finish');
    const pieces: Buffer[] = [];
    for await (const piece of bucket.openDownloadStreamByName('a.bin', { start: 0 })) pieces.push(piece);
    assert.ok(Buffer.concat(pieces).equals(bytes));
    await bucket.delete(upload.id);
    assert.equal(await db.collection('fs.chunks').countDocuments(), 0);
  });

  test('is what mongoose needs', async () => {
    const odm = await mongoose.createConnection(url ?? '').asPromise();
    try {
      const Author = odm.model(
        'Author',
        new mongoose.Schema({ name: { type: String, index: true }, born: Number }),
      );
      const Book = odm.model(
        'Book',
        new mongoose.Schema(
          {
            title: String,
            author: { type: mongoose.Schema.Types.ObjectId, ref: 'Author' },
            price: mongoose.Schema.Types.Decimal128,
          },
          { timestamps: true },
        ),
      );
      await Promise.all([Author.syncIndexes(), Book.createCollection()]);
      const ada = await Author.create({ name: 'ada', born: 1815 });
      await Book.insertMany([
        { title: 'one', author: ada._id, price: '1.10' },
        { title: 'two', author: ada._id, price: '2.20' },
      ]);
      const book = await Book.findOne({ title: /^T/i })
        .populate<{ author: { name: string } }>('author')
        .orFail();
      assert.equal(book.author.name, 'ada');
      const [total] = await Book.aggregate([
        { $group: { _id: '$author', sum: { $sum: '$price' }, n: { $sum: 1 } } },
      ]);
      assert.deepEqual([String(total.sum), total.n], ['3.30', 2]);
      await Book.bulkWrite([{ updateOne: { filter: { title: 'one' }, update: { title: 'uno' } } }]);
      assert.equal(await Book.exists({ title: 'one' }), null);
      assert.equal(await Book.countDocuments({ createdAt: { $lte: new Date() } }), 2);
      ada.born = 1816;
      await ada.save();
      assert.equal((await Author.findById(ada._id).lean())?.born, 1816);
      let seen = 0;
      for await (const _ of Book.find().cursor({ batchSize: 1 })) seen++;
      assert.equal(seen, 2);
    } finally {
      await odm.close();
    }
  });
});
