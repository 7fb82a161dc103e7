/**
 * Slow commands on a single document end by themselves. The clock advances by a millisecond each time it is
 * read: this shows whether a command reads it often enough, independent of the speed of the host.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

/** Milliseconds; in each, a host does about ten thousand steps. */
const LOOKS = 40;

function documentsOf(t: TestContext): TestDocuments {
  const documents = new TestDocuments(t);
  documents.clock.monotonic = () => {
    documents.clock.advance(1);
    return documents.clock.uptime();
  };
  return documents;
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
const words = (count: number) =>
  numbers(count)
    .map((i) => (i * 7919).toString(36))
    .join(' ');

/**
 * A closed ring of this many corners around 0, 0; `teeth`: every second corner is farther out by this
 * fraction.
 */
function ring(corners: number, teeth = 0, size = 20): number[][] {
  const points = numbers(corners).map((i) => {
    const [angle, radius] = [(2 * Math.PI * i) / corners, size * (1 + teeth * (i % 2))];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
  return [...points, points[0] as number[]];
}
const polygon = (corners: number, teeth?: number, size?: number) => ({
  type: 'Polygon',
  coordinates: [ring(corners, teeth, size)],
});
const squares = (count: number) => ({
  type: 'MultiPolygon',
  coordinates: numbers(count).map((i) => {
    const [x, y] = [(i % 100) / 2, Math.floor(i / 100) / 2];
    const corners = [
      [x, y],
      [x + 0.1, y],
      [x + 0.1, y + 0.1],
      [x, y + 0.1],
      [x, y],
    ];
    return [corners];
  }),
});

interface Attack {
  readonly name: string;
  readonly before?: readonly Document[];
  readonly command: Document;
}

const schema = ($jsonSchema: Document): [Document] => [{ create: 'a', validator: { $jsonSchema } }];
const textIndex = (more: Document = {}): [Document] => [
  { createIndexes: 'a', indexes: [{ key: { s: 'text' }, name: 's', ...more }] },
];
const insert = (...documents: Document[]) => ({ insert: 'a', documents });
const find = (query: Document) => ({ count: 'a', query });

const aggregate = (...pipeline: Document[]) => ({ aggregate: 'a', pipeline, cursor: {} });
const list = (count: number) => ({ $range: [0, count] });

const ATTACKS: readonly Attack[] = [
  {
    name: 'wide windows around each of many documents',
    before: [insert(...numbers(3000).map((n) => ({ n })))],
    command: aggregate({
      $setWindowFields: {
        sortBy: { n: 1 },
        output: { x: { $sum: '$n', window: { documents: [-1500, 1500] } } },
      },
    }),
  },
  {
    name: 'many branches of $or that are planned with a long rest of the filter',
    before: [{ createIndexes: 'a', indexes: [{ key: { b: 1 }, name: 'b' }] }],
    command: find({
      $and: numbers(2000).map((i) => ({ [`f${i}`]: i })),
      $or: numbers(2000).map((b) => ({ b })),
    }),
  },
  {
    name: 'a polygon of many corners, and many points',
    before: [insert(...numbers(500).map((i) => ({ p: [i % 20, i % 19] })))],
    command: find({ p: { $geoWithin: { $geometry: polygon(3000) } } }),
  },
  {
    name: 'a polygon of many corners in a polygon of many corners',
    before: [insert({ p: polygon(2000, 0, 10) })],
    command: find({ p: { $geoWithin: { $geometry: polygon(4000) } } }),
  },
  {
    name: 'a star whose edges lie side by side',
    command: find({ p: { $geoWithin: { $geometry: polygon(20_000, 0.001) } } }),
  },
  {
    name: 'many polygons that meet many',
    before: [insert({ p: squares(1500) })],
    command: find({ p: { $geoWithin: { $geometry: squares(1500) } } }),
  },
  {
    name: 'a polygon on the plane, and many points',
    before: [insert(...numbers(500).map((i) => ({ p: [i % 20, i % 19] })))],
    command: find({ p: { $geoWithin: { $polygon: ring(3000) } } }),
  },
  {
    name: 'an index of a text of many words',
    before: textIndex(),
    command: insert({ s: words(100_000) }),
  },
  {
    name: 'a search for many phrases in a long text',
    before: [...textIndex(), insert({ s: 'abc '.repeat(20_000) })],
    command: find({ $text: { $search: `${'"abc abc" '.repeat(2000)} abc` } }),
  },
  {
    name: 'an index of texts in a thousand fields',
    before: textIndex({ weights: Object.fromEntries(numbers(1000).map((i) => [`f${i}`, i + 1])) }),
    command: insert(...numbers(2000).map((i) => ({ f1: `abc ${i}` }))),
  },
  {
    name: 'a schema with many patterns for many fields',
    before: schema({
      patternProperties: Object.fromEntries(numbers(1000).map((i) => [`^a.*${i}$`, { minimum: 0 }])),
    }),
    command: insert(Object.fromEntries(numbers(1000).map((i) => [`ab${i}`, 1]))),
  },
  {
    name: 'a schema that holds many schemas against many items',
    before: schema({
      properties: { l: { items: { allOf: numbers(300).map((minimum) => ({ minimum: -minimum })) } } },
    }),
    command: insert({ l: numbers(2000) }),
  },
  {
    name: 'a validator with an expression that counts',
    before: [
      {
        create: 'a',
        validator: { $expr: { $gt: [{ $sum: { $map: { input: { $range: [1, 999] }, in: '$$this' } } }, 0] } },
      },
    ],
    command: insert(...numbers(1000).map((i) => ({ i }))),
  },
  {
    name: 'a regular expression for many texts of one document',
    before: [insert({ l: numbers(3000).map(() => 'a'.repeat(400)) })],
    command: find({ l: { $regex: 'a*a*b' } }),
  },
  {
    name: 'many conditions for a long list',
    before: [insert({ l: numbers(10_000) })],
    command: find({ $nor: numbers(500).map((i) => ({ l: -1 - i })) }),
  },
  {
    name: 'many updates, each with its own collation',
    command: {
      update: 'a',
      updates: numbers(4000).map((i) => ({
        q: { s: 'x' },
        u: { $set: { a: 1 } },
        collation: { locale: ['en', 'de', 'fr', 'sv'][i % 4], strength: 1 + (i % 3) },
      })),
    },
  },
  {
    name: 'lists that are unwound three times',
    before: [insert({ l: numbers(200) })],
    command: {
      aggregate: 'a',
      pipeline: [
        { $addFields: { m: '$l', n: '$l' } },
        { $unwind: '$l' },
        { $unwind: '$m' },
        { $unwind: '$n' },
        { $match: { x: 1 } },
      ],
      cursor: {},
    },
  },
  {
    name: 'a walk from one document to the next',
    before: [insert(...numbers(3000).map((i) => ({ i, next: i + 1 })))],
    command: aggregate(
      { $match: { i: 0 } },
      {
        $graphLookup: {
          from: 'a',
          startWith: '$next',
          connectFromField: 'next',
          connectToField: 'i',
          as: 'all',
        },
      },
    ),
  },
  {
    name: 'a join of all with all',
    before: [insert(...numbers(1000).map((i) => ({ i })))],
    command: aggregate(
      { $lookup: { from: 'a', localField: 'i', foreignField: 'none', as: 'x' } },
      { $match: { x: 1 } },
    ),
  },
  {
    name: 'lists made in lists',
    before: [insert({ i: 1 })],
    command: aggregate({
      $project: { x: { $reduce: { input: list(2000), initialValue: 0, in: { $sum: list(1000) } } } },
    }),
  },
  {
    name: 'the texts of many dates in a time zone',
    before: [insert({ i: 1 })],
    command: aggregate({
      $project: {
        x: {
          $map: {
            input: list(100_000),
            in: { $dateToString: { date: new Date(0), timezone: 'Asia/Tokyo' } },
          },
        },
      },
    }),
  },
  {
    name: 'an index of many documents',
    before: [insert(...numbers(3000).map((i) => ({ i, s: `text ${i}` })))],
    command: { createIndexes: 'a', indexes: [{ key: { i: 1 }, name: 'i' }] },
  },
  {
    name: 'a search by an index for much that is not there',
    before: [{ createIndexes: 'a', indexes: [{ key: { i: 1 }, name: 'i' }] }, insert({ i: -1 })],
    command: find({ i: { $in: numbers(9000) } }),
  },
];

describe('a command ends when its time is over', () => {
  for (const { name, before = [], command } of ATTACKS) {
    test(name, (t) => {
      const documents = documentsOf(t);
      for (const each of before) documents.run(each);
      const all = documents.run({ count: 'a' }).n;
      const from = documents.clock.uptime();
      assert.equal(documents.codeOf({ ...command, maxTimeMS: LOOKS }), 50);
      assert.ok(documents.clock.uptime() - from < LOOKS + 10, 'it was told, and went on');
      assert.equal(documents.run({ count: 'a' }).n, all, 'nothing of it was written');
    });
  }
});

describe('what would fill the memory is refused', () => {
  test('more keys of one document than an index may have', (t) => {
    const documents = new TestDocuments(t);
    const keys = { l: 1 };
    documents.run({ createIndexes: 'a', indexes: [{ key: keys, name: 'l' }] });
    assert.equal(documents.codeOf(insert({ l: numbers(100_001) })), 201);
    documents.run(insert({ l: numbers(1000) }));
    documents.run({ createIndexes: 'b', indexes: [{ key: { 'l.a': 1, 'l.b': 1 }, name: 'l' }] });
    const pairs = numbers(400).map((i) => ({ a: i, b: i }));
    assert.equal(documents.codeOf({ insert: 'b', documents: [{ l: pairs }] }), 201);
  });

  test('more words than a text index takes of one document', (t) => {
    const documents = new TestDocuments(t);
    documents.run(...textIndex());
    assert.equal(documents.codeOf(insert({ s: words(200_000) })), 16733);
    assert.equal(documents.codeOf(find({ $text: { $search: words(10_001) } })), 2);
    documents.run(insert({ s: words(1000) }));
  });

  test('marks without end after one letter take no more time than other text', (t) => {
    const documents = new TestDocuments(t);
    documents.run({ create: 'a', collation: { locale: 'en', strength: 1 } });
    documents.run({ createIndexes: 'a', indexes: [{ key: { s: 1 }, name: 's' }] });
    const marks = '\u0301\u0323'.repeat(300_000);
    documents.run(insert({ _id: 1, s: `a${marks}` }, { _id: 2, s: 'a' }));
    assert.deepEqual(documents.ids('a', { s: 'A' }), [1, 2]);
  });

  test('errors that are longer than a reply are cut', (t) => {
    const documents = new TestDocuments(t);
    documents.run(...schema({ properties: { s: { bsonType: 'int' }, t: { bsonType: 'int' } } }));
    const long = 'x'.repeat(5_000_000);
    const { writeErrors } = documents.ask(insert({ _id: 1, s: long, t: long }));
    assert.equal(writeErrors[0].code, 121);
    assert.equal(writeErrors[0].errInfo.details.truncated, true);
    const texts = numbers(100).map((_id) => ({ _id, s: 'x'.repeat(50_000) }));
    const many = documents.ask({ ...insert(...texts), ordered: false }).writeErrors;
    assert.equal(many.length, 100);
    assert.equal(many[0].errInfo.failingDocumentId, 0);
    assert.deepEqual(many[99], { index: 99, code: 121, errmsg: '' });
  });

  test('results of facets together, texts and lists that double, and documents without end', (t) => {
    const documents = new TestDocuments(t);
    documents.run(
      insert({ _id: 1, s: 'x'.repeat(12_000_000), at: new Date(0) }, { _id: 2, at: new Date(1e12) }),
    );
    const facets = Object.fromEntries(numbers(10).map((i) => [`f${i}`, [{ $match: { _id: 1 } }]]));
    assert.equal(documents.codeOf(aggregate({ $facet: facets })), 292);
    assert.equal(documents.codeOf(aggregate({ $facet: { f: [{ $facet: facets }] } })), 40600);
    const doubled = (operator: string, initialValue: unknown) => {
      const grow = { $reduce: { input: list(60), initialValue, in: { [operator]: ['$$value', '$$value'] } } };
      return documents.codeOf(aggregate({ $match: { _id: 2 } }, { $project: { x: grow } }));
    };
    assert.equal(doubled('$concat', 'x'), 10334);
    assert.equal(doubled('$concatArrays', [1]), 292);
    const range = { step: 1, unit: 'second', bounds: 'full' };
    assert.equal(documents.codeOf(aggregate({ $densify: { field: 'at', range } })), 5897900);
    const stages = numbers(1001).map(() => ({ $match: {} }));
    assert.equal(documents.codeOf(aggregate(...stages)), 7749501);
    documents.run(aggregate(...stages.slice(1)));
  });

  test('distinct values that no reply holds', (t) => {
    const documents = new TestDocuments(t);
    for (let i = 0; i < 20; i++) documents.run(insert({ s: `${i}${'x'.repeat(1_000_000)}` }));
    assert.equal(documents.codeOf({ distinct: 'a', key: 's' }), 17217);
  });
});

test('what expired is removed, whenever the last command ran', (t) => {
  const documents = new TestDocuments(t);
  documents.run({ createIndexes: 'a', indexes: [{ key: { at: 1 }, name: 'at', expireAfterSeconds: 1 }] });
  const at = new Date(documents.clock.now());
  documents.run({ ...insert(...numbers(500).map((i) => ({ i, at }))), maxTimeMS: 1000 });
  documents.clock.advance(3_600_000);
  assert.equal(documents.run({ count: 'a' }).n, 0);
});
