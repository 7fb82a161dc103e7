/** Figures as described in the manual's pages on dbStats, collStats, $collStats and $indexStats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Document, Long } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

test('dbStats counts collections and views apart, and scales its sizes', (t) => {
  const documents = new TestDocuments(t);
  documents.insert('a', { _id: 1, text: 'x'.repeat(3000) }, { _id: 2 });
  documents.run({ createIndexes: 'a', indexes: [{ key: { text: 1 }, name: 'text' }] });
  documents.run({ create: 'v', viewOn: 'a' });
  const { db, collections, views, objects, indexes, dataSize, indexSize } = documents.run({ dbStats: 1 });
  assert.deepEqual(
    { db, collections, views, objects, indexes },
    {
      db: 'shop',
      collections: 1,
      views: 1,
      objects: 2,
      indexes: 2,
    },
  );
  assert.ok(dataSize > 3000 && indexSize > 3000);
  const scaled = documents.run({ dbStats: 1, scale: 1024 });
  assert.deepEqual([scaled.dataSize, scaled.scaleFactor], [dataSize / 1024, 1024]);
});

test('collStats and $collStats tell the same, also of a collection that is not there', (t) => {
  const documents = new TestDocuments(t);
  documents.insert('a', { _id: 1 }, { _id: 2 });
  const { ns, ok: _ok, ...figures } = documents.run({ collStats: 'a' });
  assert.equal(ns, 'shop.a');
  const [stage] = documents.aggregate('a', [{ $collStats: { storageStats: {}, count: {} } }]);
  assert.deepEqual(stage?.storageStats, figures);
  assert.equal(stage?.count, 2);
  assert.deepEqual(Object.keys(figures.indexSizes), ['_id_']);
  for (const name of ['count', 'size', 'avgObjSize', 'storageSize', 'freeStorageSize', 'nindexes'])
    assert.equal(typeof figures[name], 'number', name);
  const { count, size, nindexes } = documents.run({ collStats: 'none' });
  assert.deepEqual({ count, size, nindexes }, { count: 0, size: 0, nindexes: 0 });
  assert.equal(
    documents.codeOf({ aggregate: 'none', pipeline: [{ $collStats: { count: {} } }], cursor: {} }),
    26,
  );
});

test('$indexStats counts what used an index since it is there', (t) => {
  const documents = new TestDocuments(t);
  documents.insert('a', { _id: 1, n: 1 }, { _id: 2, n: 2 });
  documents.clock.advance(60_000);
  const since = new Date(documents.clock.now());
  documents.run({ createIndexes: 'a', indexes: [{ key: { n: 1 }, name: 'n' }] });
  const statsOf = (name: string) =>
    documents.aggregate('a', [{ $indexStats: {} }]).find((each) => each.name === name) as Document;
  assert.deepEqual(statsOf('n').accesses, { ops: 0, since });
  documents.find('a', { n: 1 });
  documents.aggregate('a', [{ $match: { n: { $gt: 0 } } }]);
  documents.run({ update: 'a', updates: [{ q: { n: 1 }, u: { $set: { m: 1 } } }] });
  documents.insert('a', { n: 9 });
  documents.find('a', { m: 1 });
  assert.deepEqual(statsOf('n').accesses, { ops: 3, since });
  assert.ok(statsOf('_id_').accesses.since < since);
  const exact = documents.ask(
    { aggregate: 'a', pipeline: [{ $indexStats: {} }], cursor: {} },
    { exact: true },
  );
  assert.ok(exact.cursor.firstBatch[1].accesses.ops instanceof Long);
  assert.deepEqual(statsOf('_id_').spec, { v: 2, key: { _id: 1 }, name: '_id_' });
  documents.run({ dropIndexes: 'a', index: 'n' });
  documents.run({ createIndexes: 'a', indexes: [{ key: { n: 1 }, name: 'n' }] });
  assert.equal(statsOf('n').accesses.ops, 0);
});

test('indexes of one key stand beside each other when more than their name distinguishes them', (t) => {
  const documents = new TestDocuments(t);
  const made = (index: Document) =>
    documents.codeOf({ createIndexes: 'a', indexes: [{ key: { n: 1 }, ...index }] });
  assert.equal(made({ name: 'n' }), undefined);
  assert.equal(made({ name: 'n' }), undefined);
  assert.equal(made({ name: 'other' }), 85);
  assert.equal(made({ name: 'n', expireAfterSeconds: 5 }), 85);
  assert.equal(made({ name: 'n', unique: true }), 86);
  assert.equal(made({ name: 'n', key: { m: 1 } }), 86);
  assert.equal(made({ name: 'unique', unique: true }), undefined);
  assert.equal(made({ name: 'sparse', sparse: true }), undefined);
  assert.equal(made({ name: 'some', partialFilterExpression: { m: 1 } }), undefined);
  assert.equal(made({ name: 'others', partialFilterExpression: { m: 2 } }), undefined);
  assert.equal(made({ name: 'folded', collation: { locale: 'en', strength: 2 } }), undefined);
  const { firstBatch } = documents.run({ listIndexes: 'a' }).cursor;
  assert.deepEqual(
    firstBatch.map(({ name }: Document) => name),
    ['_id_', 'n', 'unique', 'sparse', 'some', 'others', 'folded'],
  );
});

test('a duplicate is told with the key that is there already', (t) => {
  const documents = new TestDocuments(t);
  documents.run({ createIndexes: 'a', indexes: [{ key: { 'l.x': 1, s: -1 }, name: 'lx', unique: true }] });
  documents.insert('a', { l: [{ x: 1 }, { x: 2 }], s: 'a' });
  const { writeErrors } = documents.ask({ insert: 'a', documents: [{ l: [{ x: 3 }, { x: 2 }], s: 'a' }] });
  const [{ code, errmsg, keyPattern, keyValue }] = writeErrors;
  assert.equal(code, 11000);
  assert.deepEqual(keyPattern, { 'l.x': 1, s: -1 });
  assert.deepEqual(keyValue, { 'l.x': 2, s: 'a' });
  assert.match(
    errmsg,
    /^E11000 duplicate key error collection: shop\.a index: lx dup key: \{ l\.x: 2, s: "a" \}$/,
  );
});

test('indexes are listed as they can be made again', (t) => {
  const documents = new TestDocuments(t);
  const indexes = [
    { key: { p: '2dsphere', n: 1 }, name: 'p_2dsphere_n_1' },
    { key: { q: '2d' }, name: 'q', min: -10, max: 10, bits: 20 },
    { key: { s: 'hashed' }, name: 's' },
    { key: { at: 1 }, name: 'at', expireAfterSeconds: 60, hidden: true },
    { key: { n: -1 }, name: 'n', partialFilterExpression: { n: { $gt: 0 } }, unique: true },
  ];
  documents.run({ createIndexes: 'a', indexes });
  const list = () => documents.run({ listIndexes: 'a' }).cursor;
  const { firstBatch, id, ns } = list();
  assert.deepEqual([Number(id), ns], [0, 'shop.a']);
  const [ids, sphere, ...others] = firstBatch;
  assert.deepEqual(ids, { v: 2, key: { _id: 1 }, name: '_id_' });
  assert.deepEqual(sphere, { v: 2, ...indexes[0], '2dsphereIndexVersion': 3 });
  assert.deepEqual(
    others,
    indexes.slice(1).map((index) => ({ v: 2, ...index })),
  );
  assert.equal(
    documents.run({ createIndexes: 'a', indexes: firstBatch.slice(1) }).note,
    'all indexes already exist',
  );
  documents.run({ dropIndexes: 'a', index: '*' });
  documents.run({ createIndexes: 'a', indexes: firstBatch.slice(1) });
  assert.deepEqual(list().firstBatch, firstBatch);
  assert.equal(documents.run({ createIndexes: 'a', indexes }).note, 'all indexes already exist');
});
