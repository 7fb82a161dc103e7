import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { type Document, deserialize, serialize } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

const NO_CASE = { locale: 'en', strength: 2 };
const PLAIN = { locale: 'en', strength: 1 };

const addresses = (documents: TestDocuments) => {
  documents.run({
    createIndexes: 'users',
    indexes: [{ key: { email: 1 }, name: 'email', unique: true, collation: NO_CASE }],
  });
  documents.insert('users', { _id: 1, email: 'Ann@Example.com' }, { _id: 2, email: 'ben@example.com' });
};
const planOf = (documents: TestDocuments, query: Document) => {
  const { indexName, stage } = documents.sourceOf(query);
  return indexName ?? stage;
};

describe('indexes with a collation', () => {
  test('find an e-mail address without regard to case, and hold that it is unique', (t) => {
    const documents = new TestDocuments(t);
    addresses(documents);
    const filter = { email: 'ANN@example.COM' };
    assert.deepEqual(documents.ids('users', filter, { collation: NO_CASE }), [1]);
    assert.deepEqual(documents.ids('users', filter), []);
    assert.equal(planOf(documents, { find: 'users', filter, collation: NO_CASE }), 'email');
    assert.equal(planOf(documents, { find: 'users', filter, collation: PLAIN }), 'COLLSCAN');
    assert.equal(planOf(documents, { find: 'users', filter }), 'COLLSCAN');
    assert.equal(planOf(documents, { find: 'users', filter: { email: 5 } }), 'email');
    const twice = { insert: 'users', documents: [{ _id: 3, email: 'aNN@example.com' }] };
    assert.equal(documents.codeOf(twice), 11000);
    const changed = {
      update: 'users',
      updates: [{ q: { _id: 2 }, u: { $set: { email: 'ANN@EXAMPLE.COM' } } }],
    };
    assert.equal(documents.codeOf(changed), 11000);
    documents.insert('users', { _id: 3, email: 'änn@example.com' });
    assert.equal(
      documents.codeOf({ insert: 'users', documents: [{ _id: 4, email: 'ÄNN@example.com' }] }),
      11000,
    );
  });

  test('one that would not be unique is not made', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('users', { name: 'ann' }, { name: 'ANN' });
    const index = { key: { name: 1 }, name: 'name', unique: true, collation: NO_CASE };
    assert.equal(documents.codeOf({ createIndexes: 'users', indexes: [index] }), 11000);
    documents.run({ createIndexes: 'users', indexes: [{ ...index, collation: { locale: 'en' } }] });
  });

  test('those of one key are kept apart by name, and listed with all that a collation says', (t) => {
    const documents = new TestDocuments(t);
    const make = (name: string, collation: Document) =>
      documents.ask({ createIndexes: 'users', indexes: [{ key: { name: 1 }, name, collation }] });
    assert.equal(make('one', NO_CASE).ok, 1);
    assert.equal(make('two', PLAIN).ok, 1);
    assert.match(make('one', { ...NO_CASE, caseFirst: 'off' }).note, /already exist/);
    assert.equal(make('three', NO_CASE).code, 85);
    assert.equal(make('one', { locale: 'de' }).code, 86);
    assert.equal(make('simple', { locale: 'simple' }).ok, 1);
    const listed = documents.run({ listIndexes: 'users' }).cursor.firstBatch;
    assert.deepEqual(
      listed.map(({ name, collation }: Document) => [name, collation?.strength]),
      [
        ['_id_', undefined],
        ['one', 2],
        ['two', 1],
        ['simple', undefined],
      ],
    );
    const { version, ...spec } = listed[1].collation;
    assert.equal(typeof version, 'string');
    assert.deepEqual(spec, {
      locale: 'en',
      caseLevel: false,
      caseFirst: 'off',
      strength: 2,
      numericOrdering: false,
      alternate: 'non-ignorable',
      maxVariable: 'punct',
      normalization: false,
      backwards: false,
    });
  });

  test('keys that another version of ICU made are made anew', (t) => {
    const documents = new TestDocuments(t);
    documents.run({ create: 'users', collation: NO_CASE });
    addresses(documents);
    documents.insert('users', { _id: 'Text', email: 'c' });
    documents.database.close();
    const file = new DatabaseSync(documents.file);
    const older = (spec: unknown) => {
      const { collation, ...rest } = deserialize(spec as Uint8Array);
      return serialize({ ...rest, collation: { ...collation, version: '1.0' } });
    };
    for (const [table, column] of [
      ['indexes', 'spec'],
      ['collections', 'options'],
    ]) {
      const row = file.prepare(`SELECT id, ${column} AS spec FROM ${table}`).get();
      const changed = older(row?.spec);
      file.prepare(`UPDATE ${table} SET ${column} = ? WHERE id = ?`).run(changed, row?.id as number);
    }
    file.exec("UPDATE i1 SET k = x'01' WHERE n = 1; UPDATE c1 SET k = x'02', s = NULL WHERE n = 3");
    file.close();
    documents.open();
    assert.deepEqual(documents.ids('users', { email: 'ANN@EXAMPLE.COM' }), [1]);
    assert.deepEqual(documents.ids('users', { _id: 'TEXT' }), ['Text']);
    const [ids, email] = documents.run({ listIndexes: 'users' }).cursor.firstBatch;
    assert.equal(ids.collation.version, email.collation.version);
    assert.notEqual(ids.collation.version, '1.0');
  });
});

describe('the collation of a collection', () => {
  test('holds for its queries, its indexes and its _id, unless they say otherwise', (t) => {
    const documents = new TestDocuments(t);
    documents.run({ create: 'words', collation: NO_CASE });
    documents.run({ createIndexes: 'words', indexes: [{ key: { word: 1 }, name: 'word' }] });
    documents.insert('words', { _id: 'A', word: 'Tea' }, { _id: 'B', word: 'coffee' });
    assert.deepEqual(documents.ids('words', { word: 'TEA' }), ['A']);
    assert.deepEqual(documents.ids('words', { word: 'TEA' }, { collation: { locale: 'simple' } }), []);
    assert.deepEqual(documents.ids('words', { _id: 'a' }), ['A']);
    assert.deepEqual(documents.ids('words', { _id: 'a' }, { collation: { locale: 'simple' } }), []);
    assert.equal(documents.codeOf({ insert: 'words', documents: [{ _id: 'a' }] }), 11000);
    assert.deepEqual(documents.ids('words', {}, { sort: { word: 1 } }), ['B', 'A']);
    assert.equal(planOf(documents, { find: 'words', filter: { word: 'x' } }), 'word');
    const [{ options }] = documents.run({ listCollections: 1 }).cursor.firstBatch;
    assert.equal(options.collation.strength, 2);
    documents.database.close();
    documents.open();
    assert.deepEqual(documents.ids('words', { word: 'tea' }), ['A']);
    documents.aggregate('words', [{ $out: 'copy' }]);
    documents.aggregate('words', [{ $set: { more: 1 } }, { $merge: 'words' }]);
    assert.deepEqual(documents.ids('words', { more: 1 }), ['A', 'B']);
  });
});
