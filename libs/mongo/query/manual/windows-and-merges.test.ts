/** `$setWindowFields` and `$merge` with a pipeline, by the examples of their pages in the manual. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../../testing/document-database.ts';

/** The cakes of the manual: type, year of the order, price, quantity. */
const CAKES = [
  [0, 'chocolate', 2020, 13, 120],
  [1, 'chocolate', 2021, 14, 140],
  [2, 'vanilla', 2021, 12, 145],
  [3, 'vanilla', 2020, 13, 104],
  [4, 'strawberry', 2019, 41, 162],
  [5, 'strawberry', 2021, 43, 134],
] as const;
const STATES = ['CA', 'WA', 'CA', 'WA', 'CA', 'WA'];

function cakes(t: TestContext): TestDocuments {
  const documents = new TestDocuments(t);
  const all = CAKES.map(([_id, type, year, price, quantity]) => ({
    _id,
    type,
    orderDate: new Date(Date.UTC(year, 4, 18 + _id)),
    state: STATES[_id],
    price,
    quantity,
  }));
  documents.insert('cakes', ...all);
  return documents;
}

const run = (documents: TestDocuments, partitionBy: unknown, [sortBy, output]: Document[]) =>
  documents
    .aggregate('cakes', [{ $setWindowFields: { ...(partitionBy ? { partitionBy } : {}), sortBy, output } }])
    .map(({ _id, x }) => [_id, x]);

describe('$setWindowFields', () => {
  test('sums and averages windows of documents', (t) => {
    const documents = cakes(t);
    const of = (partition: unknown, more: Document, window?: Document) =>
      run(documents, partition, [{ orderDate: 1 }, { x: { ...more, ...(window && { window }) } }]);
    const sum = { $sum: '$quantity' };
    const upToNow = { documents: ['unbounded', 'current'] };
    assert.deepEqual(of('$state', sum, upToNow), [
      [4, 162],
      [0, 282],
      [2, 427],
      [3, 104],
      [1, 244],
      [5, 378],
    ]);
    assert.deepEqual(of('$state', sum), [
      [4, 427],
      [0, 427],
      [2, 427],
      [3, 378],
      [1, 378],
      [5, 378],
    ]);
    assert.deepEqual(
      of(null, { $avg: '$quantity' }, { documents: [-1, 0] }).map(([, x]) => x),
      [162, 141, 112, 122, 142.5, 139.5],
    );
    assert.deepEqual(of(null, { $max: '$quantity' }, { documents: ['unbounded', 'unbounded'] })[0], [4, 162]);
    assert.deepEqual(
      of(null, { $min: '$price' }, { documents: [1, 'unbounded'] }).map(([, x]) => x),
      [12, 12, 12, 12, 43, null],
    );
    assert.deepEqual(of(null, { $push: '$_id' }, { documents: [-1, 1] }).at(-1), [5, [2, 5]]);
    assert.deepEqual(of(null, { $push: '$_id' }, upToNow)[1], [0, [4, 0]]);
    assert.deepEqual(
      of(null, { $count: {} }, { documents: [2, 3] }).map(([, x]) => x),
      [2, 2, 2, 1, 0, 0],
    );
  });

  test('takes windows by ranges of numbers and of time', (t) => {
    const documents = cakes(t);
    const near = { $sum: '$quantity', window: { range: [-1, 1] } };
    assert.deepEqual(run(documents, null, [{ price: 1 }, { x: near }]), [
      [2, 369],
      [0, 509],
      [3, 509],
      [1, 364],
      [4, 162],
      [5, 134],
    ]);
    const days = { $push: '$_id', window: { range: [-1, 'current'], unit: 'day' } };
    assert.deepEqual(run(documents, null, [{ orderDate: 1 }, { x: days }]), [
      [4, [4]],
      [0, [0]],
      [3, [3]],
      [1, [1]],
      [2, [1, 2]],
      [5, [5]],
    ]);
  });

  test('ranks, numbers, shifts, and averages with weights', (t) => {
    const documents = cakes(t);
    documents.insert('cakes', { _id: 6, type: 'vanilla', state: 'CA', price: 13, quantity: 145 });
    const of = (x: Document) => run(documents, '$state', [{ quantity: -1 }, { x }]);
    assert.deepEqual(of({ $rank: {} }), [
      [4, 1],
      [2, 2],
      [6, 2],
      [0, 4],
      [1, 1],
      [5, 2],
      [3, 3],
    ]);
    assert.deepEqual(
      of({ $denseRank: {} }).map(([, x]) => x),
      [1, 2, 2, 3, 1, 2, 3],
    );
    assert.deepEqual(
      of({ $documentNumber: {} }).map(([, x]) => x),
      [1, 2, 3, 4, 1, 2, 3],
    );
    const next = { $shift: { output: '$quantity', by: 1, default: 'none' } };
    assert.deepEqual(
      of(next).map(([, x]) => x),
      [145, 145, 120, 'none', 134, 104, 'none'],
    );
    assert.deepEqual(
      of({ $shift: { output: '$quantity', by: -2 } }).map(([, x]) => x),
      [null, null, 162, 145, null, null, 140],
    );
    const stocks = [13, 15.4, 12, 11.7].map((price, i) => ({ _id: i, price, at: i }));
    documents.insert('stocks', ...stocks);
    const average = (x: Document) =>
      documents
        .aggregate('stocks', [{ $setWindowFields: { sortBy: { at: 1 }, output: { 'a.x': x } } }])
        .map(({ a }) => a.x);
    assert.deepEqual(
      average({ $expMovingAvg: { input: '$price', N: 2 } }),
      [13, 14.6, 12.866666666666667, 12.088888888888889],
    );
    assert.deepEqual(average({ $expMovingAvg: { input: '$price', alpha: 0.75 } }), [13, 14.8, 12.7, 11.95]);
  });

  test('refuses what is none, and obeys the limits of memory', (t) => {
    const documents = cakes(t);
    const codeOf = (output: Document, more: Document = { sortBy: { price: 1 } }) =>
      documents.codeOf({
        aggregate: 'cakes',
        pipeline: [{ $setWindowFields: { output: { x: output }, ...more } }],
        cursor: {},
      });
    assert.equal(codeOf({ $nothing: 1 }), 9);
    assert.equal(codeOf({ $sum: 1, $avg: 1 }), 9);
    assert.equal(codeOf({ $rank: {} }, {}), 5371602);
    assert.equal(codeOf({ $rank: {}, window: { documents: [0, 1] } }), 5371601);
    assert.equal(codeOf({ $sum: 1, window: { documents: [1, 0] } }), 5339900);
    assert.equal(codeOf({ $sum: 1, window: { documents: [0.5, 1] } }), 9);
    assert.equal(codeOf({ $sum: 1, window: { range: [0, 1] } }, { sortBy: { type: 1 } }), 5429414);
    assert.equal(codeOf({ $sum: 1 }, { more: 1 }), 40415);
    documents.insert('cakes', ...Array.from({ length: 5000 }, (_, i) => ({ price: i, s: 'x'.repeat(500) })));
    assert.equal(codeOf({ $push: '$s', window: { documents: ['unbounded', 'current'] } }), 292);
  });
});

test('$merge changes a document by a pipeline, which knows the new one', (t) => {
  const documents = new TestDocuments(t);
  documents.insert('votes', { _id: 'x', thumbsup: 1, thumbsdown: 1 });
  documents.insert('totals', { _id: 'x', thumbsup: 60, thumbsdown: 40 }, { _id: 'y', n: 1 });
  const add = (name: string) => ({ $add: [`$${name}`, `$$new.${name}`] });
  const whenMatched = [{ $addFields: { thumbsup: add('thumbsup'), thumbsdown: add('thumbsdown') } }];
  const merge = (more: Document) => ({ $merge: { into: 'totals', on: '_id', ...more } });
  documents.aggregate('votes', [merge({ whenMatched, whenNotMatched: 'insert' })]);
  assert.deepEqual(documents.find('totals', { _id: 'x' }), [{ _id: 'x', thumbsup: 61, thumbsdown: 41 }]);
  const own = [{ $set: { by: '$$who', from: '$$before.thumbsup' } }];
  documents.aggregate('votes', [merge({ let: { who: 'me', before: '$$ROOT' }, whenMatched: own })]);
  assert.deepEqual(documents.find('totals', { _id: 'x' }), [
    { _id: 'x', thumbsup: 61, thumbsdown: 41, by: 'me', from: 1 },
  ]);
  const codeOf = (more: Document) =>
    documents.codeOf({ aggregate: 'votes', pipeline: [merge(more)], cursor: {} });
  assert.equal(codeOf({ whenMatched: [{ $group: { _id: 1 } }] }), 72);
  assert.equal(codeOf({ whenMatched: [{ $set: { _id: 2 } }] }), 66);
  assert.equal(codeOf({ whenMatched: 'nothing' }), 2);
});
