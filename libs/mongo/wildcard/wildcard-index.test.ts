/**
 * Wildcard indexes according to the manual: their results, the queries that they do not serve, and refusals.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Document } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const scalar = fc.oneof(
  fc.integer({ min: 0, max: 3 }),
  fc.constantFrom<unknown>(null, 'a', 'A', 'ab', true, 1.5, new Date(5), {}, /a/),
);
const names = fc.constantFrom('a', 'b', '0', 'c');
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(names, tie('value'), { maxKeys: 3 }),
  ),
}));
const document = fc.dictionary(names, value, { maxKeys: 3 });
const path = fc.array(names, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('.'));
const condition = fc.oneof(
  value,
  fc
    .constantFrom('$gt', '$gte', '$lt', '$lte', '$eq', '$ne')
    .chain((name) =>
      scalar.filter((each) => !(each instanceof RegExp)).map((operand) => ({ [name]: operand })),
    ),
  fc.array(scalar, { maxLength: 3 }).map((list) => ({ $in: list })),
  fc.constantFrom<unknown>({ $exists: true }, { $exists: false }, { $regex: '^a' }, { $not: { $gt: 1 } }),
);
const filter = fc.oneof(
  fc.tuple(path, condition).map(([name, asked]) => ({ [name]: asked })),
  fc.dictionary(path, condition, { minKeys: 2, maxKeys: 3 }),
  fc.tuple(path, condition, path, condition).map(([a, x, b, y]) => ({ $or: [{ [a]: x }, { [b]: y }] })),
);
const SPECS: readonly Document[] = [
  { key: { '$**': 1 }, name: 'all' },
  { key: { 'a.$**': 1 }, name: 'below' },
  { key: { '$**': 1 }, name: 'some', wildcardProjection: { b: 1, 'c.a': 1 } },
  { key: { '$**': 1 }, name: 'others', wildcardProjection: { b: 0, _id: 1 } },
  { key: { '$**': 1 }, name: 'folded', collation: { locale: 'en', strength: 2 } },
];

describe('a wildcard index', () => {
  test('finds the same documents as a scan, whatever is asked and written', (t) => {
    const documents = new TestDocuments(t);
    fc.assert(
      fc.property(
        fc.array(document, { minLength: 1, maxLength: 8 }),
        fc.array(filter, { minLength: 1, maxLength: 6 }),
        fc.tuple(fc.constantFrom(...SPECS), filter, value),
        (list, filters, [spec, changed, put]) => {
          for (const name of ['plain', 'indexed']) documents.run({ drop: name });
          documents.run({ createIndexes: 'indexed', indexes: [spec] });
          for (const name of ['plain', 'indexed']) {
            documents.insert(name, ...list.map((each, _id) => ({ _id, ...each })));
            documents.run({ update: name, updates: [{ q: changed, u: { $set: { b: put } }, multi: true }] });
          }
          for (const asked of filters) {
            for (const more of [{}, { collation: { locale: 'en', strength: 2 } }]) {
              const expected = documents.ids('plain', asked, more).toSorted();
              assert.deepEqual(documents.ids('indexed', asked, more).toSorted(), expected);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('is used for one field at a time, below an index of that field, and says so', (t) => {
    const documents = new TestDocuments(t);
    documents.run({ createIndexes: 'c', indexes: [{ key: { '$**': 1 } }, { key: { own: 1 } }] });
    documents.insert('c', { tags: ['x', 'y'], size: { width: 3 }, own: 1 }, { own: 2 });
    const [, listed] = documents.run({ listIndexes: 'c', cursor: {} }).cursor.firstBatch;
    assert.deepEqual([listed.name, listed.key], ['$**_1', { '$**': 1 }]);
    const source = (asked: Document, more = {}) => documents.sourceOf({ find: 'c', filter: asked, ...more });
    const used = source({ 'size.width': { $gte: 2 } });
    assert.deepEqual([used.stage, used.indexName], ['IXSCAN', '$**_1']);
    assert.deepEqual(used.keyPattern, { $_path: 1, 'size.width': 1 });
    assert.deepEqual(used.indexBounds.$_path, ['["size.width", "size.width"]']);
    assert.equal(source({ tags: 'x', own: 1 }).indexName, 'own_1');
    for (const scanned of [
      { a: null },
      { a: {} },
      { a: [1] },
      { 'tags.0': 'x' },
      { a: { $ne: 1 } },
      { _id: { $ne: 1 } },
    ])
      assert.equal(source(scanned).stage, 'COLLSCAN', JSON.stringify(scanned));
    assert.equal(source({ tags: 'x' }, { hint: '$**_1' }).indexName, '$**_1');
    assert.equal(documents.codeOf({ find: 'c', filter: { a: null }, hint: '$**_1' }), 291);
    documents.run({ dropIndexes: 'c', index: '$**_1' });
    assert.equal(source({ tags: 'x' }).stage, 'COLLSCAN');
  });

  test('is refused as a server refuses it, and beside other fields by name', (t) => {
    const documents = new TestDocuments(t);
    const codeOf = (spec: Document) =>
      documents.codeOf({ createIndexes: 'c', indexes: [{ name: 'w', ...spec }] });
    for (const option of [{ unique: true }, { sparse: true }, { expireAfterSeconds: 1 }])
      assert.equal(codeOf({ key: { '$**': 1 }, ...option }), 67);
    for (const key of [{ '$**': -1 }, { '$**.a': 1 }, { 'a.$**.b': 1 }, { '$**': 1, a: 1 }])
      assert.equal(codeOf({ key }), 67, JSON.stringify(key));
    assert.equal(codeOf({ key: { 'a.$**': 1 }, wildcardProjection: { b: 1 } }), 2);
    assert.equal(codeOf({ key: { a: 1 }, wildcardProjection: { b: 1 } }), 2);
    for (const wildcardProjection of [{}, { a: 1, b: 0 }, { a: 'x' }])
      assert.equal(codeOf({ key: { '$**': 1 }, wildcardProjection }), 9);
    const { errmsg } = documents.ask({
      createIndexes: 'c',
      indexes: [{ name: 'w', key: { '$**': 1, a: 1 } }],
    });
    assert.match(errmsg, /index these fields by themselves/);
  });
});
