import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Document, Long } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

const FIND = { find: 'log', tailable: true };

function capped(t: { after(work: () => void): void }, more: Document = {}): TestDocuments {
  const documents = new TestDocuments(t);
  documents.run({ create: 'log', capped: true, size: 4096, ...more });
  return documents;
}

describe('a tailable cursor', () => {
  const more = (documents: TestDocuments, id: Long, options: Document = {}): unknown[] =>
    documents
      .run({ getMore: Long.fromString(String(id)), collection: 'log', ...options })
      .cursor.nextBatch.map(({ _id }: Document) => _id);

  test('goes on with what is written after it came to the end', (t) => {
    const documents = capped(t);
    documents.insert('log', { _id: 1, kind: 'a' }, { _id: 2, kind: 'b' });
    const { cursor } = documents.run({ ...FIND, filter: { kind: 'a' }, awaitData: true });
    assert.deepEqual(cursor.firstBatch, [{ _id: 1, kind: 'a' }]);
    assert.notEqual(String(cursor.id), '0');
    assert.deepEqual(more(documents, cursor.id), []);
    documents.insert('log', { _id: 3, kind: 'b' }, { _id: 4, kind: 'a' }, { _id: 5, kind: 'a' });
    assert.deepEqual(more(documents, cursor.id, { batchSize: 1 }), [4]);
    assert.deepEqual(more(documents, cursor.id), [5]);
    assert.deepEqual(more(documents, cursor.id), []);
    documents.insert('log', { _id: 6, kind: 'a' });
    assert.deepEqual(more(documents, cursor.id), [6]);
  });

  test('shows, skips and bounds what it reads as others do', (t) => {
    const documents = capped(t);
    documents.insert('log', { _id: 1, n: 1 }, { _id: 2, n: 2 });
    const { cursor } = documents.run({ ...FIND, projection: { _id: 0 }, batchSize: 1 });
    assert.deepEqual(cursor.firstBatch, [{ n: 1 }]);
    const next = () =>
      documents.run({ getMore: Long.fromString(String(cursor.id)), collection: 'log' }).cursor;
    assert.deepEqual(next().nextBatch, [{ n: 2 }]);
  });

  test('is over where there is nothing from the first', (t) => {
    const documents = capped(t);
    assert.equal(String(documents.run(FIND).cursor.id), '0');
    assert.equal(String(documents.run({ ...FIND, find: 'none' }).cursor.id), '0');
  });

  test('ends when it was overtaken, or its collection dropped', (t) => {
    const documents = capped(t, { max: 2 });
    documents.insert('log', { _id: 1 });
    const overtaken = documents.run(FIND).cursor.id;
    documents.insert('log', { _id: 2 }, { _id: 3 }, { _id: 4 });
    const ask = (id: Long) => documents.ask({ getMore: Long.fromString(String(id)), collection: 'log' });
    assert.deepEqual([ask(overtaken).code, ask(overtaken).code], [136, 43]);
    const dropped = documents.run(FIND).cursor.id;
    documents.run({ drop: 'log' });
    documents.run({ create: 'log', capped: true, size: 4096 });
    assert.equal(ask(dropped).code, 175);
  });

  test('is for capped collections, in their own order', (t) => {
    const documents = capped(t);
    documents.insert('log', { _id: 1 });
    documents.insert('plain', { _id: 1 });
    assert.equal(documents.codeOf({ ...FIND, find: 'plain' }), 2);
    assert.equal(documents.codeOf({ ...FIND, sort: { n: 1 } }), 2);
    assert.equal(documents.codeOf({ ...FIND, singleBatch: true }), 9);
    assert.equal(documents.codeOf({ find: 'log', awaitData: true }), 9);
    assert.deepEqual(documents.run({ ...FIND, sort: { $natural: 1 } }).cursor.firstBatch, [{ _id: 1 }]);
  });
});

test('a clustered collection is in the order of its ids, and they expire', (t) => {
  const documents = new TestDocuments(t);
  const clusteredIndex = { key: { _id: 1 }, unique: true, name: 'ids' };
  documents.run({ create: 'c', clusteredIndex, expireAfterSeconds: 60 });
  documents.insert('c', { _id: 3 }, { _id: 1 }, { _id: 2 });
  assert.deepEqual(documents.ids('c', {}), [1, 2, 3]);
  assert.deepEqual(documents.ids('c', {}, { sort: { $natural: -1 } }), [3, 2, 1]);
  assert.equal(documents.codeOf({ insert: 'c', documents: [{ _id: 1 }] }), 11000);
  const [index] = documents.run({ listIndexes: 'c' }).cursor.firstBatch;
  const listed = { v: 2, key: { _id: 1 }, name: 'ids', unique: true };
  assert.deepEqual(index, { ...listed, clustered: true, expireAfterSeconds: 60 });
  const [{ options }] = documents.run({ listCollections: 1 }).cursor.firstBatch;
  assert.deepEqual(options, { clusteredIndex: listed, expireAfterSeconds: 60 });
  documents.database.close();
  documents.open();
  documents.insert('c', { _id: 0 }, { _id: new Date(documents.clock.now()) });
  assert.deepEqual(documents.ids('c', {}).slice(0, 4), [0, 1, 2, 3]);
  documents.clock.advance(120_000);
  assert.deepEqual(documents.ids('c', {}), [0, 1, 2, 3]);
  const codes = [
    [{ key: { _id: 1 } }, 40414],
    [{ key: { _id: 1 }, unique: false }, 5979700],
    [{ key: { a: 1 }, unique: true }, 197],
  ] as const;
  for (const [asked, code] of codes)
    assert.equal(documents.codeOf({ create: 'd', clusteredIndex: asked }), code);
  assert.equal(documents.codeOf({ create: 'd', expireAfterSeconds: 5 }), 72);
});
