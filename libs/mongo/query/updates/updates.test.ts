import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Decimal128, type Document, Double, Long, ObjectId, Timestamp } from 'bson';
import { TestDocuments } from '../../testing/document-database.ts';

/** The document before, the update, the document after, and other members of the statement. */
const CASES: readonly [Document, unknown, Document, Document?][] = [
  [{ a: 1 }, { $set: { 'b.c': 2, a: 3 } }, { a: 3, b: { c: 2 } }],
  [{ a: [1, 2] }, { $set: { 'a.1': 9, 'a.3': 4 } }, { a: [1, 9, null, 4] }],
  [{ a: 1, b: { c: 1 } }, { $unset: { a: '', 'b.c': '', z: '' } }, { b: {} }],
  [{ a: 1 }, { $inc: { a: 2, b: 5 } }, { a: 3, b: 5 }],
  [{ a: 4 }, { $mul: { a: 2.5, b: 5 } }, { a: 10, b: 0 }],
  [{ a: 13 }, { $bit: { a: { and: 10 }, b: { or: 5 }, 'c.d': { xor: 3 } } }, { a: 8, b: 5, c: { d: 3 } }],
  [{ a: 1 }, { $set: { $a: 2, 'b.$c': 3 }, $inc: { $n: 1 } }, { a: 1, $a: 2, b: { $c: 3 }, $n: 1 }],
  [
    { a: 4, b: 4 },
    { $min: { a: 2, c: 1 }, $max: { b: 2 } },
    { a: 2, b: 4, c: 1 },
  ],
  [{ a: { b: 1 } }, { $rename: { 'a.b': 'c' } }, { a: {}, c: 1 }],
  [{ a: [1] }, { $push: { a: 2, b: [3] } }, { a: [1, 2], b: [[3]] }],
  [{ a: [3, 1] }, { $push: { a: { $each: [2, 4], $sort: 1, $slice: 3 } } }, { a: [1, 2, 3] }],
  [{ a: [1, 2] }, { $push: { a: { $each: [9], $position: 0, $slice: -2 } } }, { a: [1, 2] }],
  [
    {
      a: [
        { n: 2, m: 1 },
        { n: 1, m: 1 },
      ],
    },
    { $push: { a: { $each: [{ n: 1, m: 2 }], $sort: { n: 1, m: -1 } } } },
    {
      a: [
        { n: 1, m: 2 },
        { n: 1, m: 1 },
        { n: 2, m: 1 },
      ],
    },
  ],
  [{ a: [1, { b: 1 }] }, { $addToSet: { a: { $each: [1.0, { b: 1 }, 3] } } }, { a: [1, { b: 1 }, 3] }],
  [{ a: [1, 5, 9] }, { $pull: { a: { $gt: 4, $lt: 9 } } }, { a: [1, 9] }],
  [
    { a: [{ b: 1 }, { b: 2 }, { b: 3, c: 1 }, 4] },
    { $pull: { a: { $or: [{ b: 1 }, { $and: [{ b: 3 }, { c: 1 }] }] } } },
    { a: [{ b: 2 }, 4] },
  ],
  [{ a: [{ b: 1, c: 2 }, { b: 2 }] }, { $pull: { a: { b: 1 } } }, { a: [{ b: 2 }] }],
  [{ a: [1, 2, 1] }, { $pullAll: { a: [1] } }, { a: [2] }],
  [{ a: [1, 2, 3] }, { $pop: { a: -1 } }, { a: [2, 3] }],
  [{ a: [{ b: 1 }, { b: 2 }] }, { $inc: { 'a.$[].b': 1 } }, { a: [{ b: 2 }, { b: 3 }] }],
  [{ a: [1, 5] }, { $set: { 'a.$[x]': 0 } }, { a: [1, 0] }, { arrayFilters: [{ x: { $gt: 2 } }] }],
  [
    { a: [{ b: 1, c: [1, 7] }] },
    { $set: { 'a.$[x].c.$[y]': 0 } },
    { a: [{ b: 1, c: [1, 0] }] },
    { arrayFilters: [{ 'x.b': 1 }, { y: 7 }] },
  ],
  [{ a: [4, 6, 8] }, { $set: { 'a.$': 0 } }, { a: [4, 0, 8] }, { q: { _id: 1, a: { $gt: 5 } } }],
  [{ a: [4, 6] }, { $set: { 'a.$': 0 } }, { a: [4, 0] }, { q: { _id: 1, $or: [{ z: 1 }, { a: 6 }] } }],
  [
    { a: [4, 6], b: [{ c: 1 }, { c: 2 }] },
    { $set: { 'a.$': 0 } },
    { a: [4, 0], b: [{ c: 1 }, { c: 2 }] },
    { q: { _id: 1, 'b.c': 2 } },
  ],
  [
    { a: [{ k: 1 }, { k: 2 }] },
    { $set: { 'a.$.v': 1 } },
    { a: [{ k: 1 }, { k: 2, v: 1 }] },
    { q: { 'a.k': 2 } },
  ],
  [{ a: 1, b: 1 }, { c: 1 }, { c: 1 }],
  [{ a: 2 }, [{ $set: { b: { $multiply: ['$a', 3] } } }, { $unset: 'a' }], { b: 6 }],
];

describe('updating', () => {
  test('each operator does what MongoDB says', (t) => {
    const documents = new TestDocuments(t);
    for (const [before, change, after, more] of CASES) {
      documents.run({ delete: 'things', deletes: [{ q: {}, limit: 0 }] });
      documents.insert('things', { _id: 1, ...before });
      assert.deepEqual(
        documents.update('things', change, more),
        { _id: 1, ...after },
        JSON.stringify(change),
      );
    }
  });

  test('keeps types, and counts with them', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', {
      _id: 1,
      double: new Double(2),
      long: Long.fromString('9007199254740993'),
      decimal: Decimal128.fromString('0.1'),
      int: 2 ** 31 - 1,
      other: new Double(7),
    });
    documents.update('things', {
      $inc: { double: 1, long: 1, decimal: Decimal128.fromString('0.2'), int: 1 },
      $currentDate: { at: { $type: 'timestamp' } },
    });
    const [found] = documents.ask({ find: 'things' }, { exact: true }).cursor.firstBatch;
    assert.ok(found.double instanceof Double && found.double.value === 3);
    assert.equal(found.long.toString(), '9007199254740994');
    assert.equal(found.decimal.toString(), '0.3');
    assert.ok(found.int instanceof Long && found.int.toString() === '2147483648');
    assert.ok(found.other instanceof Double);
    assert.ok(found.at instanceof Timestamp);
  });

  test('what cannot be is an error, and changes nothing', (t) => {
    const documents = new TestDocuments(t);
    const start = { _id: 1, text: 'a', list: [1], obj: { a: 1 } };
    documents.insert('things', start);
    const cases: [unknown, number, Document?][] = [
      [{ $inc: { text: 1 } }, 14],
      [{ $inc: { obj: 'x' } }, 14],
      [{ $push: { text: 1 } }, 2],
      [{ $pop: { text: 1 } }, 14],
      [{ $set: { 'text.a': 1 } }, 28],
      [{ $set: { 'list.a': 1 } }, 28],
      [{ $set: { _id: 2 } }, 66],
      [{ _id: 2 }, 66],
      [{ $set: { a: 1 }, $inc: { a: 1 } }, 40],
      [{ $set: { 'a.b': 1, a: 1 } }, 40],
      [{ $nothing: { a: 1 } }, 9],
      [{ $set: { a: 1 }, constructor: { a: 1 } }, 9],
      [{ $set: 1 }, 9],
      [{ a: 1, $set: { b: 1 } }, 52],
      [{ $set: { 'list.$': 1 } }, 2],
      [{ $set: { 'list.$[x]': 1 } }, 2],
      [{ $inc: { 'list.$[]': 1, 'list.$[x]': 1 } }, 40, { arrayFilters: [{ x: 1 }] }],
      [{ $set: { text: 1 } }, 9, { arrayFilters: [{ x: 1 }] }],
      [{ $set: { 'a..b': 1 } }, 56],
      [[{ $match: {} }], 72],
      [{ b: 1 }, 9, { multi: true }],
    ];
    for (const [u, code, more] of cases) {
      const command = { update: 'things', updates: [{ q: { _id: 1 }, u, ...more }] };
      assert.equal(documents.codeOf(command), code, JSON.stringify(u));
    }
    assert.deepEqual(documents.find('things'), [start]);
  });

  test('upserts take what the filter says, and tell the new _id', (t) => {
    const documents = new TestDocuments(t);
    const upsert = (q: Document, u: unknown) =>
      documents.run({ update: 'things', updates: [{ q, u, upsert: true }] });
    const reply = upsert(
      { name: 'a', 'x.y': { $eq: 2 }, n: { $gt: 1 }, $and: [{ z: 3 }] },
      { $set: { b: 1 }, $setOnInsert: { c: 1 } },
    );
    assert.equal(reply.n, 1);
    const { _id, ...made } = documents.find('things', { name: 'a' })[0] ?? {};
    assert.ok(_id instanceof ObjectId);
    assert.deepEqual(reply.upserted, [{ index: 0, _id }]);
    assert.deepEqual(made, { name: 'a', x: { y: 2 }, z: 3, b: 1, c: 1 });
    upsert({ name: 'a' }, { $setOnInsert: { c: 2 }, $set: { b: 5 } });
    assert.deepEqual(
      documents.find('things').map(({ b, c }) => [b, c]),
      [[5, 1]],
    );
    upsert({ _id: 7 }, { r: 1 });
    assert.deepEqual(documents.find('things', { _id: 7 }), [{ _id: 7, r: 1 }]);
  });

  test('a pipeline that replaces the document keeps its _id', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', { _id: 1, x: 5, inner: { y: 1 } });
    const keepsOwn = [{ $replaceWith: '$inner' }];
    assert.deepEqual(documents.update('things', keepsOwn), { _id: 1, y: 1 });
    const same = [{ $replaceRoot: { newRoot: { _id: 1, z: { $add: ['$y', 1] } } } }];
    assert.deepEqual(documents.update('things', same), { _id: 1, z: 2 });
    assert.deepEqual(documents.update('things', [{ $unset: '_id' }]), { _id: 1, z: 2 });
    const other = [{ $replaceWith: { _id: 2 } }];
    assert.equal(documents.codeOf({ update: 'things', updates: [{ q: {}, u: other }] }), 66);
    documents.run({
      update: 'new',
      updates: [{ q: { _id: 5 }, u: [{ $replaceWith: { n: 1 } }], upsert: true }],
    });
    assert.deepEqual(documents.find('new'), [{ _id: 5, n: 1 }]);
  });

  test('an upsert may have the _id null, which its type finds', (t) => {
    const documents = new TestDocuments(t);
    const upsert = (q: object, u: object) =>
      documents.run({ update: 'things', updates: [{ q, u, upsert: true }] });
    assert.deepEqual(upsert({ _id: null }, { $unset: { a: '' } }).upserted, [{ index: 0, _id: null }]);
    assert.deepEqual(documents.find('things', { _id: { $type: 'null' } }), [{ _id: null }]);
    documents.run({ delete: 'things', deletes: [{ q: {}, limit: 0 }] });
    upsert({}, { _id: null, x: 1 });
    assert.deepEqual(documents.find('things', { _id: { $type: 10 } }), [{ _id: null, x: 1 }]);
  });

  test('many at once; counts tell what matched and what changed', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', ...Array.from({ length: 300 }, (_, _id) => ({ _id, n: _id % 2 })));
    documents.run({ createIndexes: 'things', indexes: [{ key: { n: 1 }, name: 'n_1' }] });
    const reply = documents.run({
      update: 'things',
      updates: [{ q: { n: { $gte: 0 } }, u: { $max: { n: 1 } }, multi: true }],
    });
    assert.deepEqual([reply.n, reply.nModified], [300, 150]);
    documents.run({
      update: 'things',
      updates: [{ q: { n: { $gte: 1 } }, u: { $inc: { n: 1 } }, multi: true }],
    });
    assert.equal(documents.find('things', { n: 2 }).length, 300);
    assert.equal(
      documents.run({ delete: 'things', deletes: [{ q: { _id: { $lt: 100 } }, limit: 0 }] }).n,
      100,
    );
    assert.equal(documents.run({ delete: 'things', deletes: [{ q: {}, limit: 1 }] }).n, 1);
    assert.equal(documents.run({ count: 'things' }).n, 199);
  });

  test('findAndModify gives the document before or after', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', { _id: 1, n: 1 }, { _id: 2, n: 2 });
    const modify = (more: Document) => documents.run({ findAndModify: 'things', ...more });
    const sort = { n: -1 };
    assert.deepEqual(modify({ query: {}, sort, update: { $inc: { n: 5 } } }).value, { _id: 2, n: 2 });
    assert.deepEqual(
      modify({ query: { n: 7 }, update: { $inc: { n: 1 } }, new: true, fields: { _id: 0 } }).value,
      { n: 8 },
    );
    const reply = modify({ query: { _id: 9 }, update: { $set: { n: 1 } }, upsert: true, new: true });
    assert.deepEqual(reply.value, { _id: 9, n: 1 });
    assert.deepEqual(reply.lastErrorObject, { n: 1, updatedExisting: false, upserted: 9 });
    assert.deepEqual(modify({ query: { _id: 9 }, remove: true }).value, { _id: 9, n: 1 });
    assert.equal(modify({ query: { _id: 9 }, remove: true }).value, null);
  });
});
