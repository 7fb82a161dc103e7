import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { BSONRegExp, Decimal128, type Document, Long, serialize } from 'bson';
import fc from 'fast-check';
import { CommandError } from '../command-error.ts';
import { TestDocuments } from '../testing/document-database.ts';
import { decodeCommand, encodeReply } from '../values/bson-documents.ts';

/** Valid commands; unexpected values are put anywhere in them. */
const COMMANDS: readonly Document[] = [
  {
    find: 'a',
    filter: { a: { $gt: 1 }, $or: [{ b: 1 }] },
    sort: { a: 1 },
    projection: { a: 1, 'l.$': 1 },
    skip: 1,
    limit: 2,
    batchSize: 3,
  },
  {
    find: 'a',
    filter: { l: { $elemMatch: { $in: [1, 2] } }, a: { $not: { $type: 'int' } }, b: { $mod: [2, 0] } },
    hint: { a: 1 },
  },
  { count: 'a', query: { a: { $regex: '^a', $options: 'i' } }, limit: 3 },
  { distinct: 'a', key: 'l', query: {} },
  { insert: 'a', documents: [{ _id: 1, a: 1 }], ordered: false },
  {
    update: 'a',
    updates: [
      {
        q: { a: 1 },
        u: { $set: { 'l.$[x].y': 1 }, $inc: { n: 1 } },
        arrayFilters: [{ x: 1 }],
        multi: true,
        upsert: true,
      },
    ],
  },
  {
    update: 'a',
    updates: [
      {
        q: { l: 1 },
        u: {
          $push: { l: { $each: [1], $slice: 2, $sort: 1, $position: 0 } },
          $pull: { m: { $gt: 1 } },
          $bit: { n: { or: 1 } },
        },
      },
    ],
  },
  { update: 'a', updates: [{ q: {}, u: [{ $set: { b: { $add: ['$a', 1] } } }] }] },
  { delete: 'a', deletes: [{ q: { a: 1 }, limit: 1 }] },
  {
    findAndModify: 'a',
    query: { a: 1 },
    update: { $rename: { a: 'c' } },
    fields: { a: 1 },
    sort: { a: 1 },
    new: true,
    upsert: true,
  },
  {
    aggregate: 'a',
    pipeline: [
      { $match: { a: 1 } },
      { $group: { _id: '$a', s: { $sum: '$n' }, t: { $top: { output: '$a', sortBy: { a: 1 } } } } },
      { $limit: 1 },
    ],
    cursor: { batchSize: 1 },
  },
  {
    aggregate: 'a',
    pipeline: [
      { $unwind: { path: '$l' } },
      { $lookup: { from: 'b', localField: 'a', foreignField: 'a', as: 'x' } },
      { $bucket: { groupBy: '$a', boundaries: [1, 2], default: 0 } },
    ],
    cursor: {},
  },
  {
    aggregate: 'a',
    pipeline: [
      {
        $project: {
          a: { $round: ['$n', 2] },
          b: { $cond: [{ $gt: ['$a', 1] }, { $slice: ['$l', 1] }, { $toInt: '$b' }] },
        },
      },
      { $facet: { x: [{ $count: 'n' }] } },
    ],
    cursor: {},
  },
  {
    aggregate: 'a',
    pipeline: [
      { $graphLookup: { from: 'a', startWith: '$a', connectFromField: 'a', connectToField: 'b', as: 'x' } },
      { $merge: { into: 'b', on: '_id' } },
    ],
    cursor: {},
  },
  { create: 'c' },
  {
    create: 'v',
    validator: { $jsonSchema: { required: ['a'], properties: { a: { minimum: 1, pattern: 'a' } } } },
    validationLevel: 'strict',
  },
  { collMod: 'a', index: { name: 'a', hidden: true }, validator: { a: 1 }, validationAction: 'warn' },
  { aggregate: 'a', pipeline: [{ $collStats: { storageStats: { scale: 1 }, count: {} } }], cursor: {} },
  {
    createIndexes: 'a',
    indexes: [
      { key: { a: 1 }, name: 'a', unique: false, partialFilterExpression: { a: 1 }, expireAfterSeconds: 5 },
    ],
  },
  { dropIndexes: 'a', index: 'a' },
  { listCollections: 1, filter: { name: 'a' }, cursor: { batchSize: 1 } },
  { listIndexes: 'a', cursor: {} },
  {
    createIndexes: 'b',
    indexes: [
      { key: { l: '2dsphere', a: 1 }, name: 'l' },
      { key: { p: '2d' }, name: 'p', bits: 20, min: -9 },
    ],
  },
  {
    insert: 'b',
    documents: [
      {
        l: {
          type: 'Polygon',
          coordinates: [
            [
              [0, 0],
              [3, 6],
              [6, 1],
              [0, 0],
            ],
          ],
        },
        p: [1, 2],
      },
    ],
  },
  {
    find: 'b',
    filter: { l: { $near: { $geometry: { type: 'Point', coordinates: [1, 2] }, $maxDistance: 3 } } },
  },
  {
    find: 'b',
    filter: { p: { $near: [1, 2], $maxDistance: 3 }, l: { $geoWithin: { $centerSphere: [[0, 0], 1] } } },
  },
  {
    aggregate: 'b',
    pipeline: [
      { $geoNear: { near: [1, 2], distanceField: 'd', key: 'p', query: { a: 1 }, includeLocs: 'x' } },
    ],
    cursor: {},
  },
  {
    createIndexes: 'c',
    indexes: [{ key: { a: 'text' }, name: 't', weights: { a: 2 }, default_language: 'en' }],
  },
  {
    find: 'a',
    filter: { $text: { $search: 'a -b "c"', $language: 'en' } },
    sort: { s: { $meta: 'textScore' } },
  },
  { getMore: Long.fromNumber(1), collection: 'a', batchSize: 1 },
  { killCursors: 'a', cursors: [Long.fromNumber(1)] },
  { collStats: 'a', scale: 1 },
  { dbStats: 1, scale: 2 },
  { explain: { find: 'a', filter: { a: 1 }, sort: { a: 1 } } },
];
const STRANGE: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  Number.NaN,
  1e300,
  '',
  '$a',
  'a..b',
  '__proto__',
  [],
  [[]],
  {},
  { $gt: 1 },
  { $no: 1 },
  { a: { a: {} } },
  Long.MAX_VALUE,
  Decimal128.fromString('1E+6000'),
  Decimal128.fromString('NaN'),
  new BSONRegExp('(', ''),
  new BSONRegExp('a', 'x'),
  [1, 2],
  { type: 'Point', coordinates: [200, 1] },
  new Date(Number.NaN),
];

function pathsOf(value: unknown, path: readonly string[] = []): string[][] {
  const isPlain = Array.isArray(value) || (value as object | null)?.constructor === Object;
  const inner = isPlain
    ? Object.entries(value as Document).flatMap(([name, each]) => pathsOf(each, [...path, name]))
    : [];
  return path.length === 0 ? inner : [[...path], ...inner];
}

function replaced(value: unknown, [name, ...rest]: readonly string[], strange: unknown): unknown {
  if (name === undefined) return strange;
  const copy: Document = Array.isArray(value) ? [...value] : { ...(value as Document) };
  copy[name] = replaced(copy[name], rest, strange);
  return copy;
}

const changed = fc
  .constantFrom(...COMMANDS)
  .chain((command) =>
    fc.tuple(
      fc.constant(command),
      fc.array(fc.tuple(fc.constantFrom(...pathsOf(command)), fc.constantFrom(...STRANGE)), { maxLength: 2 }),
    ),
  )
  .map(([command, changes]) =>
    changes.reduce<unknown>((each, [path, strange]) => replaced(each, path, strange), command),
  );

const START: readonly Document[] = [
  { _id: 'kept', a: 1, l: [1, 2, { x: 1 }], n: 5 },
  { a: 'a', b: 2 },
  { a: [1, 2], n: Long.fromNumber(3) },
];

test('any field of any command may be anything: the answer is a reply, and the data are whole', (t) => {
  const documents = new TestDocuments(t);
  fc.assert(
    fc.property(changed, (command) => {
      documents.run({ dropDatabase: 1 });
      documents.insert('a', ...START);
      documents.run({
        createIndexes: 'b',
        indexes: [
          { key: { l: '2dsphere' }, name: 's' },
          { key: { p: '2d' }, name: 'f' },
        ],
      });
      documents.insert(
        'b',
        { _id: 1, l: [1, 1], p: [1, 1] },
        { _id: 2, l: { type: 'Point', coordinates: [2, 2] } },
      );
      let reply: Document;
      try {
        const decoded = decodeCommand(serialize({ ...(command as Document), $db: 'shop' }));
        reply = documents.database.run(decoded, { readOnly: false });
      } catch (error) {
        // Input that is not a valid command is refused before it runs.
        assert.ok(error instanceof CommandError, String(error));
        return;
      }
      assert.ok(encodeReply(reply).length > 0);
      assert.ok(reply.ok === 1 || (reply.ok === 0 && reply.code > 0 && reply.errmsg !== ''));
      assert.doesNotMatch(reply.errmsg ?? '', /Cannot read|is not a function|not iterable/);
      const { n } = documents.run({ count: 'a' });
      assert.equal(documents.find('a', { _id: { $exists: true } }).length, n);
    }),
    { numRuns: 2000 },
  );
});

test('a database has 10,000 collections and indexes at most, and is dropped with all of them', (t) => {
  const documents = new TestDocuments(t);
  const made = (index: number) => documents.codeOf({ create: `c${index}` });
  // The first 9,000 directly in the store: with a command for each it takes a minute.
  documents.database.close();
  const file = new DatabaseSync(documents.file);
  file.exec(`BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9998)
    INSERT INTO collections SELECT i, 'old' || i, randomblob(16), x'0500000000', 0, 0 FROM n; COMMIT;`);
  file.close();
  documents.open();
  assert.deepEqual([made(1), made(2), made(3)], [undefined, undefined, 96]);
  assert.equal(documents.codeOf({ insert: 'c4', documents: [{}] }), 96);
  assert.equal(documents.codeOf({ createIndexes: 'c1', indexes: [{ key: { a: 1 }, name: 'a' }] }), 96);
  documents.insert('c1', { _id: 1 });
  assert.equal(documents.codeOf({ createIndexes: 'c1', indexes: [{ key: { a: 1 }, name: 'a' }] }), 96);
  assert.deepEqual(documents.ids('c1', {}), [1], 'a command that failed changed nothing');
  documents.run({ dropDatabase: 1 });
  assert.equal(documents.run({ dbStats: 1 }).collections, 0);
  documents.insert('c4', { _id: 1 });
});

test('what a failed command changed is as it was before', (t) => {
  const documents = new TestDocuments(t);
  documents.insert('a', { _id: 1, n: 1 });
  const figures = () => {
    const { count, size, nindexes } = documents.run({ collStats: 'a' });
    return { count, size, nindexes };
  };
  const before = figures();
  const many = Array.from({ length: 2000 }, (_, i) => ({ _id: i + 10, l: [1, 2] }));
  documents.clock.monotonic = () => {
    documents.clock.advance(1);
    return documents.clock.uptime();
  };
  assert.equal(documents.codeOf({ insert: 'a', documents: many, maxTimeMS: 20 }), 50);
  assert.deepEqual(figures(), before);
  const indexes = [
    { key: { n: 1 }, name: 'n' },
    { key: { m: 1 }, name: 'n' },
  ];
  assert.equal(documents.codeOf({ createIndexes: 'a', indexes }), 86);
  assert.deepEqual(figures(), before);
  documents.run({ createIndexes: 'a', indexes: [{ key: { l: 1 }, name: 'l' }] });
  assert.equal(documents.codeOf({ insert: 'a', documents: many, maxTimeMS: 20 }), 50);
  documents.insert('a', { _id: 2, l: [1, 2] });
  documents.database.close();
  documents.open();
  assert.deepEqual(documents.ids('a', { l: { $gt: 0, $lt: 9 } }), [2], 'known to have lists after a restart');
});
