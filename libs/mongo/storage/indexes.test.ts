import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Decimal128, type Document, Double, Long } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const value = fc.oneof(
  fc.integer({ min: 0, max: 4 }),
  fc.constantFrom<unknown>(
    null,
    'a',
    'A',
    'á',
    'b',
    true,
    new Double(2),
    Long.fromNumber(3),
    Decimal128.fromString('2.5'),
    1.5,
    Number.NaN,
  ),
);
/** Only one of an index's fields may hold arrays. */
const field = fc.oneof(value, value, fc.array(value, { maxLength: 3 }), fc.constant({}));
const document = fc.record({ a: field, b: value, c: fc.record({ d: field }) }, { requiredKeys: [] });
const operator = fc.oneof(
  value,
  fc
    .constantFrom('$gt', '$gte', '$lt', '$lte', '$eq', '$ne')
    .chain((name) => value.map((operand) => ({ [name]: operand }))),
  fc.tuple(value, value).map(([low, high]) => ({ $gte: low, $lt: high })),
  fc.array(value, { maxLength: 3 }).map((list) => ({ $in: list })),
  fc.boolean().map((is) => ({ $exists: is })),
);
const filter = fc
  .dictionary(fc.constantFrom('a', 'b', 'c.d'), operator, { maxKeys: 3 })
  .map((terms) => ({ ...terms }));
const sort = fc
  .uniqueArray(fc.constantFrom('a', 'b', 'c.d'), { maxLength: 2 })
  .chain((names) =>
    fc.tuple(...names.map((name) => fc.constantFrom(1, -1).map((turn) => [name, turn] as const))),
  )
  .map((terms) => ({ ...Object.fromEntries(terms), _id: 1 }));

const INDEXES: readonly Document[] = [
  { key: { a: 1 }, name: 'a' },
  { key: { b: -1, a: 1 }, name: 'ba' },
  { key: { 'c.d': 1, b: 1 }, name: 'cb' },
  { key: { b: 1 }, name: 'b', sparse: true },
  { key: { a: 1 }, name: 'a2', collation: { locale: 'en', strength: 2 } },
  { key: { b: -1, 'c.d': 1 }, name: 'bc1', collation: { locale: 'en', strength: 1 } },
];
/** Some queries use a field of an index, some none. */
const collation = fc.constantFrom<Document>(
  {},
  {},
  ...[1, 2, 3].map((strength) => ({ collation: { locale: 'en', strength } })),
);

describe('indexes', () => {
  test('find the same documents in the same order as without them, whatever is written', (t) => {
    const documents = new TestDocuments(t);
    fc.assert(
      fc.property(
        fc.array(document, { minLength: 1, maxLength: 12 }),
        fc.array(fc.tuple(filter, sort, collation), { minLength: 1, maxLength: 6 }),
        fc.tuple(filter, field),
        (list, queries, [gone, changed]) => {
          for (const name of ['plain', 'indexed']) documents.run({ drop: name });
          documents.run({ createIndexes: 'indexed', indexes: INDEXES });
          for (const name of ['plain', 'indexed']) {
            documents.insert(name, ...list.map((each, _id) => ({ _id, ...each })));
            documents.run({ update: name, updates: [{ q: gone, u: { $set: { a: changed } }, multi: true }] });
            documents.run({ delete: name, deletes: [{ q: { ...gone, _id: { $gt: 4 } }, limit: 0 }] });
          }
          for (const [terms, order, more] of queries) {
            const expected = documents.ids('plain', terms, { sort: order, ...more });
            assert.deepEqual(documents.ids('indexed', terms, { sort: order, ...more }), expected);
            assert.deepEqual(documents.ids('indexed', terms, more).sort(), expected.toSorted());
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  test('hashed ones find what is equal, whatever type of number it is', (t) => {
    const documents = new TestDocuments(t);
    fc.assert(
      fc.property(
        fc.array(value, { maxLength: 10 }),
        fc.array(operator, { minLength: 1, maxLength: 5 }),
        (list, asked) => {
          for (const name of ['plain', 'hashed']) {
            documents.run({ drop: name });
            documents.insert(name, ...list.map((b, _id) => ({ _id, a: 1, b })), { _id: 100, a: 1 });
          }
          documents.run({ createIndexes: 'hashed', indexes: [{ key: { a: 1, b: 'hashed' }, name: 'h' }] });
          documents.run({
            update: 'hashed',
            updates: [{ q: { b: 'a' }, u: { $set: { b: 4 } }, multi: true }],
          });
          documents.run({
            update: 'plain',
            updates: [{ q: { b: 'a' }, u: { $set: { b: 4 } }, multi: true }],
          });
          for (const b of asked) {
            const expected = documents.ids('plain', { a: 1, b });
            assert.deepEqual(documents.ids('hashed', { a: 1, b }).sort(), expected.toSorted());
          }
        },
      ),
      { numRuns: 100 },
    );
    const source = documents.sourceOf({ find: 'hashed', filter: { a: 1, b: { $in: [1, 2] } } });
    assert.deepEqual([source.stage, source.indexName], ['IXSCAN', 'h']);
    assert.equal(documents.codeOf({ insert: 'hashed', documents: [{ b: [1] }] }), 16766);
    const refused = { key: { b: 'hashed' }, name: 'u', unique: true };
    assert.equal(documents.codeOf({ createIndexes: 'hashed', indexes: [refused] }), 16764);
  });

  test('are used for equality, $in, ranges and order', (t) => {
    const documents = new TestDocuments(t);
    documents.run({
      createIndexes: 'things',
      indexes: [
        { key: { a: 1, b: -1 }, name: 'ab' },
        { key: { s: 1 }, name: 's', sparse: true },
      ],
    });
    const planOf = (filterOf: Document, order: Document = {}) => {
      const command = { find: 'things', filter: filterOf, sort: order };
      const { winningPlan } = documents.run({ explain: command }).queryPlanner;
      const source = documents.sourceOf(command);
      return [winningPlan.stage === 'SORT' ? 'sort' : '', source.indexName ?? source.stage].join('');
    };
    assert.equal(planOf({ a: 1 }), 'ab');
    assert.equal(planOf({ a: { $in: [1, 2] }, b: { $gt: 1 } }), 'ab');
    assert.equal(planOf({ a: { $gt: 1 } }), 'ab');
    assert.equal(planOf({ a: 1 }, { b: 1 }), 'ab');
    assert.equal(planOf({ a: 1 }, { b: -1 }), 'ab');
    assert.equal(planOf({}, { a: -1, b: 1 }), 'ab');
    assert.equal(planOf({}, { a: 1, b: 1 }), 'sortCOLLSCAN');
    assert.equal(planOf({ b: 1 }), 'COLLSCAN');
    assert.equal(planOf({ s: 1 }), 's');
    assert.equal(planOf({ s: null }), 'COLLSCAN');
    assert.equal(planOf({ a: 1, _id: 5 }), '_id_');
    assert.equal(planOf({ $and: [{ a: 1 }] }), 'ab');
    documents.insert('things', { a: [1, 2] });
    assert.equal(planOf({ a: 1 }, { b: 1 }), 'sortab');
  });

  test('unique ones hold, through updates too; sparse and partial ones leave out what they say', (t) => {
    const documents = new TestDocuments(t);
    documents.run({
      createIndexes: 'people',
      indexes: [
        { key: { mail: 1 }, name: 'mail', unique: true, sparse: true },
        { key: { nick: 1 }, name: 'nick', unique: true, partialFilterExpression: { active: true } },
      ],
    });
    documents.insert(
      'people',
      { _id: 1, mail: 'a', nick: 'x' },
      { _id: 2, nick: 'x' },
      { _id: 3, nick: 'x', active: true },
    );
    assert.equal(documents.codeOf({ insert: 'people', documents: [{ mail: 'a' }] }), 11000);
    assert.equal(
      documents.codeOf({ update: 'people', updates: [{ q: { _id: 2 }, u: { $set: { mail: 'a' } } }] }),
      11000,
    );
    assert.equal(
      documents.codeOf({
        update: 'people',
        updates: [{ q: {}, u: { $set: { active: true } }, multi: true }],
      }),
      11000,
    );
    assert.equal(
      documents.codeOf({ findAndModify: 'people', query: { _id: 9 }, update: { mail: 'a' }, upsert: true }),
      11000,
    );
    documents.run({ update: 'people', updates: [{ q: { _id: 1 }, u: { $unset: { mail: 1 } } }] });
    documents.insert('people', { mail: 'a' });
    documents.insert('twice', { a: 1 }, { a: 1 });
    assert.equal(
      documents.codeOf({ createIndexes: 'twice', indexes: [{ key: { a: 1 }, name: 'a', unique: true }] }),
      11000,
    );
    assert.equal(documents.run({ listIndexes: 'twice' }).cursor.firstBatch.length, 1);
    assert.equal(documents.codeOf({ insert: 'things', documents: [{ a: 1 }] }), undefined);
    documents.run({ createIndexes: 'both', indexes: [{ key: { a: 1, b: 1 }, name: 'ab' }] });
    assert.equal(documents.codeOf({ insert: 'both', documents: [{ a: [1, 2], b: [1, 2] }] }), 171);
  });

  test('are read by a hint, all of them where they serve nothing', (t) => {
    const documents = new TestDocuments(t);
    const indexes = [
      { key: { a: 1 }, name: 'a' },
      { key: { b: -1 }, name: 'b', sparse: true },
      { key: { c: 1 }, name: 'c', hidden: true },
    ];
    documents.run({ createIndexes: 'h', indexes });
    documents.insert('h', { _id: 1, a: 1, b: 1 }, { _id: 2, a: 2 }, { _id: 3, b: 3 });
    const planOf = (hint: unknown, filter: Document = { a: 1 }) =>
      documents.sourceOf({ find: 'h', filter, hint }).indexName;
    assert.equal(planOf(undefined), 'a');
    assert.equal(planOf('_id_'), '_id_');
    assert.equal(planOf({ b: -1 }), 'b');
    assert.equal(planOf({ $natural: 1 }), undefined);
    assert.deepEqual(documents.ids('h', {}, { hint: { $natural: -1 } }), [3, 2, 1]);
    assert.deepEqual(documents.ids('h', {}, { hint: 'b' }), [3, 1], 'a sparse one has not all');
    assert.equal(documents.run({ count: 'h', query: { a: { $exists: true } }, hint: 'b' }).n, 1);
    assert.deepEqual(documents.aggregate('h', [{ $match: { a: 2 } }], { hint: 'a' })[0]?._id, 2);
    for (const hint of ['none', { a: -1 }, 'c']) {
      assert.equal(documents.codeOf({ find: 'h', hint }), 2);
      const updates = [{ q: {}, u: { $set: { x: 1 } }, hint }];
      assert.equal(documents.codeOf({ update: 'h', updates }), 2);
      assert.equal(documents.codeOf({ delete: 'h', deletes: [{ q: {}, limit: 0, hint }] }), 2);
      assert.equal(documents.codeOf({ findAndModify: 'h', query: {}, remove: true, hint }), 2);
      assert.equal(documents.codeOf({ aggregate: 'h', pipeline: [], cursor: {}, hint }), 2);
    }
    assert.equal(documents.run({ count: 'h' }).n, 3);
  });

  test('are listed, kept apart by name and key, dropped, and there after a restart', (t) => {
    const documents = new TestDocuments(t);
    const create = (index: Document) => ({ createIndexes: 'things', indexes: [index] });
    assert.deepEqual(documents.run(create({ key: { a: 1 }, name: 'a_1' })), {
      numIndexesBefore: 1,
      numIndexesAfter: 2,
      createdCollectionAutomatically: true,
      ok: 1,
    });
    assert.equal(documents.run(create({ key: { a: 1 }, name: 'a_1' })).note, 'all indexes already exist');
    assert.equal(documents.codeOf(create({ key: { b: 1 }, name: 'a_1' })), 86);
    assert.equal(documents.codeOf(create({ key: { a: 1 }, name: 'a_1', unique: true })), 86);
    documents.insert('things', { _id: 1, a: [1, 2] }, { _id: 2, a: 3 });
    documents.database.close();
    documents.open();
    assert.deepEqual(documents.run({ listIndexes: 'things' }).cursor.firstBatch, [
      { v: 2, key: { _id: 1 }, name: '_id_' },
      { v: 2, key: { a: 1 }, name: 'a_1' },
    ]);
    assert.deepEqual(documents.ids('things', { a: { $gte: 2 } }, { sort: { a: 1 } }), [1, 2]);
    assert.deepEqual(documents.run({ dropIndexes: 'things', index: { a: 1 } }), { nIndexesWas: 2, ok: 1 });
    assert.equal(documents.codeOf({ dropIndexes: 'things', index: 'a_1' }), 27);
    assert.equal(documents.codeOf({ dropIndexes: 'things', index: '_id_' }), 72);
  });

  test('those with a time remove what is too old', (t) => {
    const documents = new TestDocuments(t);
    documents.run({
      createIndexes: 'sessions',
      indexes: [{ key: { at: 1 }, name: 'at', expireAfterSeconds: 100 }],
    });
    documents.insert(
      'sessions',
      { _id: 1, at: new Date(documents.clock.now()) },
      { _id: 2 },
      { _id: 3, at: 'never' },
    );
    documents.clock.advance(90_000);
    assert.deepEqual(documents.ids('sessions', {}), [1, 2, 3]);
    documents.clock.advance(90_000);
    assert.deepEqual(documents.ids('sessions', {}), [2, 3]);
  });
});

describe('collections', () => {
  test('capped ones lose their oldest documents, by number and by bytes', (t) => {
    const documents = new TestDocuments(t);
    const options = { capped: true, size: 4096, max: 3 };
    // A server has at least 4 KiB, and otherwise multiples of 256 bytes.
    documents.run({ create: 'log', ...options, size: 1 });
    documents.run({ createIndexes: 'log', indexes: [{ key: { n: 1 }, name: 'n', unique: true }] });
    const text = 'x'.repeat(100);
    for (let n = 1; n <= 5; n++) documents.insert('log', { _id: n, n, text });
    assert.deepEqual(documents.ids('log', {}), [3, 4, 5]);
    assert.deepEqual(documents.ids('log', {}, { sort: { $natural: -1 } }), [5, 4, 3]);
    documents.insert('log', { _id: 6, n: 1, text: 'x'.repeat(3850) });
    assert.deepEqual(documents.ids('log', { n: { $gt: 0 } }, { sort: { n: 1 } }), [6, 5]);
    assert.equal(documents.codeOf({ insert: 'log', documents: [{ n: 7, text: 'x'.repeat(4100) }] }), 2);
    assert.deepEqual(documents.ids('log', {}), [5, 6]);
    documents.database.close();
    documents.open();
    documents.insert('log', { _id: 7, n: 7 });
    documents.insert('log', { _id: 8, n: 8 });
    assert.deepEqual(documents.ids('log', {}), [6, 7, 8]);
    const [listed] = documents.run({ listCollections: 1, filter: { name: 'log' } }).cursor.firstBatch;
    assert.deepEqual(listed.options, options);
    documents.run({ create: 'larger', capped: true, size: 5000 });
    assert.equal(documents.run({ collStats: 'larger' }).maxSize, 5120);
    const { capped, max, maxSize } = documents.run({ collStats: 'log' });
    assert.deepEqual({ capped, max, maxSize }, { capped: true, max: 3, maxSize: 4096 });
  });

  test('tell how much a query reads', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('a', ...Array.from({ length: 20 }, (_, n) => ({ n, even: n % 2 === 0 })));
    const stats = (more: Document) => {
      const explain = { find: 'a', filter: { n: { $lt: 10 }, even: true }, ...more };
      const told = documents.run({ explain, verbosity: 'executionStats' }).executionStats;
      return [told.nReturned, told.totalKeysExamined, told.totalDocsExamined];
    };
    assert.deepEqual(stats({}), [5, 0, 20]);
    assert.deepEqual(stats({ limit: 2 }), [2, 0, 3]);
    documents.run({ createIndexes: 'a', indexes: [{ key: { n: 1 }, name: 'n' }] });
    assert.deepEqual(stats({}), [5, 10, 10]);
    const planned = documents.run({ explain: { find: 'a' }, verbosity: 'queryPlanner' });
    assert.equal(planned.executionStats, undefined);
  });

  test('are renamed, with their documents and indexes', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('a', { _id: 1, n: 1 });
    documents.run({ createIndexes: 'a', indexes: [{ key: { n: 1 }, name: 'n' }] });
    documents.insert('there', { _id: 2 });
    const rename = (from: string, to: string, more: Document = {}) => ({
      renameCollection: from,
      to,
      ...more,
    });
    documents.run(rename('shop.a', 'shop.b.c'));
    assert.deepEqual(documents.ids('b.c', { n: 1 }), [1]);
    assert.deepEqual(documents.ids('a', {}), []);
    assert.equal(documents.sourceOf({ find: 'b.c', filter: { n: 1 } }).indexName, 'n');
    assert.equal(documents.codeOf(rename('shop.b.c', 'shop.there')), 48);
    documents.run(rename('shop.b.c', 'shop.there', { dropTarget: true }));
    documents.database.close();
    documents.open();
    documents.insert('there', { _id: 3 });
    assert.deepEqual(documents.ids('there', {}), [1, 3]);
    const codes = [
      ['shop.none', 'shop.x', 26],
      ['shop.there', 'shop.there', 20],
      ['shop.there', 'shop.$x', 73],
      ['shop.there', 'shop.', 73],
      ['shop.there', 'other.x', 13],
      ['other.x', 'shop.x', 13],
    ] as const;
    for (const [from, to, code] of codes)
      assert.equal(documents.codeOf(rename(from, to)), code, `${from} ${to}`);
  });

  test('are made, listed, measured, and dropped', (t) => {
    const documents = new TestDocuments(t);
    documents.run({ create: 'a' });
    assert.equal(documents.codeOf({ create: 'a' }), 48);
    documents.insert('b', { _id: 1, text: 'x'.repeat(1000) });
    const listed = documents.run({ listCollections: 1, filter: { name: 'b' } }).cursor.firstBatch;
    assert.equal(listed.length, 1);
    assert.equal(listed[0].type, 'collection');
    const stats = documents.run({ collStats: 'b' });
    assert.deepEqual([stats.count, stats.nindexes, stats.size > 1000], [1, 1, true]);
    const all = documents.run({ dbStats: 1 });
    assert.deepEqual([all.collections, all.objects, all.indexes], [2, 1, 2]);
    documents.run({ drop: 'a' });
    documents.run({ dropDatabase: 1 });
    assert.deepEqual(documents.run({ listCollections: 1 }).cursor.firstBatch, []);
    assert.deepEqual(documents.find('b'), []);
  });
});
