/** `explain` of each command, by the manual's pages on its results and on views. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

const point = (lng: number, lat: number) => ({ type: 'Point', coordinates: [lng, lat] });

function places(t: TestContext): TestDocuments {
  const documents = new TestDocuments(t);
  documents.run({
    createIndexes: 'places',
    indexes: [
      { key: { n: 1, m: -1 }, name: 'nm' },
      { key: { loc: '2dsphere' }, name: 'loc' },
    ],
  });
  const all = Array.from({ length: 20 }, (_, i) => ({ _id: i, n: i % 5, m: i, loc: [i, 0], kind: i % 2 }));
  documents.insert('places', ...all);
  documents.run({ create: 'even', viewOn: 'places', pipeline: [{ $match: { kind: 0 } }] });
  documents.run({ create: 'low', viewOn: 'even', pipeline: [{ $match: { n: { $lt: 3 } } }] });
  documents.run({
    create: 'summed',
    viewOn: 'places',
    pipeline: [{ $group: { _id: '$n', s: { $sum: '$m' } } }],
  });
  return documents;
}

/** The names of a plan's stages, outermost first. */
function stagesOf(plan: Document | undefined): string[] {
  return plan === undefined ? [] : [plan.stage, ...stagesOf(plan.inputStage)];
}

describe('explain', () => {
  test('tells the plan alone, or what it reads too, as it is asked', (t) => {
    const documents = places(t);
    const find = {
      find: 'places',
      filter: { n: 2 },
      sort: { kind: 1 },
      skip: 1,
      limit: 2,
      projection: { n: 1 },
    };
    const told = documents.run({ explain: find, verbosity: 'queryPlanner' });
    assert.equal(told.explainVersion, '1');
    assert.equal(told.executionStats, undefined);
    assert.equal(told.queryPlanner.namespace, 'shop.places');
    assert.deepEqual(told.queryPlanner.parsedQuery, { n: 2 });
    assert.deepEqual(told.command, { ...find, $db: 'shop' });
    assert.equal(typeof told.serverInfo.version, 'string');
    const { winningPlan } = told.queryPlanner;
    const names = ['PROJECTION_DEFAULT', 'LIMIT', 'SKIP', 'SORT', 'FETCH', 'IXSCAN'];
    assert.deepEqual(stagesOf(winningPlan), names);
    const { executionStats } = documents.run({ explain: find, verbosity: 'executionStats' });
    assert.deepEqual(stagesOf(executionStats.executionStages), names);
    const { nReturned, totalKeysExamined, totalDocsExamined } = executionStats;
    assert.deepEqual([nReturned, totalKeysExamined, totalDocsExamined], [2, 4, 4]);
    assert.equal(executionStats.allPlansExecution, undefined);
    assert.deepEqual(documents.run({ explain: find }).executionStats.allPlansExecution, []);
    assert.equal(documents.codeOf({ explain: find, verbosity: 'much' }), 9);
    assert.equal(documents.codeOf({ explain: { ping: 1 } }), 59);
  });

  test('tells the bounds of an index', (t) => {
    const documents = places(t);
    const boundsOf = (filter: Document) => documents.sourceOf({ find: 'places', filter }).indexBounds;
    assert.deepEqual(boundsOf({ n: 2 }), { n: ['[2, 2]'], m: ['[MaxKey, MinKey]'] });
    assert.deepEqual(boundsOf({ n: { $in: [1, 2] }, m: { $gt: 3, $lte: 9 } }), {
      n: ['[1, 1]', '[2, 2]'],
      m: ['[9, 3)'],
    });
    assert.deepEqual(boundsOf({ n: { $gte: 2 } }), { n: ['[2, inf.0]'], m: ['[MaxKey, MinKey]'] });
    assert.deepEqual(boundsOf({ _id: 'a' }), { _id: ['["a", "a"]'] });
  });

  test('names the write or the count that goes over a plan', (t) => {
    const documents = places(t);
    const topOf = (command: Document) => documents.run({ explain: command }).queryPlanner.winningPlan.stage;
    assert.equal(topOf({ count: 'places', query: { n: 1 } }), 'COUNT');
    assert.equal(topOf({ update: 'places', updates: [{ q: { n: 1 }, u: { $set: { m: 0 } } }] }), 'UPDATE');
    assert.equal(topOf({ delete: 'places', deletes: [{ q: { n: 1 }, limit: 0 }] }), 'DELETE');
    assert.equal(topOf({ findAndModify: 'places', query: { n: 1 }, remove: true }), 'DELETE');
    assert.equal(topOf({ distinct: 'places', key: 'n', query: { kind: 1 } }), 'COLLSCAN');
    assert.equal(documents.run({ count: 'places', query: { m: { $gt: 0 } } }).n, 19);
    const two = {
      delete: 'places',
      deletes: [
        { q: {}, limit: 1 },
        { q: {}, limit: 1 },
      ],
    };
    assert.equal(documents.codeOf({ explain: two }), 16);
    assert.equal(topOf({ find: 'nothing', filter: { a: 1 } }), 'EOF');
  });

  test('counts what comes out of each stage of an aggregation', (t) => {
    const documents = places(t);
    const pipeline = [
      { $match: { n: { $lt: 2 } } },
      { $group: { _id: '$kind', s: { $sum: 1 } } },
      { $match: { _id: 1 } },
    ];
    const command = { aggregate: 'places', pipeline, cursor: {} };
    const { stages } = documents.run({ explain: command, verbosity: 'executionStats' });
    assert.deepEqual(
      stages.map((stage: Document) => Object.keys(stage)[0]),
      ['$cursor', '$group', '$match'],
    );
    assert.deepEqual(
      stages.map(({ nReturned }: Document) => nReturned),
      [8, 2, 1],
    );
    assert.equal(stages[0].$cursor.executionStats.totalKeysExamined, 8);
    assert.equal(stages[0].$cursor.queryPlanner.winningPlan.inputStage.indexName, 'nm');
    const short = { ...command, pipeline: [...pipeline.slice(0, 1), { $sort: { m: 1 } }, { $limit: 3 }] };
    const plain = documents.run({ explain: short, verbosity: 'executionStats' });
    assert.deepEqual(stagesOf(plain.queryPlanner.winningPlan), ['LIMIT', 'SORT', 'FETCH', 'IXSCAN']);
    assert.equal(plain.executionStats.nReturned, 3);
    assert.ok('stages' in documents.run({ ...command, explain: true }));
    const out = { ...command, pipeline: [...pipeline, { $out: 'made' }] };
    assert.ok('stages' in documents.run({ explain: out }));
    assert.deepEqual(documents.ids('made', {}), []);
    const near = { $geoNear: { near: point(3, 0), distanceField: 'd', maxDistance: 200_000 } };
    const told = documents.run({ explain: { ...command, pipeline: [near] } });
    const cursor = told.stages[0].$geoNearCursor;
    assert.equal(cursor.queryPlanner.winningPlan.stage, 'GEO_NEAR_2DSPHERE');
    assert.equal(told.stages[0].nReturned, 3);
    assert.equal(documents.codeOf({ explain: { ...command, pipeline: [{ $no: 1 }] } }), 40324);
  });

  test('tells of a view what is read of its collection', (t) => {
    const documents = places(t);
    const { queryPlanner, executionStats } = documents.run({
      explain: { find: 'low', filter: { n: 1 } },
      verbosity: 'executionStats',
    });
    assert.equal(queryPlanner.namespace, 'shop.places');
    assert.deepEqual(stagesOf(queryPlanner.winningPlan), ['FETCH', 'IXSCAN']);
    assert.equal(executionStats.nReturned, 2);
    const { stages } = documents.run({ explain: { find: 'summed', filter: { s: { $gt: 30 } } } });
    assert.deepEqual(
      stages.map((stage: Document) => Object.keys(stage)[0]),
      ['$cursor', '$group', '$match'],
    );
    assert.equal(stages[0].$cursor.queryPlanner.namespace, 'shop.places');
    assert.equal(stages[2].nReturned, documents.find('summed', { s: { $gt: 30 } }).length);
    assert.equal(documents.run({ explain: { count: 'even' } }).queryPlanner.namespace, 'shop.places');
  });
});

describe('a view', () => {
  test('is searched for what is near, as its collection is', (t) => {
    const documents = places(t);
    const near = { loc: { $near: { $geometry: point(9.9, 0), $maxDistance: 250_000 } } };
    assert.deepEqual(documents.ids('even', near), [10, 8, 12]);
    assert.deepEqual(documents.ids('low', { loc: { $nearSphere: [10.1, 0] } }, { limit: 2 }), [10, 12]);
    const stage = { $geoNear: { near: point(10, 0), distanceField: 'd' } };
    documents.run({ create: 'same', viewOn: 'places' });
    assert.equal(documents.aggregate('same', [stage, { $limit: 1 }])[0]?._id, 10);
    assert.equal(documents.codeOf({ aggregate: 'even', pipeline: [stage], cursor: {} }), 40602);
    assert.equal(documents.codeOf({ find: 'summed', filter: near }), 5626500);
    documents.run({ create: 'nearest', viewOn: 'places', pipeline: [stage, { $limit: 3 }] });
    assert.deepEqual(documents.ids('nearest', { _id: { $ne: 10 } }).length, 2);
  });

  test('is sorted by the index of its collection, and keeps no more in memory than a limit asks for', (t) => {
    const documents = places(t);
    assert.deepEqual(documents.ids('even', {}, { sort: { n: 1, m: -1 }, skip: 1, limit: 2 }), [0, 16]);
    const { winningPlan } = documents.run({ explain: { find: 'even', sort: { n: 1, m: -1 } } }).queryPlanner;
    assert.deepEqual(stagesOf(winningPlan), ['FETCH', 'IXSCAN']);
    assert.equal(documents.codeOf({ find: 'even', sort: { $natural: 1 } }), 168);
    for (let _id = 0; _id < 8; _id++) documents.insert('large', { _id, text: 'x'.repeat(14_000_000) });
    documents.run({ create: 'seen', viewOn: 'large', pipeline: [{ $set: { more: 1 } }] });
    const sort = { sort: { more: 1, _id: -1 }, projection: { _id: 1 } };
    assert.deepEqual(documents.ids('seen', {}, { ...sort, skip: 1, limit: 1 }), [6]);
    assert.equal(documents.codeOf({ find: 'seen', ...sort }), 292);
  });
});
