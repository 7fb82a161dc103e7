/** Stages that change documents one by one, with the examples of their pages in MongoDB's manual. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Document, Long } from 'bson';
import { TestDocuments } from '../../testing/document-database.ts';

const SCORES = [
  { _id: 1, student: 'Maya', homework: [10, 5, 10], quiz: [10, 8], extraCredit: 0 },
  { _id: 2, student: 'Ryan', homework: [5, 6, 5], quiz: [8, 8], extraCredit: 8 },
];
const VEHICLES = [
  { _id: 1, type: 'car', specs: { doors: 4, wheels: 4 } },
  { _id: 2, type: 'motorcycle', specs: { doors: 0, wheels: 2 } },
];
const ARTISTS = [
  { _id: 1, last_name: 'Bernard', year_born: 1868 },
  { _id: 2, last_name: 'Rippl-Ronai', year_born: 1861 },
  { _id: 3, last_name: 'Ostroumova', year_born: 1871 },
  { _id: 4, last_name: 'Van Gogh', year_born: 1853 },
  { _id: 5, last_name: 'Maurer', year_born: 1955 },
];

type Example = readonly [
  name: string,
  before: readonly Document[],
  pipeline: readonly Document[],
  after: readonly Document[],
];

const EXAMPLES: readonly Example[] = [
  [
    '$addFields twice, the second with what the first made',
    SCORES,
    [
      { $addFields: { totalHomework: { $sum: '$homework' }, totalQuiz: { $sum: '$quiz' } } },
      { $addFields: { totalScore: { $add: ['$totalHomework', '$totalQuiz', '$extraCredit'] } } },
      { $project: { totalScore: 1 } },
    ],
    [
      { _id: 1, totalScore: 43 },
      { _id: 2, totalScore: 40 },
    ],
  ],
  [
    '$addFields to an embedded document, by its path or as a document',
    VEHICLES,
    [{ $addFields: { 'specs.fuel_type': 'unleaded', specs: { seats: 5 } } }, { $match: { _id: 1 } }],
    [{ _id: 1, type: 'car', specs: { doors: 4, wheels: 4, fuel_type: 'unleaded', seats: 5 } }],
  ],
  [
    '$set in each element of a list, and where there was no document',
    [{ _id: 1, l: [{ a: 1 }, 5, [{ a: 2 }]], n: 7 }],
    [{ $set: { 'l.b': 0, 'n.b': '$n', 'new.b': 1 } }],
    [{ _id: 1, l: [{ a: 1, b: 0 }, { b: 0 }, [{ a: 2, b: 0 }]], n: { b: 7 }, new: { b: 1 } }],
  ],
  [
    '$set of what is missing takes a field away',
    [{ _id: 1, a: 1, b: 2, c: 3 }],
    [{ $set: { a: '$$REMOVE', b: '$none', c: { $cond: [true, '$$REMOVE', 1] } } }],
    [{ _id: 1 }],
  ],
  [
    '$set evaluates all of its fields by the document before it',
    [{ _id: 1, a: 1, b: 2 }],
    [{ $set: { a: '$b', b: '$a' } }],
    [{ _id: 1, a: 2, b: 1 }],
  ],
  [
    '$replaceRoot with what a document lacks, and $replaceWith',
    [
      { _id: 1, name: { first: 'Gary' }, phones: { cell: '1' } },
      { _id: 2, phones: { home: '2' } },
    ],
    [
      { $replaceRoot: { newRoot: { $mergeObjects: [{ _id: '$_id', first: '', last: '' }, '$name'] } } },
      { $replaceWith: { id: '$_id', first: '$first' } },
    ],
    [
      { id: 1, first: 'Gary' },
      { id: 2, first: '' },
    ],
  ],
  [
    '$unset of fields, embedded ones and those of list elements',
    [
      {
        _id: 1,
        isbn: 'x',
        author: { first: 'An', last: 'T' },
        copies: [
          { w: 1, n: 5 },
          { w: 2, n: 6 },
        ],
      },
    ],
    [{ $unset: ['isbn', 'author.first', 'copies.w'] }],
    [{ _id: 1, author: { last: 'T' }, copies: [{ n: 5 }, { n: 6 }] }],
  ],
  [
    '$bucket with a default and an output',
    ARTISTS,
    [
      {
        $bucket: {
          groupBy: '$year_born',
          boundaries: [1840, 1850, 1860, 1870, 1880],
          default: 'Other',
          output: { count: { $sum: 1 }, artists: { $push: '$last_name' } },
        },
      },
    ],
    [
      { _id: 1850, count: 1, artists: ['Van Gogh'] },
      { _id: 1860, count: 2, artists: ['Bernard', 'Rippl-Ronai'] },
      { _id: 1870, count: 1, artists: ['Ostroumova'] },
      { _id: 'Other', count: 1, artists: ['Maurer'] },
    ],
  ],
];

const REFUSED: readonly (readonly [Document, number])[] = [
  [{ $addFields: {} }, 40177],
  [{ $set: { a: {} } }, 40180],
  [{ $set: { a: 1, 'a.b': 2 } }, 40176],
  [{ $set: { $a: 1 } }, 16410],
  [{ $replaceRoot: {} }, 40231],
  [{ $replaceRoot: { newRoot: '$none' } }, 40228],
  [{ $replaceWith: 5 }, 40228],
  [{ $bucket: { groupBy: '$_id', boundaries: [5, 6] } }, 40066],
  [{ $bucket: { groupBy: '$_id', boundaries: [6, 5] } }, 40194],
  [{ $bucket: { groupBy: '$_id', boundaries: [1] } }, 40192],
  [{ $bucket: { groupBy: '$_id', boundaries: [1, 'a'] } }, 40193],
  [{ $bucket: { groupBy: '$_id', boundaries: [0, 9], default: 5 } }, 40199],
  [{ $limit: 0 }, 15958],
  [{ $limit: -1 }, 5107201],
  [{ $skip: -1 }, 5107200],
  [{ $sample: {} }, 28749],
  [{ $sample: { size: -1 } }, 28747],
  [{ $unionWith: 5 }, 9],
  [{ $merge: { into: 'b', whenMatched: 'other' } }, 2],
  [{ $project: {} }, 51272],
  [{ $sort: { a: 2 } }, 15975],
  [{ $unwind: 'a' }, 28818],
  [{ $group: { a: { $sum: 1 } } }, 15955],
  [{ $count: '' }, 40156],
];

describe('stages', () => {
  for (const [name, before, pipeline, after] of EXAMPLES)
    test(name, (t) => {
      const documents = new TestDocuments(t);
      documents.insert('a', ...before);
      assert.deepEqual(documents.aggregate('a', [...pipeline]), after);
    });

  test('are refused by the code of a server', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('a', { _id: 1 });
    for (const [stage, code] of REFUSED) {
      const pipeline = [{ $match: { _id: 1 } }, stage];
      assert.equal(documents.codeOf({ aggregate: 'a', pipeline, cursor: {} }), code, JSON.stringify(stage));
    }
    const late = [{ $match: {} }, { $documents: [] }];
    assert.equal(documents.codeOf({ aggregate: 'a', pipeline: late, cursor: {} }), 40602);
  });

  test('$unwind numbers the elements as long integers', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('a', { _id: 1, l: ['x', 'y'] }, { _id: 2, l: 'z' });
    const pipeline = [{ $unwind: { path: '$l', includeArrayIndex: 'at' } }];
    const { cursor } = documents.ask({ aggregate: 'a', pipeline, cursor: {} }, { exact: true });
    const places = cursor.firstBatch.map(({ at }: Document) => at);
    assert.deepEqual(places, [Long.fromNumber(0), Long.fromNumber(1), null]);
  });
});
