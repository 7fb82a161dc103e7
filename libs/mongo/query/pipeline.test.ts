import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Decimal128, type Document, Double, Long } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

const ORDERS: readonly Document[] = [
  { _id: 1, who: 'ann', price: new Double(10), tags: ['x', 'y'], at: new Date('2026-01-05T10:00:00Z') },
  { _id: 2, who: 'bob', price: new Double(2.5), tags: ['x'], at: new Date('2026-01-06T10:00:00Z') },
  { _id: 3, who: 'ann', price: Long.fromNumber(4), tags: [], at: new Date('2026-02-06T10:00:00Z') },
  { _id: 4, who: 'cid', price: Decimal128.fromString('0.10') },
];

const STAGES: readonly (readonly [Document[], Document[]])[] = [
  [
    [
      { $match: { who: 'ann' } },
      { $group: { _id: '$who', sum: { $sum: '$price' }, avg: { $avg: '$price' }, n: { $sum: 1 } } },
    ],
    [{ _id: 'ann', sum: 14, avg: 7, n: 2 }],
  ],
  [
    [
      { $match: { _id: { $lt: 4 } } },
      {
        $group: {
          _id: '$who',
          min: { $min: '$price' },
          first: { $first: '$_id' },
          last: { $last: '$_id' },
          all: { $push: '$_id' },
        },
      },
      { $sort: { _id: 1 } },
    ],
    [
      { _id: 'ann', min: 4, first: 1, last: 3, all: [1, 3] },
      { _id: 'bob', min: 2.5, first: 2, last: 2, all: [2] },
    ],
  ],
  [
    [{ $unwind: '$tags' }, { $project: { tags: 1 } }],
    [
      { _id: 1, tags: 'x' },
      { _id: 1, tags: 'y' },
      { _id: 2, tags: 'x' },
    ],
  ],
  [[{ $unwind: { path: '$tags', preserveNullAndEmptyArrays: true } }, { $count: 'n' }], [{ n: 5 }]],
  [[{ $match: { _id: 99 } }, { $count: 'n' }], []],
  [[{ $sortByCount: '$who' }, { $limit: 1 }], [{ _id: 'ann', count: 2 }]],
  [
    [{ $sort: { price: -1 } }, { $skip: 1 }, { $limit: 2 }, { $project: { _id: 1 } }],
    [{ _id: 3 }, { _id: 2 }],
  ],
  [
    [
      { $match: { _id: 2 } },
      { $project: { _id: 0, double: { $multiply: ['$price', 2] }, big: { $gt: ['$price', 2] } } },
    ],
    [{ double: 5, big: true }],
  ],
  [
    [{ $match: { _id: 1 } }, { $set: { 'x.y': { $size: '$tags' } } }, { $unset: ['tags', 'at', 'price'] }],
    [{ _id: 1, who: 'ann', x: { y: 2 } }],
  ],
  [[{ $match: { _id: 1 } }, { $replaceRoot: { newRoot: { day: { $dayOfMonth: '$at' } } } }], [{ day: 5 }]],
  [
    [
      { $match: { _id: { $lt: 4 } } },
      { $bucket: { groupBy: '$price', boundaries: [0, 5, 20], output: { ids: { $push: '$_id' } } } },
    ],
    [
      { _id: 0, ids: [2, 3] },
      { _id: 5, ids: [1] },
    ],
  ],
  [
    [
      {
        $facet: {
          n: [{ $count: 'n' }],
          top: [{ $sort: { _id: -1 } }, { $limit: 1 }, { $project: { _id: 1 } }],
        },
      },
    ],
    [{ n: [{ n: 4 }], top: [{ _id: 4 }] }],
  ],
  [
    [
      { $match: { _id: { $in: [1, 4] } } },
      { $lookup: { from: 'people', localField: 'who', foreignField: '_id', as: 'person' } },
      { $project: { person: 1 } },
    ],
    [
      { _id: 1, person: [{ _id: 'ann', town: 'Ulm' }] },
      { _id: 4, person: [] },
    ],
  ],
  [
    [
      { $match: { _id: 2 } },
      {
        $lookup: {
          from: 'people',
          let: { w: '$who' },
          pipeline: [{ $match: { $expr: { $eq: ['$_id', '$$w'] } } }, { $project: { _id: 0 } }],
          as: 'p',
        },
      },
      { $project: { p: 1 } },
    ],
    [{ _id: 2, p: [{ town: 'Bonn' }] }],
  ],
  [
    [
      { $match: { _id: 1 } },
      { $project: { _id: 1 } },
      { $unionWith: { coll: 'people', pipeline: [{ $project: { _id: 1 } }] } },
    ],
    [{ _id: 1 }, { _id: 'ann' }, { _id: 'bob' }],
  ],
  [
    [
      { $match: { _id: 1 } },
      { $project: { t: { $map: { input: '$tags', as: 'x', in: { $concat: ['$$x', '!'] } } } } },
    ],
    [{ _id: 1, t: ['x!', 'y!'] }],
  ],
  [
    [{ $match: { _id: 3 } }, { $project: { type: { $type: '$price' }, none: { $ifNull: ['$no', 'none'] } } }],
    [{ _id: 3, type: 'long', none: 'none' }],
  ],
  [[{ $sample: { size: 2 } }, { $count: 'n' }], [{ n: 2 }]],
  [
    [
      { $group: { _id: null, s: { $stdDevPop: '$price' }, t: { $addToSet: '$who' } } },
      { $project: { s: { $gt: ['$s', 3] }, n: { $size: '$t' } } },
    ],
    [{ _id: null, s: true, n: 3 }],
  ],
];

function shop(t: ConstructorParameters<typeof TestDocuments>[0]) {
  const documents = new TestDocuments(t);
  documents.insert('orders', ...ORDERS);
  documents.insert('people', { _id: 'ann', town: 'Ulm' }, { _id: 'bob', town: 'Bonn' });
  return documents;
}

describe('aggregating', () => {
  test('each stage does what MongoDB says', (t) => {
    const documents = shop(t);
    for (const [pipeline, result] of STAGES)
      assert.deepEqual(documents.aggregate('orders', pipeline), result, JSON.stringify(pipeline));
    assert.deepEqual(documents.aggregate(1, [{ $documents: [{ a: 1 }] }]), [{ a: 1 }]);
  });

  test('counts with the types of BSON', (t) => {
    const documents = shop(t);
    const calculate = (expression: unknown) => {
      const pipeline = [{ $documents: [{}] }, { $project: { _id: 0, r: expression } }];
      return documents.ask({ aggregate: 1, pipeline, cursor: {} }, { exact: true }).cursor.firstBatch[0].r;
    };
    const decimal = (text: string) => Decimal128.fromString(text);
    assert.equal(calculate({ $add: [decimal('0.1'), decimal('0.2')] }).toString(), '0.3');
    assert.equal(calculate({ $multiply: [decimal('1.10'), 3] }).toString(), '3.30');
    assert.equal(
      calculate({ $divide: [decimal('1'), 3] }).toString(),
      '0.3333333333333333333333333333333333',
    );
    assert.equal(calculate({ $round: [decimal('2.345'), 2] }).toString(), '2.34');
    assert.equal(
      calculate({ $add: [Long.fromString('9007199254740993'), 1] }).toString(),
      '9007199254740994',
    );
    assert.equal(calculate({ $toString: { $add: [2 ** 31 - 1, 1] } }), '2147483648');
    assert.ok(calculate({ $divide: [4, 2] }) instanceof Double);
    assert.ok(calculate({ $sqrt: 16 }) instanceof Double);
    assert.equal(calculate({ $round: [2.5, 0] }).valueOf(), 2);
    assert.equal(calculate({ $toInt: '12' }).valueOf(), 12);
    assert.equal(calculate({ $toDecimal: '1.50' }).toString(), '1.50');
    assert.equal(
      documents.codeOf({
        aggregate: 1,
        pipeline: [{ $documents: [{}] }, { $project: { r: { $divide: [1, 0] } } }],
        cursor: {},
      }),
      2,
    );
  });

  test('$out replaces a collection, $merge goes into one', (t) => {
    const documents = shop(t);
    documents.insert('totals', { _id: 'ann', old: true }, { _id: 'zoe', old: true });
    documents.run({ createIndexes: 'totals', indexes: [{ key: { sum: 1 }, name: 'sum_1' }] });
    const group = { $group: { _id: '$who', sum: { $sum: '$price' } } };
    const first = [{ $match: { _id: { $lt: 4 } } }, group];
    documents.aggregate('orders', [...first, { $merge: 'totals' }]);
    assert.deepEqual(documents.find('totals', {}, { sort: { _id: 1 } }), [
      { _id: 'ann', old: true, sum: 14 },
      { _id: 'bob', sum: 2.5 },
      { _id: 'zoe', old: true },
    ]);
    documents.aggregate('orders', [
      ...first,
      { $addFields: { twice: { $multiply: ['$sum', 2] } } },
      { $merge: { into: 'totals', whenMatched: 'replace', whenNotMatched: 'fail' } },
    ]);
    assert.equal(documents.find('totals', { _id: 'bob' })[0]?.twice, 5);
    documents.aggregate('orders', [...first, { $out: 'totals' }]);
    assert.deepEqual(documents.ids('totals', {}, { sort: { _id: 1 } }), ['ann', 'bob']);
    assert.equal(documents.run({ listIndexes: 'totals' }).cursor.firstBatch.length, 2);
    assert.deepEqual(documents.ids('totals', { sum: 14 }), ['ann']);
  });

  test('what drivers send for countDocuments and estimatedDocumentCount', (t) => {
    const documents = shop(t);
    assert.deepEqual(
      documents.aggregate('orders', [{ $match: {} }, { $group: { _id: 1, n: { $sum: 1 } } }]),
      [{ _id: 1, n: 4 }],
    );
    assert.deepEqual(
      documents.aggregate('orders', [{ $match: { who: 'ann' } }, { $group: { _id: 1, n: { $sum: 1 } } }]),
      [{ _id: 1, n: 2 }],
    );
    assert.equal(documents.run({ count: 'orders' }).n, 4);
    assert.equal(documents.run({ count: 'orders', query: { who: 'ann' } }).n, 2);
    assert.deepEqual(documents.run({ distinct: 'orders', key: 'tags' }).values, ['x', 'y']);
  });
});
