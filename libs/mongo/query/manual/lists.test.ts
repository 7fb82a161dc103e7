/** Operators on lists and documents, with the examples of their pages in MongoDB's manual. */
import { describe, test } from 'node:test';
import { Binary } from 'bson';
import { type Case, Examples, fails, long, MISSING } from '../../testing/expression-cases.ts';

const literal = (value: unknown) => ({ $literal: value });
const sorted = (expression: unknown) => ({ $sortArray: { input: expression, sortBy: 1 } });

const LISTS: Readonly<Record<string, readonly Case[]>> = {
  $arrayElemAt: [
    [{ $arrayElemAt: [[1, 2, 3], 0] }, 1],
    [{ $arrayElemAt: [[1, 2, 3], -2] }, 2],
    [{ $arrayElemAt: [[1, 2, 3], 15] }, MISSING],
    [{ $arrayElemAt: ['$none', 0] }, null],
    [{ $arrayElemAt: [5, 0] }, fails(28689)],
  ],
  $arrayToObject: [
    [
      {
        $arrayToObject: literal([
          { k: 'item', v: 'abc' },
          { k: 'qty', v: 25 },
        ]),
      },
      { item: 'abc', qty: 25 },
    ],
    [
      {
        $arrayToObject: literal([
          ['item', 'abc'],
          ['qty', 25],
          ['qty', 26],
        ]),
      },
      { item: 'abc', qty: 26 },
    ],
    [{ $arrayToObject: literal([['a']]) }, fails(40397)],
    [{ $arrayToObject: '$none' }, null],
  ],
  $concatArrays: [
    [{ $concatArrays: [['hello', ' '], ['world']] }, ['hello', ' ', 'world']],
    [{ $concatArrays: [['a'], [['b']]] }, ['a', ['b']]],
    [{ $concatArrays: [['a'], null] }, null],
    [{ $concatArrays: [['a'], 'b'] }, fails(28664)],
  ],
  $filter: [
    [
      {
        $filter: {
          input: [1, 'a', 2, null, 3.1, long(4), '5'],
          as: 'num',
          cond: { $isNumber: '$$num' },
        },
      },
      [1, 2, 3.1, long(4)],
    ],
    [{ $filter: { input: [1, 2, 3], cond: { $gt: ['$$this', 1] }, limit: 1 } }, [2]],
    [{ $filter: { input: null, cond: true } }, null],
    [{ $filter: { input: 5, cond: true } }, fails(28651)],
  ],
  $first: [
    [{ $first: [[1, 2, 3]] }, 1],
    [{ $first: [[[]]] }, []],
    [{ $first: [[null]] }, null],
    [{ $first: [[]] }, MISSING],
    [{ $first: '$none' }, null],
    [{ $first: ['a'] }, fails(28689)],
  ],
  $last: [
    [{ $last: [[1, 2, 3]] }, 3],
    [{ $last: [[]] }, MISSING],
  ],
  $firstN: [
    [{ $firstN: { n: 3, input: [10, 20, 30, 40] } }, [10, 20, 30]],
    [{ $firstN: { n: 3, input: [10] } }, [10]],
  ],
  $lastN: [[{ $lastN: { n: 3, input: [10, 20, 30, 40] } }, [20, 30, 40]]],
  $maxN: [[{ $maxN: { n: 2, input: [3, 1, null, 2] } }, [3, 2]]],
  $minN: [[{ $minN: { n: 2, input: [3, 1, null, 2] } }, [1, 2]]],
  $in: [
    [{ $in: [2, [1, 2, 3]] }, true],
    [{ $in: ['abc', ['xyz', 'abc']] }, true],
    [{ $in: ['xy', ['xyz', 'abc']] }, false],
    [{ $in: [['a'], [['a']]] }, true],
    [{ $in: ['a', 'abc'] }, fails(40081)],
  ],
  $indexOfArray: [
    [{ $indexOfArray: [['a', 'abc'], 'a'] }, 0],
    [{ $indexOfArray: [['a', 'abc', 'de', ['de']], ['de']] }, 3],
    [{ $indexOfArray: [[1, 2], 5] }, -1],
    [
      {
        $indexOfArray: [
          [1, 2, 3],
          [1, 2],
        ],
      },
      -1,
    ],
    [{ $indexOfArray: [[10, 9, 9, 8, 9], 9, 3] }, 4],
    [{ $indexOfArray: [['a', 'abc', 'b'], 'b', 0, 1] }, -1],
    [{ $indexOfArray: [['a', 'abc', 'b'], 'b', 1, 0] }, -1],
    [{ $indexOfArray: [['a', 'abc', 'b'], 'b', 20] }, -1],
    [{ $indexOfArray: [[null, null, null], null] }, 0],
    [{ $indexOfArray: [null, 'foo'] }, null],
    [{ $indexOfArray: ['foo', 'foo'] }, fails(40090)],
  ],
  $isArray: [
    [{ $isArray: ['hello'] }, false],
    [{ $isArray: [['hello', 'world']] }, true],
  ],
  $map: [
    [{ $map: { input: [5, 6, 7], as: 'grade', in: { $add: ['$$grade', 2] } } }, [7, 8, 9]],
    [{ $map: { input: null, in: 1 } }, null],
    [{ $map: { input: 5, in: 1 } }, fails(16883)],
  ],
  $objectToArray: [
    [
      { $objectToArray: { item: 'foo', qty: 25 } },
      [
        { k: 'item', v: 'foo' },
        { k: 'qty', v: 25 },
      ],
    ],
    [{ $objectToArray: '$none' }, null],
    [{ $objectToArray: 5 }, fails(40390)],
  ],
  $range: [
    [{ $range: [0, 10, 2] }, [0, 2, 4, 6, 8]],
    [{ $range: [10, 0, -2] }, [10, 8, 6, 4, 2]],
    [{ $range: [0, 10, -2] }, []],
    [{ $range: [0, 5] }, [0, 1, 2, 3, 4]],
    [{ $range: [0, 5, 0] }, fails(34449)],
    [{ $range: [0.5, 5] }, fails(34444)],
  ],
  $reduce: [
    [
      { $reduce: { input: ['a', 'b', 'c'], initialValue: '', in: { $concat: ['$$value', '$$this'] } } },
      'abc',
    ],
    [
      {
        $reduce: {
          input: [1, 2, 3, 4],
          initialValue: { sum: 5, product: 2 },
          in: {
            sum: { $add: ['$$value.sum', '$$this'] },
            product: { $multiply: ['$$value.product', '$$this'] },
          },
        },
      },
      { sum: 15, product: 48 },
    ],
    [
      {
        $reduce: {
          input: [
            [3, 4],
            [5, 6],
          ],
          initialValue: [1, 2],
          in: { $concatArrays: ['$$value', '$$this'] },
        },
      },
      [1, 2, 3, 4, 5, 6],
    ],
    [{ $reduce: { input: '$none', initialValue: 1, in: 2 } }, null],
    [{ $reduce: { input: 5, initialValue: 1, in: 2 } }, fails(40080)],
  ],
  $reverseArray: [
    [{ $reverseArray: [[1, 2, 3]] }, [3, 2, 1]],
    [{ $reverseArray: literal([[1, 2], [3]]) }, [[3], [1, 2]]],
    [{ $reverseArray: '$none' }, null],
    [{ $reverseArray: 'a' }, fails(34435)],
  ],
  $size: [
    [{ $size: [[1, 2]] }, 2],
    [{ $size: '$none' }, fails(17124)],
  ],
  $slice: [
    [{ $slice: [[1, 2, 3], 1, 1] }, [2]],
    [{ $slice: [[1, 2, 3], -2] }, [2, 3]],
    [{ $slice: [[1, 2, 3], 15, 2] }, []],
    [{ $slice: [[1, 2, 3], -15, 2] }, [1, 2]],
    [{ $slice: [5, 1] }, fails(28724)],
  ],
  $sortArray: [
    [{ $sortArray: { input: [1, 4, 1, 6, 12, 5], sortBy: 1 } }, [1, 1, 4, 5, 6, 12]],
    [
      {
        $sortArray: {
          input: literal([
            { n: 'pat', age: 30 },
            { n: 'dallas', age: 36 },
            { n: 'charlie', age: 42 },
            { n: 'a', age: 36 },
          ]),
          sortBy: { age: -1, n: 1 },
        },
      },
      [
        { n: 'charlie', age: 42 },
        { n: 'a', age: 36 },
        { n: 'dallas', age: 36 },
        { n: 'pat', age: 30 },
      ],
    ],
    [
      { $sortArray: { input: [20, 4, literal({ a: 'Free' }), 6, 21, 5, 'Gratis', true], sortBy: 1 } },
      [4, 5, 6, 20, 21, 'Gratis', { a: 'Free' }, true],
    ],
    [{ $sortArray: { input: null, sortBy: 1 } }, null],
    [{ $sortArray: { input: 5, sortBy: 1 } }, fails(2942504)],
  ],
  $zip: [
    [{ $zip: { inputs: [['a'], ['b'], ['c']] } }, [['a', 'b', 'c']]],
    [{ $zip: { inputs: [['a'], ['b', 'c']] } }, [['a', 'b']]],
    [
      { $zip: { inputs: [[1], [2, 3]], useLongestLength: true } },
      [
        [1, 2],
        [null, 3],
      ],
    ],
    [
      { $zip: { inputs: [[1], [2, 3]], useLongestLength: true, defaults: ['a', 'b'] } },
      [
        [1, 2],
        ['a', 3],
      ],
    ],
    [{ $zip: { inputs: [[1], null] } }, null],
    [{ $zip: { inputs: [[1], 5] } }, fails(34468)],
  ],
  $setDifference: [
    [
      {
        $setDifference: [
          ['a', 'b', 'a'],
          ['b', 'a'],
        ],
      },
      [],
    ],
    [{ $setDifference: [['a', 'b'], [['a', 'b']]] }, ['a', 'b']],
    [{ $setDifference: [['a', 'a'], []] }, ['a']],
    [{ $setDifference: [null, []] }, null],
  ],
  $setEquals: [
    [
      {
        $setEquals: [
          ['a', 'b', 'a'],
          ['b', 'a'],
        ],
      },
      true,
    ],
    [{ $setEquals: [['a', 'b'], [['a', 'b']]] }, false],
    [{ $setEquals: [['a'], null] }, fails(17044)],
  ],
  $setIntersection: [
    [
      sorted({
        $setIntersection: [
          ['a', 'b', 'a'],
          ['b', 'a'],
        ],
      }),
      ['a', 'b'],
    ],
    [{ $setIntersection: [['a', 'b'], [['a', 'b']]] }, []],
    [{ $setIntersection: [['a'], '$none'] }, null],
  ],
  $setIsSubset: [
    [
      {
        $setIsSubset: [
          ['a', 'b', 'a'],
          ['b', 'a'],
        ],
      },
      true,
    ],
    [{ $setIsSubset: [['a', 'b'], [['a', 'b']]] }, false],
  ],
  $setUnion: [
    [
      sorted({
        $setUnion: [
          ['b', 'a', 'b'],
          ['c', 'a'],
        ],
      }),
      ['a', 'b', 'c'],
    ],
    [{ $setUnion: [['a'], null] }, null],
  ],
  $allElementsTrue: [
    [{ $allElementsTrue: [[true, 1, 'someString']] }, true],
    [{ $allElementsTrue: [[[false]]] }, true],
    [{ $allElementsTrue: [[]] }, true],
    [{ $allElementsTrue: [[null, false, 0]] }, false],
    [{ $allElementsTrue: ['$none'] }, fails(17040)],
  ],
  $anyElementTrue: [
    [{ $anyElementTrue: [[true, false]] }, true],
    [{ $anyElementTrue: [[[false]]] }, true],
    [{ $anyElementTrue: [[null, false, 0]] }, false],
    [{ $anyElementTrue: [[]] }, false],
    [{ $anyElementTrue: ['$none'] }, fails(17041)],
  ],
  $mergeObjects: [
    [{ $mergeObjects: [{ a: 1 }, { b: 2 }, null] }, { a: 1, b: 2 }],
    [{ $mergeObjects: [{ a: 1 }, { a: 2, b: 2 }, { a: 3, c: 3 }] }, { a: 3, b: 2, c: 3 }],
    [{ $mergeObjects: ['$none'] }, {}],
    [{ $mergeObjects: [5] }, fails(40400)],
  ],
  $getField: [
    [{ $getField: { field: literal('$a.b'), input: literal({ '$a.b': 5 }) } }, 5],
    [{ $getField: 'text' }, 'abc'],
    [{ $getField: { field: 'a', input: '$missing' } }, MISSING],
  ],
  $setField: [
    [{ $setField: { field: 'a.b', input: { c: 1 }, value: 2 } }, { c: 1, 'a.b': 2 }],
    [{ $setField: { field: 'c', input: { c: 1 }, value: '$$REMOVE' } }, {}],
    [{ $setField: { field: 'c', input: null, value: 1 } }, null],
  ],
  $unsetField: [[{ $unsetField: { field: 'a.b', input: literal({ 'a.b': 1, c: 2 }) } }, { c: 2 }]],
  $bsonSize: [[{ $bsonSize: { a: 1 } }, 12]],
  $binarySize: [
    [{ $binarySize: 'abc' }, 3],
    [{ $binarySize: new Binary(Buffer.from('abcd')) }, 4],
  ],
};

describe('operators on lists and documents', () => {
  for (const [name, cases] of Object.entries(LISTS))
    test(name, (t) => {
      const examples = new Examples(t);
      for (const each of cases) examples.check(each);
    });
});
