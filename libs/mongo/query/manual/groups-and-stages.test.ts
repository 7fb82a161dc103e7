/** Accumulators and stages, with the examples of their pages in MongoDB's manual. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../../testing/document-database.ts';

const SCORES = [
  { playerId: 'PlayerA', gameId: 'G1', score: 31 },
  { playerId: 'PlayerB', gameId: 'G1', score: 33 },
  { playerId: 'PlayerC', gameId: 'G1', score: 99 },
  { playerId: 'PlayerD', gameId: 'G1', score: 1 },
  { playerId: 'PlayerA', gameId: 'G2', score: 10 },
  { playerId: 'PlayerB', gameId: 'G2', score: 14 },
  { playerId: 'PlayerC', gameId: 'G2', score: 66 },
  { playerId: 'PlayerD', gameId: 'G2', score: 80 },
];
const PLAYER = ['$playerId', '$score'];
const BEST = { score: -1 };

/** Accumulated over the game G1. */
const ACCUMULATED: readonly (readonly [Document, unknown])[] = [
  [{ $top: { output: PLAYER, sortBy: BEST } }, ['PlayerC', 99]],
  [{ $bottom: { output: PLAYER, sortBy: BEST } }, ['PlayerD', 1]],
  [
    { $topN: { output: PLAYER, sortBy: BEST, n: 3 } },
    [
      ['PlayerC', 99],
      ['PlayerB', 33],
      ['PlayerA', 31],
    ],
  ],
  [
    { $bottomN: { output: PLAYER, sortBy: BEST, n: 3 } },
    [
      ['PlayerB', 33],
      ['PlayerA', 31],
      ['PlayerD', 1],
    ],
  ],
  [
    { $firstN: { input: PLAYER, n: 3 } },
    [
      ['PlayerA', 31],
      ['PlayerB', 33],
      ['PlayerC', 99],
    ],
  ],
  [
    { $lastN: { input: PLAYER, n: 3 } },
    [
      ['PlayerB', 33],
      ['PlayerC', 99],
      ['PlayerD', 1],
    ],
  ],
  [
    { $maxN: { input: ['$score', '$playerId'], n: 2 } },
    [
      [99, 'PlayerC'],
      [33, 'PlayerB'],
    ],
  ],
  [
    { $minN: { input: ['$score', '$playerId'], n: 2 } },
    [
      [1, 'PlayerD'],
      [31, 'PlayerA'],
    ],
  ],
  [{ $first: '$score' }, 31],
  [{ $last: '$score' }, 1],
  [{ $count: {} }, 4],
  [{ $sum: '$score' }, 164],
  [{ $avg: '$score' }, 41],
  [{ $min: '$score' }, 1],
  [{ $max: '$score' }, 99],
  [{ $push: '$score' }, [31, 33, 99, 1]],
  [{ $median: { input: '$score', method: 'approximate' } }, 31],
  [{ $percentile: { input: '$score', p: [0.5, 0.95], method: 'approximate' } }, [31, 99]],
  [{ $mergeObjects: { player: '$playerId', score: '$score' } }, { player: 'PlayerD', score: 1 }],
];

describe('accumulators', () => {
  for (const [accumulator, expected] of ACCUMULATED)
    test(Object.keys(accumulator)[0], (t) => {
      const documents = new TestDocuments(t);
      documents.insert('scores', ...SCORES);
      const group = [{ $match: { gameId: 'G1' } }, { $group: { _id: '$gameId', x: accumulator } }];
      assert.deepEqual(documents.aggregate('scores', group), [{ _id: 'G1', x: expected }]);
    });

  test('$topN with its own number for each group', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('scores', ...SCORES);
    const n = { $cond: [{ $eq: ['$gameId', 'G2'] }, 1, 3] };
    const output = '$score';
    const found = documents.aggregate('scores', [
      { $group: { _id: { gameId: '$gameId' }, gamescores: { $firstN: { input: output, n } } } },
      { $sort: { _id: 1 } },
    ]);
    assert.deepEqual(
      found.map(({ gamescores }) => gamescores),
      [[31, 33, 99], [10]],
    );
  });

  test('$stdDevPop, $stdDevSamp and $addToSet', (t) => {
    const documents = new TestDocuments(t);
    const quizzes = [
      [1, 85],
      [1, 90],
      [1, 71],
      [2, 96],
      [2, 71],
      [2, 77],
    ];
    documents.insert('contest', ...quizzes.map(([quiz, score], _id) => ({ _id, quiz, score })));
    const found = documents.aggregate('contest', [
      {
        $group: {
          _id: '$quiz',
          pop: { $stdDevPop: '$score' },
          samp: { $stdDevSamp: '$score' },
          all: { $addToSet: '$quiz' },
        },
      },
      { $sort: { _id: 1 } },
    ]);
    const expected = [8.04155872120988, 10.656244908763854];
    found.forEach(({ pop, samp, all, _id }, i) => {
      assert.ok(Math.abs(pop - (expected[i] as number)) < 1e-9);
      assert.ok(Math.abs(samp - (expected[i] as number) * Math.sqrt(3 / 2)) < 1e-9);
      assert.deepEqual(all, [_id]);
    });
    const none = [
      {
        $group: {
          _id: 1,
          x: { $stdDevSamp: '$no' },
          y: { $median: { input: '$no', method: 'approximate' } },
        },
      },
    ];
    assert.deepEqual(documents.aggregate('contest', none), [{ _id: 1, x: null, y: null }]);
  });
});

function hundred(t: TestContext): TestDocuments {
  const documents = new TestDocuments(t);
  documents.insert('things', ...Array.from({ length: 100 }, (_, _id) => ({ _id })));
  return documents;
}

const BUCKETS: Readonly<Record<string, readonly (readonly [number, number, number])[]>> = {
  none: [
    [0, 20, 20],
    [20, 40, 20],
    [40, 60, 20],
    [60, 80, 20],
    [80, 99, 20],
  ],
  R20: [
    [0, 20, 20],
    [20, 40, 20],
    [40, 63, 23],
    [63, 90, 27],
    [90, 100, 10],
  ],
  E24: [
    [0, 20, 20],
    [20, 43, 23],
    [43, 68, 25],
    [68, 91, 23],
    [91, 100, 9],
  ],
  '1-2-5': [
    [0, 20, 20],
    [20, 50, 30],
    [50, 100, 50],
  ],
  POWERSOF2: [
    [0, 32, 32],
    [32, 64, 32],
    [64, 128, 36],
  ],
};

describe('stages', () => {
  for (const [granularity, buckets] of Object.entries(BUCKETS))
    test(`$bucketAuto with the granularity ${granularity}`, (t) => {
      const more = granularity === 'none' ? {} : { granularity };
      const stage = { $bucketAuto: { groupBy: '$_id', buckets: 5, ...more } };
      const found = hundred(t).aggregate('things', [stage]);
      assert.deepEqual(
        found,
        buckets.map(([min, max, count]) => ({ _id: { min, max }, count })),
      );
    });

  test('$densify with dates, and within partitions', (t) => {
    const documents = new TestDocuments(t);
    const at = (hour: number) => new Date(Date.UTC(2021, 4, 18, hour));
    documents.insert('weather', ...[0, 4, 8, 12].map((hour, _id) => ({ _id, timestamp: at(hour) })));
    const range = { step: 1, unit: 'hour', bounds: [at(0), at(8)] };
    const filled = documents.aggregate('weather', [
      { $densify: { field: 'timestamp', range } },
      { $sort: { timestamp: 1 } },
    ]);
    assert.deepEqual(
      filled.map(({ timestamp }) => timestamp.getUTCHours()),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 12],
    );
    documents.insert(
      'coffee',
      { v: 'a', n: 600 },
      { v: 'a', n: 750 },
      { v: 'a', n: 950 },
      { v: 'b', n: 640 },
      { v: 'b', n: 700 },
    );
    const heightsIn = (bounds: string) =>
      documents
        .aggregate('coffee', [
          { $densify: { field: 'n', partitionByFields: ['v'], range: { bounds, step: 200 } } },
          { $sort: { v: 1, n: 1 } },
        ])
        .map(({ v, n }) => `${v}${n}`);
    assert.deepEqual(heightsIn('full'), ['a600', 'a750', 'a800', 'a950', 'b600', 'b640', 'b700', 'b800']);
    assert.deepEqual(heightsIn('partition'), ['a600', 'a750', 'a800', 'a950', 'b640', 'b700']);
  });

  test('$fill with a value, linearly, and with the last one that was there', (t) => {
    const documents = new TestDocuments(t);
    const fill = (list: unknown[], output: Document, more: Document = {}) => {
      documents.run({ drop: 'f' });
      documents.insert('f', ...list.map((n, _id) => ({ _id, ...(n === undefined ? {} : { n }) })));
      const stage = { $fill: { sortBy: { _id: 1 }, output: { n: output }, ...more } };
      return documents.aggregate('f', [stage, { $sort: { _id: 1 } }]).map(({ n }) => n);
    };
    assert.deepEqual(fill([1, null, undefined], { value: 0 }), [1, 0, 0]);
    assert.deepEqual(fill([515, null, undefined, 485], { method: 'linear' }), [515, 505, 495, 485]);
    assert.deepEqual(fill([null, 90, undefined, 92, null], { method: 'locf' }), [null, 90, 90, 92, 92]);
  });

  test('$graphLookup within one collection', (t) => {
    const documents = new TestDocuments(t);
    const staff = [
      ['Dev'],
      ['Eliot', 'Dev'],
      ['Ron', 'Eliot'],
      ['Andrew', 'Eliot'],
      ['Asya', 'Ron'],
      ['Dan', 'Andrew'],
    ];
    documents.insert(
      'employees',
      ...staff.map(([name, reportsTo], i) => ({ _id: i + 1, name, ...(reportsTo && { reportsTo }) })),
    );
    const above = {
      from: 'employees',
      startWith: '$reportsTo',
      connectFromField: 'reportsTo',
      connectToField: 'name',
      as: 'reportingHierarchy',
    };
    const chains = documents.aggregate('employees', [{ $graphLookup: above }, { $sort: { _id: 1 } }]);
    assert.deepEqual(
      chains.map(({ reportingHierarchy }) => reportingHierarchy.map(({ _id }: Document) => _id).sort()),
      [[], [1], [1, 2], [1, 2], [1, 2, 3], [1, 2, 4]],
    );
  });

  test('$graphLookup across two collections, with a depth, by an index', (t) => {
    const documents = new TestDocuments(t);
    const airports = {
      JFK: ['BOS', 'ORD'],
      BOS: ['JFK', 'PWM'],
      ORD: ['JFK'],
      PWM: ['BOS', 'LHR'],
      LHR: ['PWM'],
    };
    documents.insert(
      'airports',
      ...Object.entries(airports).map(([airport, connects], _id) => ({ _id, airport, connects })),
    );
    documents.insert(
      'travelers',
      { _id: 1, name: 'Dev', nearestAirport: 'JFK' },
      { _id: 3, name: 'Jeff', nearestAirport: 'BOS' },
    );
    const within = {
      from: 'airports',
      startWith: '$nearestAirport',
      connectFromField: 'connects',
      connectToField: 'airport',
      maxDepth: 2,
      depthField: 'numConnections',
      as: 'destinations',
    };
    const reached = (more: Document = {}) =>
      documents
        .aggregate('travelers', [{ $graphLookup: { ...within, ...more } }, { $sort: { _id: 1 } }])
        .map(({ destinations }) =>
          Object.fromEntries(
            destinations.map(({ airport, numConnections }: Document) => [airport, numConnections]),
          ),
        );
    assert.deepEqual(reached(), [
      { JFK: 0, BOS: 1, ORD: 1, PWM: 2 },
      { BOS: 0, JFK: 1, PWM: 1, LHR: 2, ORD: 2 },
    ]);
    assert.deepEqual(reached({ maxDepth: 0 }), [{ JFK: 0 }, { BOS: 0 }]);
    assert.deepEqual(reached({ restrictSearchWithMatch: { airport: { $ne: 'BOS' } } }), [
      { JFK: 0, ORD: 1 },
      {},
    ]);
    documents.run({ createIndexes: 'airports', indexes: [{ key: { airport: 1 }, name: 'airport' }] });
    reached();
    const [, byIndex] = documents.aggregate('airports', [{ $indexStats: {} }]);
    assert.ok(byIndex?.accesses.ops > 0, 'the index is used');
    const wrong = {
      aggregate: 'travelers',
      pipeline: [{ $graphLookup: { ...within, maxDepth: -1 } }],
      cursor: {},
    };
    assert.equal(documents.codeOf(wrong), 40101);
  });

  test('$match with $sampleRate takes none, all or some', (t) => {
    const documents = hundred(t);
    const count = ($sampleRate: number) =>
      documents.aggregate('things', [{ $match: { $sampleRate } }]).length;
    assert.equal(count(0), 0);
    assert.equal(count(1), 100);
    const some = count(0.5);
    assert.ok(some > 0 && some < 100, String(some));
    const wrong = { aggregate: 'things', pipeline: [{ $match: { $sampleRate: 2 } }], cursor: {} };
    assert.equal(documents.codeOf(wrong), 2);
  });

  test('$comment changes nothing', (t) => {
    assert.deepEqual(hundred(t).ids('things', { _id: { $lt: 2 }, $comment: 'why' }), [0, 1]);
  });
});
