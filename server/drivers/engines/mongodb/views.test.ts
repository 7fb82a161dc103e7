/** Views as in MongoDB's manual: their results, and the commands that they refuse. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Db } from 'mongodb';
import { type MongodbFixture, openMongodb } from '../../../testing/mongodb-fixture.ts';

let fixture: MongodbFixture;
let db: Db;
before(async () => {
  fixture = openMongodb({ firstPort: 27_650 });
  db = (await fixture.connect((await fixture.make()).uri)).db();
});
after(() => fixture.close());
beforeEach(async () => {
  await db.dropDatabase();
  await db.collection('students').insertMany([
    { sID: 22001, name: 'Alex', year: 1, score: 4.0 },
    { sID: 21001, name: 'bernie', year: 2, score: 3.7 },
    { sID: 20010, name: 'Chris', year: 3, score: 2.5 },
    { sID: 22021, name: 'Drew', year: 1, score: 3.2 },
    { sID: 17301, name: 'harley', year: 6, score: 3.1 },
    { sID: 21022, name: 'Farmer', year: 1, score: 2.2 },
  ]);
});

const names = (found: readonly object[]) => found.map((each) => (each as { name?: string }).name);

describe('a view', () => {
  test('shows what its pipeline makes of a collection, as that is now', async () => {
    const view = await db.createCollection('firstYears', {
      viewOn: 'students',
      pipeline: [{ $match: { year: 1 } }, { $project: { _id: 0, name: 1, score: 1 } }],
    });
    assert.deepEqual(await view.findOne({ name: 'Alex' }), { name: 'Alex', score: 4 });
    assert.deepEqual(names(await view.find().sort({ score: 1 }).skip(1).limit(1).toArray()), ['Drew']);
    assert.equal(await view.countDocuments(), 3);
    assert.equal(await view.estimatedDocumentCount(), 3);
    assert.equal(await view.countDocuments({ score: { $lt: 3.5 } }), 2);
    assert.deepEqual((await view.distinct('name')).sort(), ['Alex', 'Drew', 'Farmer']);
    await db.collection('students').insertOne({ name: 'Zoe', year: 1, score: 1 });
    const [sum] = await view
      .aggregate([{ $group: { _id: null, n: { $sum: 1 }, best: { $max: '$score' } } }])
      .toArray();
    assert.deepEqual(sum, { _id: null, n: 4, best: 4 });
    assert.deepEqual(await view.find({ year: 1 }).toArray(), [], 'a field that it does not show');
  });

  test('is read by other views, $lookup and $unionWith, in batches too', async () => {
    await db.createCollection('young', { viewOn: 'students', pipeline: [{ $match: { year: { $lt: 3 } } }] });
    await db.createCollection('best', {
      viewOn: 'young',
      pipeline: [{ $sort: { score: -1 } }, { $limit: 2 }],
    });
    assert.deepEqual(names(await db.collection('best').find({}, { batchSize: 1 }).toArray()), [
      'Alex',
      'bernie',
    ]);
    const joined = await db
      .collection('students')
      .aggregate([
        { $match: { name: 'Chris' } },
        { $lookup: { from: 'young', pipeline: [{ $match: { year: 2 } }], as: 'others' } },
        { $unionWith: 'best' },
      ])
      .toArray();
    assert.deepEqual(names(joined), ['Chris', 'Alex', 'bernie']);
    assert.deepEqual(names(joined[0]?.others), ['bernie']);
  });

  test('has the collation it was made with', async () => {
    const collation = { locale: 'en', strength: 2 };
    const view = await db.createCollection('all', { viewOn: 'students', pipeline: [], collation });
    assert.deepEqual(names(await view.find({ name: 'BERNIE' }).toArray()), ['bernie']);
    const sorted = await view.find().sort({ name: 1 }).toArray();
    assert.deepEqual(names(sorted), ['Alex', 'bernie', 'Chris', 'Drew', 'Farmer', 'harley']);
  });

  test('finds its documents by an index of the collection, which a search for words needs', async () => {
    await db.collection('students').createIndex({ name: 'text' });
    const pipeline = [{ $match: { $text: { $search: 'chris drew' } } }, { $project: { _id: 0, name: 1 } }];
    const view = await db.createCollection('seen', { viewOn: 'students', pipeline });
    assert.deepEqual(names(await view.find().sort({ name: 1 }).toArray()), ['Chris', 'Drew']);
    const all = await db.createCollection('all', { viewOn: 'students', pipeline: pipeline.slice(0, 1) });
    assert.deepEqual(names(await all.find({ year: 1 }).toArray()), ['Drew']);
  });

  test('is listed as one, and counted', async () => {
    const pipeline = [{ $match: { year: 1 } }];
    await db.createCollection('v', { viewOn: 'students', pipeline });
    const [listed] = await db.listCollections({ type: 'view' }).toArray();
    assert.deepEqual(listed, {
      name: 'v',
      type: 'view',
      options: { viewOn: 'students', pipeline },
      info: { readOnly: true },
    });
    assert.equal((await db.stats()).views, 1);
    await db.command({ collMod: 'v', viewOn: 'students', pipeline: [{ $match: { year: 6 } }] });
    assert.deepEqual(names(await db.collection('v').find().toArray()), ['harley']);
    assert.equal(await db.collection('v').drop(), true);
    assert.equal(await db.collection('students').countDocuments(), 6);
  });

  test('takes no writes and no indexes', async () => {
    const view = await db.createCollection('v', { viewOn: 'students', pipeline: [] });
    const code = { code: 166 };
    await assert.rejects(view.insertOne({ a: 1 }), code);
    await assert.rejects(view.updateOne({}, { $set: { a: 1 } }), code);
    await assert.rejects(view.deleteMany({}), code);
    await assert.rejects(view.findOneAndUpdate({}, { $set: { a: 1 } }), code);
    await assert.rejects(view.createIndex({ a: 1 }), code);
    await assert.rejects(view.indexes(), code);
    await assert.rejects(view.rename('w'), code);
    await assert.rejects(
      db
        .collection('students')
        .aggregate([{ $out: 'v' }])
        .toArray(),
      code,
    );
    await assert.rejects(
      db
        .collection('students')
        .aggregate([{ $merge: 'v' }])
        .toArray(),
      code,
    );
    await assert.rejects(
      db
        .collection('v')
        .aggregate([{ $collStats: {} }])
        .toArray(),
      code,
    );
    assert.equal(await db.collection('students').countDocuments({ a: 1 }), 0);
  });
});

describe('what is no view', () => {
  test('is refused when it is made', async () => {
    const make = (options: object, name = 'v') => db.createCollection(name, options);
    await assert.rejects(make({ viewOn: 'students', pipeline: [{ $out: 'x' }] }), { code: 167 });
    await assert.rejects(make({ viewOn: 'students', pipeline: [{ $nothing: 1 }] }), { code: 40324 });
    await assert.rejects(make({ viewOn: 'students', pipeline: [], capped: true, size: 4096 }), { code: 72 });
    await assert.rejects(make({ pipeline: [] }), { code: 72 });
    await assert.rejects(make({ viewOn: 'v', pipeline: [] }), { code: 5 });
    await make({ viewOn: 'b', pipeline: [] }, 'a');
    await assert.rejects(make({ viewOn: 'a', pipeline: [] }, 'b'), { code: 5 });
    await assert.rejects(make({ viewOn: 'students', pipeline: [] }, 'students'), { code: 48 });
    await assert.rejects(db.command({ collMod: 'students', viewOn: 'a', pipeline: [] }), { code: 72 });
    await assert.rejects(db.command({ collMod: 'a', viewOn: 'students' }), { code: 72 });
  });

  test('ends when views lead too deep, or to themselves by a stage', async () => {
    await db.createCollection('v0', { viewOn: 'students', pipeline: [] });
    let deepest = 0;
    for (let n = 1; n < 30; n++) {
      const made = await db
        .createCollection(`v${n}`, { viewOn: `v${n - 1}`, pipeline: [] })
        .catch(({ code }) => code);
      if (made === 165) break;
      deepest = n;
    }
    assert.equal(deepest, 19);
    assert.equal(await db.collection('v19').countDocuments(), 6);
    const itself = [{ $lookup: { from: 'loop', pipeline: [], as: 'x' } }];
    await db.createCollection('loop', { viewOn: 'students', pipeline: itself });
    await assert.rejects(db.collection('loop').find().toArray(), { code: 165 });
    assert.equal(await db.collection('students').countDocuments(), 6);
  });
});
