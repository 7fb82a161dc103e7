/**
 * Features of MongoDB in mongoose's documentation beyond reading and writing: locations, texts, collations,
 * validators, kinds of collections and indexes. mongoose's own tests are not a package.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import mongoose, { type Connection, Schema } from 'mongoose';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

let cloud: CloudProcess;
let db: Connection;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_MONGODB_SERVER: 'built-in' } });
  const user = await new Client(cloud.api).newUser();
  const made = await user.call('/api/databases', { json: { name: 'mongoose', engine: 'mongodb' } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  db = await mongoose.createConnection(String(made.body.connection.uri)).asPromise();
});
after(async () => {
  await db?.close();
  await cloud?.stop();
});
beforeEach(async () => {
  for (const name of db.modelNames()) db.deleteModel(name);
  await db.dropDatabase();
});

/** A model of any shape; its collections and indexes exist. */
async function model(name: string, schema: Schema) {
  const made = db.model(name, schema);
  await made.init();
  return made;
}

const names = (found: readonly object[]) => found.map((each) => (each as { name?: unknown }).name);

describe('places', () => {
  const point = (...coordinates: number[]) => ({ type: 'Point', coordinates });
  const pointSchema = new Schema({
    type: { type: String, enum: ['Point'], required: true },
    coordinates: { type: [Number], required: true },
  });
  const DENVER = { name: 'Denver', location: point(-104.9903, 39.7392) };
  const MIAMI = { name: 'Miami', location: point(-80.1918, 25.7617) };
  const box = ([west, south]: [number, number], [east, north]: [number, number]) => {
    const corners = [point(west, south), point(east, south), point(east, north), point(west, north)];
    const ring = [...corners, point(west, south)].map(({ coordinates }) => coordinates);
    return { type: 'Polygon', coordinates: [ring] };
  };
  const COLORADO = box([-109, 37], [-102, 41]);

  test('on a sphere: within, near, intersects', async () => {
    const schema = new Schema({ name: String, location: { type: pointSchema, index: '2dsphere' } });
    const City = await model('City', schema);
    await City.create([DENVER, MIAMI]);
    const $geoWithin = { $geometry: COLORADO };
    assert.deepEqual(names(await City.find({ location: { $geoWithin } })), ['Denver']);
    assert.deepEqual(names(await City.find().where('location').within(COLORADO)), ['Denver']);
    assert.deepEqual(names(await City.find().where('location').intersects().geometry(COLORADO)), ['Denver']);
    const center = point(-80, 26);
    const near = { center, maxDistance: 100_000 };
    assert.deepEqual(names(await City.find().where('location').near(near)), ['Miami']);
    const sorted = await City.find({ location: { $near: { $geometry: point(-104, 39) } } });
    assert.deepEqual(names(sorted), ['Denver', 'Miami']);
    const spherical = { center: [-80, 26] as [number, number], radius: 0.02, spherical: true };
    assert.deepEqual(names(await City.find().where('location').within().circle(spherical)), ['Miami']);
    const [first, second] = await City.aggregate([]).near({
      near: { type: 'Point', coordinates: [-104.9, 39.7] },
      distanceField: 'away',
      spherical: true,
    });
    assert.deepEqual(names([first, second]), ['Denver', 'Miami']);
    assert.ok(first.away > 8000 && first.away < 10_000, String(first.away));
    assert.ok(second.away > 2_700_000 && second.away < 2_800_000, String(second.away));
  });

  test('on a plane: near, box, circle, polygon', async () => {
    const Spot = await model('Spot', new Schema({ name: String, at: { type: [Number], index: '2d' } }));
    await Spot.create([
      { name: 'a', at: [1, 1] },
      { name: 'b', at: [5, 5] },
      { name: 'c', at: [9, 1] },
    ]);
    assert.deepEqual(names(await Spot.where('at').near({ center: [4, 4] })), ['b', 'a', 'c']);
    assert.deepEqual(names(await Spot.where('at').near({ center: [0, 0], maxDistance: 2 })), ['a']);
    assert.deepEqual(names(await Spot.where('at').within().box([0, 0], [6, 6]).sort('name')), ['a', 'b']);
    assert.deepEqual(names(await Spot.where('at').within({ center: [9, 2], radius: 1.5 })), ['c']);
    const corners: [number, number][] = [
      [0, 0],
      [4, 0],
      [0, 4],
    ];
    assert.deepEqual(
      names(
        await Spot.where('at')
          .within()
          .polygon(...corners),
      ),
      ['a'],
    );
  });
});

describe('texts', () => {
  test('are found by words, and sorted by score', async () => {
    const schema = new Schema({ name: String, body: String });
    schema.index({ name: 'text', body: 'text' }, { weights: { name: 5, body: 1 }, name: 'words' });
    const Page = await model('Page', schema);
    await Page.create([
      { name: 'coffee', body: 'beans' },
      { name: 'tea', body: 'leaves, and no coffee' },
      { name: 'water', body: 'nothing' },
    ]);
    const score = { $meta: 'textScore' } as const;
    const found = await Page.find({ $text: { $search: 'coffee' } }, { score }).sort({ score });
    assert.deepEqual(names(found), ['coffee', 'tea']);
    assert.ok(Number(found[0]?.get('score')) > Number(found[1]?.get('score')));
    assert.deepEqual(names(await Page.find({ $text: { $search: '"no coffee"' } })), ['tea']);
    assert.deepEqual(names(await Page.find({ $text: { $search: 'coffee -leaves' } })), ['coffee']);
    assert.equal(await Page.countDocuments({ $text: { $search: 'bean' } }), 1);
    const [best] = await Page.aggregate()
      .match({ $text: { $search: 'coffee leaves' } })
      .sort({ score })
      .limit(1);
    assert.equal(best.name, 'coffee');
  });
});

describe('collations', () => {
  test('of queries, of a schema, and of a unique index', async () => {
    const schema = new Schema({ name: String, n: String }, { collation: { locale: 'en', strength: 1 } });
    schema.index({ n: 1 }, { unique: true });
    const Word = await model('Word', schema);
    await Word.createCollection();
    await Word.create([
      { name: 'Café', n: '2' },
      { name: 'cafe', n: '10' },
      { name: 'tea', n: 'x' },
    ]);
    assert.equal(await Word.countDocuments({ name: 'CAFE' }), 2);
    assert.equal((await Word.find({ name: 'CAFE' })).length, 2);
    await assert.rejects(Word.create({ n: 'X' }), { code: 11000 });
    assert.deepEqual(await Word.distinct('name', { name: 'TEA' }), ['tea']);
    assert.equal(
      (await Word.updateMany({ name: 'cafè' }, { $set: { seen: 1 } }, { strict: false })).modifiedCount,
      2,
    );
    const byNumber = { locale: 'en', numericOrdering: true };
    const sorted = await Word.find({ name: /caf/i }).collation(byNumber).sort('n');
    assert.deepEqual(
      sorted.map((each) => each.get('n')),
      ['2', '10'],
    );
    const groups = await Word.aggregate([{ $group: { _id: '$name', n: { $sum: 1 } } }]).collation({
      locale: 'en',
      strength: 1,
    });
    assert.equal(groups.length, 2);
    assert.equal((await Word.deleteMany({ name: 'CAFÉ' })).deletedCount, 2);
  });
});

describe('collections', () => {
  test('with a validator made of the schema, changed by collMod', async () => {
    const schema = new Schema({ name: { type: String, required: true }, age: Number, tags: [String] });
    const Person = db.model('Person', schema);
    const $jsonSchema = schema.toJSONSchema({ useBsonType: true });
    await Person.createCollection({ validator: { $jsonSchema } } as object);
    await Person.create({ name: 'ada', age: 3, tags: ['x'] });
    const wrong = Person.collection.insertOne({ name: 5 });
    await assert.rejects(wrong, (error: { code?: number; errInfo?: object }) => {
      assert.equal(error.code, 121);
      assert.match(JSON.stringify(error.errInfo), /schemaRulesNotSatisfied/);
      return true;
    });
    await db.db?.command({ collMod: 'people', validator: { age: { $gte: 0 } }, validationAction: 'error' });
    await assert.rejects(Person.collection.insertOne({ age: -1 }), { code: 121 });
    await assert.rejects(Person.collection.updateOne({}, { $set: { age: -1 } }), { code: 121 });
    await Person.collection.insertOne({ age: -1 }, { bypassDocumentValidation: true });
    await db.db?.command({ collMod: 'people', validationLevel: 'off' });
    await Person.collection.insertOne({ age: -2 });
    assert.equal(await Person.countDocuments(), 3);
  });

  test('capped ones, with a cursor that waits', async () => {
    const Log = db.model('Log', new Schema({ n: Number }, { capped: { size: 4096, max: 2 } }));
    await Log.init();
    await Log.createCollection();
    assert.equal(await Log.collection.isCapped(), true);
    for (const n of [1, 2, 3]) await Log.create({ n });
    assert.deepEqual(await Log.distinct('n'), [2, 3]);
    const waiting = { tailable: true, awaitData: true } as object;
    const cursor = Log.find().setOptions(waiting).cursor();
    assert.deepEqual([(await cursor.next())?.get('n'), (await cursor.next())?.get('n')], [2, 3]);
    const next = cursor.next();
    await Log.create({ n: 4 });
    assert.equal((await next)?.get('n'), 4);
    await cursor.close();
  });

  test('clustered ones, views, and those that are refused', async () => {
    const clusteredIndex = { key: { _id: 1 as const }, name: 'clustered', unique: true as const };
    const Item = db.model('Item', new Schema({ _id: Number, n: Number }, { clusteredIndex } as object));
    await Item.createCollection();
    await Item.create([
      { _id: 2, n: 2 },
      { _id: 1, n: 1 },
    ]);
    assert.deepEqual(
      (await Item.find()).map((each) => each._id),
      [1, 2],
    );
    const View = db.model('ItemView', new Schema({ n: Number }, { autoCreate: false, autoIndex: false }));
    await View.createCollection({ viewOn: 'items', pipeline: [{ $set: { n: { $multiply: ['$n', 10] } } }] });
    assert.deepEqual(await View.distinct('n'), [10, 20]);
    const timeseries = { timeField: 'at' };
    const Series = db.model('Series', new Schema({ at: Date }, { timeseries, autoCreate: false }));
    await assert.rejects(Series.createCollection(), { code: 72 });
  });

  test('their indexes: hidden, hashed, partial, expiring, kept in step with the schema', async () => {
    const schema = new Schema({ a: Number, b: String, at: { type: Date, expires: 60 }, c: { d: [String] } });
    schema.index({ a: 1, 'c.d': -1 }, { name: 'both', hidden: true } as object);
    schema.index({ b: 'hashed' });
    schema.index({ b: 1 }, { unique: true, partialFilterExpression: { a: { $gt: 5 } } });
    const Thing = await model('Thing', schema);
    const there = new Map((await Thing.listIndexes()).map((index) => [index.name, index]));
    assert.deepEqual([...there.keys()].sort(), ['_id_', 'at_1', 'b_1', 'b_hashed', 'both']);
    assert.equal(there.get('both')?.hidden, true);
    assert.equal(there.get('at_1')?.expireAfterSeconds, 60);
    await Thing.create([
      { a: 1, b: 'x' },
      { a: 2, b: 'x' },
      { a: 6, b: 'x' },
    ]);
    await assert.rejects(Thing.create({ a: 7, b: 'x' }), { code: 11000 });
    assert.deepEqual(await Thing.diffIndexes(), { toDrop: [], toCreate: [] });
    await Thing.collection.createIndex({ other: 1 });
    assert.deepEqual(await Thing.syncIndexes(), ['other_1']);
  });
});

describe('updates', () => {
  test('take conditions for elements, and fields with a dollar', async () => {
    const schema = new Schema({ list: [new Schema({ a: Number, b: Number }, { _id: false })] });
    const Cart = await model('Cart', schema);
    const list = [
      { a: 1, b: 1 },
      { a: 2, b: 2 },
      { a: 3, b: 3 },
    ];
    const { _id } = await Cart.create({ list });
    const items = async () => (await Cart.findById(_id).lean<{ list: object[] }>().orFail()).list;
    await Cart.updateOne({ _id }, { $pull: { list: { $or: [{ a: 1 }, { b: 3 }] } } });
    assert.deepEqual(await items(), [{ a: 2, b: 2 }]);
    await Cart.updateOne({ _id }, { $set: { list } });
    await Cart.updateOne({ _id }, { $pull: { list: { $and: [{ a: { $gt: 1 } }, { b: { $lt: 3 } }] } } });
    assert.deepEqual(await items(), [list[0], list[2]]);
    const $elemMatch = { $or: [{ a: 9 }, { b: 3 }] };
    assert.equal(await Cart.countDocuments({ list: { $elemMatch } }), 1);
    await Cart.updateOne({ $or: [{ 'list.a': 3 }, { 'list.a': 7 }] }, { $set: { 'list.$.b': 30 } });
    assert.deepEqual((await items())[1], { a: 3, b: 30 });
    await Cart.updateOne(
      { _id },
      { $inc: { 'list.$[big].b': 1 } },
      { arrayFilters: [{ 'big.b': { $gt: 9 } }] },
    );
    assert.deepEqual((await items())[1], { a: 3, b: 31 });
    const prices = db.collection<{ _id: number }>('prices');
    await prices.insertOne({ _id: 1, $price: 5 } as { _id: number });
    const next = [
      { $replaceWith: { $setField: { field: { $literal: '$price' }, input: '$$ROOT', value: 6 } } },
    ];
    await prices.updateOne({ _id: 1 }, next);
    assert.deepEqual(await prices.findOne(), { _id: 1, $price: 6 });
  });

  test('know versions, maps, numbers of each kind, and bits of bytes', async () => {
    const schema = new Schema(
      {
        big: BigInt,
        exact: Schema.Types.Decimal128,
        whole: Schema.Types.Int32,
        half: Schema.Types.Double,
        uuid: Schema.Types.UUID,
        bytes: Buffer,
        map: { type: Map, of: Number },
        list: [Number],
      },
      { optimisticConcurrency: true },
    );
    const Value = await model('Value', schema);
    const uuid = '6b5d3a0e-1c1f-4a3e-9d3f-9f8c1a2b3c4d';
    const made = await Value.create({
      big: 2n ** 60n,
      exact: '1.10',
      whole: 3,
      half: 0.5,
      uuid,
      bytes: Buffer.from([0b101]),
      map: { x: 1 },
      list: [3, 1],
    });
    const [one, two] = [await Value.findById(made._id).orFail(), await Value.findById(made._id).orFail()];
    assert.deepEqual(
      [one.big, String(one.exact), String(one.uuid), one.get('map.x')],
      [2n ** 60n, '1.10', uuid, 1],
    );
    one.set({ list: [3, 1, 2], 'map.y': 2 });
    await one.save();
    two.whole = 9;
    await assert.rejects(two.save(), { name: 'VersionError' });
    assert.equal(await Value.countDocuments({ bytes: { $bitsAllSet: [0, 2] } }), 1);
    assert.equal(await Value.countDocuments({ uuid: { $bitsAnySet: [1] } }), 1);
    await Value.updateOne({}, { $push: { list: { $each: [0], $sort: 1, $slice: 3 } } });
    assert.deepEqual([...((await Value.findOne().orFail()).get('list') as number[])], [0, 1, 2]);
    assert.equal((await Value.findOne({ 'map.y': 2 }))?.big, 2n ** 60n);
  });
});

describe('a server', () => {
  test('tells its version and figures, lists what is there, and runs transactions', async () => {
    const status = await db.db?.admin().serverStatus();
    assert.match(status?.version, /^7\./);
    assert.ok(status?.uptime >= 0);
    const Note = await model('Note', new Schema({ name: String }));
    assert.deepEqual(names(await db.listCollections()), ['notes']);
    assert.equal((await db.listDatabases()).databases.length, 1);
    const session = await db.startSession();
    await Note.create([{ name: 'in a session' }], { session });
    assert.equal(await Note.countDocuments().session(session), 1);
    await session.endSession();
    const create = (name: string, why?: Error) =>
      db.transaction(async (own) => {
        await Note.create([{ name }], { session: own });
        if (why !== undefined) throw why;
      });
    await create('in it');
    await assert.rejects(create('never', new Error('no')), /no/);
    assert.deepEqual(await Note.distinct('name', { name: /it$|never/ }), ['in it']);
    const changes = Note.watch();
    const [error] = await new Promise<unknown[]>((resolve) =>
      changes.on('error', (...told) => resolve(told)),
    );
    assert.equal((error as { code?: number }).code, 40_573);
    await changes.close();
    const plan = (await Note.find({ name: 'x' }).explain('queryPlanner')) as unknown as Record<
      string,
      unknown
    >;
    assert.ok('queryPlanner' in plan);
  });

  test('serves discriminators, virtual populates and bulk saves', async () => {
    const schema = new Schema({ at: Number }, { discriminatorKey: 'kind', toJSON: { virtuals: true } });
    schema.virtual('clicks', {
      ref: 'Click',
      localField: '_id',
      foreignField: 'parent',
      options: { sort: { at: 1 } },
    });
    const Happening = await model('Happening', schema);
    const parent = { type: Schema.Types.ObjectId, ref: 'Happening' };
    const Click = Happening.discriminator('Click', new Schema({ url: String, parent }));
    const root = await Happening.create({ at: 0 });
    await Click.insertMany([
      { at: 2, url: 'b', parent: root._id },
      { at: 1, url: 'a', parent: root._id },
    ]);
    assert.equal(await Click.countDocuments(), 2);
    assert.equal(await Happening.countDocuments(), 3);
    const found = (await Happening.findById(root._id).populate('clicks').orFail()).toJSON() as {
      clicks?: { url: string }[];
    };
    assert.deepEqual(
      found.clicks?.map(({ url }) => url),
      ['a', 'b'],
    );
    const all = await Click.find();
    await Happening.bulkSave(all.map((each) => each.set({ url: `${each.url}!` })));
    assert.deepEqual((await Click.distinct('url')).sort(), ['a!', 'b!']);
    const raw = await Click.findOneAndUpdate(
      { url: 'z' },
      { at: 5 },
      { upsert: true, new: true, includeResultMetadata: true },
    );
    assert.equal(raw.lastErrorObject?.updatedExisting, false);
    let seen = 0;
    await Happening.find()
      .cursor({ batchSize: 1 })
      .eachAsync(() => void seen++, { parallel: 2 });
    assert.equal(seen, 4);
  });
});
