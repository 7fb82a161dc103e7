/** Operators on numbers, texts and conditions, with the examples of their pages in MongoDB's manual. */
import { describe, test } from 'node:test';
import { BSONRegExp, Double } from 'bson';
import {
  about,
  type Case,
  date,
  decimal,
  Examples,
  fails,
  long,
  MISSING,
} from '../../testing/expression-cases.ts';

const double = (number: number) => new Double(number);
const literal = (value: unknown) => ({ $literal: value });
/** A linter considers a literal with such a field a promise. */
const then = (fields: object, result: unknown) =>
  Object.assign({ ...fields }, Object.fromEntries([['then', result]]));

const CASES: Readonly<Record<string, readonly Case[]>> = {
  $abs: [
    [{ $abs: -1 }, 1],
    [{ $abs: '$none' }, null],
    [{ $abs: '$missing' }, null],
    [{ $abs: 'a' }, fails(28765)],
    [{ $abs: long('-9223372036854775808') }, fails(28680)],
  ],
  $add: [
    [{ $add: [1, 2] }, 3],
    [{ $add: [1, 2.5] }, 3.5],
    [{ $add: [date('2014-03-01T08:00:00Z'), 259200000] }, date('2014-03-04T08:00:00Z')],
    [{ $add: [1, null] }, null],
    [{ $add: [2147483647, 1] }, long(2147483648)],
    [{ $add: ['a', 1] }, fails(14)],
    [{ $add: [date('2014-03-01T08:00:00Z'), date('2014-03-01T08:00:00Z')] }, fails(16612)],
  ],
  $ceil: [
    [{ $ceil: 1 }, 1],
    [{ $ceil: 7.8 }, double(8)],
    [{ $ceil: -2.8 }, double(-2)],
  ],
  $divide: [
    [{ $divide: [80, 8] }, double(10)],
    [{ $divide: [1, null] }, null],
    [{ $divide: [1, 0] }, fails()],
  ],
  $exp: [
    [{ $exp: 0 }, double(1)],
    [{ $exp: 2 }, about(7.38905609893065)],
    [{ $exp: -2 }, about(0.1353352832366127)],
  ],
  $floor: [
    [{ $floor: 1 }, 1],
    [{ $floor: 7.8 }, double(7)],
    [{ $floor: -2.3 }, double(-3)],
  ],
  $ln: [
    [{ $ln: 1 }, double(0)],
    [{ $ln: Math.E }, about(1)],
    [{ $ln: 10 }, about(Math.LN10)],
    [{ $ln: 0 }, fails(28766)],
  ],
  $log: [
    [{ $log: [100, 10] }, about(2)],
    [{ $log: [100, Math.E] }, about(4.605170185988092)],
    [{ $log: [0, 10] }, fails(28758)],
    [{ $log: [10, 1] }, fails(28759)],
  ],
  $log10: [
    [{ $log10: 1 }, double(0)],
    [{ $log10: 100 }, about(2)],
    [{ $log10: 0.001 }, about(-3)],
    [{ $log10: 0 }, fails(28761)],
  ],
  $mod: [
    [{ $mod: [80, 7] }, 3],
    [{ $mod: [-13, -9] }, -4],
    [{ $mod: [-13, 9] }, -4],
    [{ $mod: [13.5, 4] }, 1.5],
    [{ $mod: [1, 0] }, fails(16610)],
  ],
  $multiply: [
    [{ $multiply: [10, 2] }, 20],
    [{ $multiply: [2.5, 2] }, double(5)],
    [{ $multiply: [65536, 65536] }, long(4294967296)],
    [{ $multiply: [3, null] }, null],
  ],
  $pow: [
    [{ $pow: [5, 0] }, 1],
    [{ $pow: [5, 2] }, 25],
    [{ $pow: [5, -2] }, 0.04],
    [{ $pow: [-5, 0.5] }, double(Number.NaN)],
    [{ $pow: [0, -1] }, fails(28764)],
  ],
  $round: [
    [{ $round: [10.5] }, double(10)],
    [{ $round: [11.5, 0] }, double(12)],
    [{ $round: [19.25, 1] }, 19.2],
    [{ $round: [28.73, 1] }, 28.7],
    [{ $round: [-39.24, 1] }, -39.2],
    [{ $round: [28.73, -1] }, double(30)],
    [{ $round: [12345, -2] }, 12300],
  ],
  $sqrt: [
    [{ $sqrt: 25 }, double(5)],
    [{ $sqrt: 30 }, about(5.477225575051661)],
    [{ $sqrt: null }, null],
    [{ $sqrt: -25 }, fails(28714)],
  ],
  $subtract: [
    [{ $subtract: [12, 2] }, 10],
    [{ $subtract: [date('2014-03-01T08:05:00Z'), date('2014-03-01T08:00:00Z')] }, long(300000)],
    [{ $subtract: [date('2014-03-01T08:00:00Z'), 300000] }, date('2014-03-01T07:55:00Z')],
    [{ $subtract: [1, 'a'] }, fails(14)],
  ],
  $trunc: [
    [{ $trunc: [10.5] }, double(10)],
    [{ $trunc: [19.25, 1] }, 19.2],
    [{ $trunc: [1234.5678, 2] }, 1234.56],
    [{ $trunc: [1234.5678, -2] }, double(1200)],
    [{ $trunc: [-2.3] }, double(-2)],
  ],
  $bitAnd: [
    [{ $bitAnd: [0, 127] }, 0],
    [{ $bitAnd: [2, 3] }, 2],
    [{ $bitAnd: [12, long(63)] }, long(12)],
    [{ $bitAnd: [1.5, 3] }, fails()],
  ],
  $bitOr: [
    [{ $bitOr: [0, 127] }, 127],
    [{ $bitOr: [2, 3] }, 3],
  ],
  $bitXor: [
    [{ $bitXor: [0, 127] }, 127],
    [{ $bitXor: [2, 3] }, 1],
  ],
  $bitNot: [
    [{ $bitNot: 0 }, -1],
    [{ $bitNot: 127 }, -128],
    [{ $bitNot: null }, null],
  ],
  $sin: [[{ $sin: Math.PI / 6 }, about(0.5)]],
  $cos: [[{ $cos: Math.PI / 3 }, about(0.5)]],
  $tan: [[{ $tan: Math.PI / 4 }, about(1)]],
  $asin: [
    [{ $asin: 0.5 }, about(Math.PI / 6)],
    [{ $asin: 2 }, fails(50989)],
  ],
  $acos: [[{ $acos: 0.5 }, about(Math.PI / 3)]],
  $atan: [[{ $atan: 1 }, about(Math.PI / 4)]],
  $atan2: [[{ $atan2: [4, 3] }, about(0.9272952180016122)]],
  $sinh: [[{ $sinh: 1 }, about(1.1752011936438014)]],
  $cosh: [[{ $cosh: 1 }, about(1.5430806348152437)]],
  $tanh: [[{ $tanh: 1 }, about(0.7615941559557649)]],
  $asinh: [[{ $asinh: 1 }, about(0.881373587019543)]],
  $acosh: [[{ $acosh: 3 }, about(1.762747174039086)]],
  $atanh: [[{ $atanh: 0.5 }, about(0.5493061443340548)]],
  $degreesToRadians: [
    [{ $degreesToRadians: 180 }, about(Math.PI)],
    [{ $degreesToRadians: null }, null],
  ],
  $radiansToDegrees: [[{ $radiansToDegrees: Math.PI }, about(180)]],
  $and: [
    [{ $and: [1, 'green'] }, true],
    [{ $and: [] }, true],
    [{ $and: [[null], [false], [0]] }, true],
    [{ $and: [null, true] }, false],
    [{ $and: ['$missing', true] }, false],
  ],
  $or: [
    [{ $or: [true, false] }, true],
    [{ $or: [[false], false] }, true],
    [{ $or: [null, 0, '$missing'] }, false],
    [{ $or: [] }, false],
  ],
  $not: [
    [{ $not: [true] }, false],
    [{ $not: [[false]] }, false],
    [{ $not: [null] }, true],
  ],
  $cmp: [
    [{ $cmp: [1, 2] }, -1],
    [{ $cmp: ['b', 'a'] }, 1],
    [{ $cmp: [1, double(1)] }, 0],
    [{ $cmp: [1, 'a'] }, -1],
  ],
  $eq: [
    [{ $eq: [1, long(1)] }, true],
    [{ $eq: [null, '$missing'] }, false],
  ],
  $ne: [[{ $ne: [1, 2] }, true]],
  $gt: [[{ $gt: ['$none', '$missing'] }, true]],
  $gte: [[{ $gte: [2, 2] }, true]],
  $lt: [[{ $lt: [2, 'a'] }, true]],
  $lte: [[{ $lte: [3, 2] }, false]],
  $cond: [
    [{ $cond: [{ $gte: [300, 250] }, 30, 20] }, 30],
    [{ $cond: then({ if: '$missing', else: 20 }, 30) }, 20],
    [{ $cond: then({ if: true }, 1) }, fails(17082)],
  ],
  $ifNull: [
    [{ $ifNull: ['$none', 'Unspecified'] }, 'Unspecified'],
    [{ $ifNull: ['$missing', '$none', 5] }, 5],
    [{ $ifNull: [0, 5] }, 0],
  ],
  $switch: [
    [
      {
        $switch: {
          branches: [then({ case: { $eq: [0, 5] } }, 'equals'), then({ case: { $gt: [0, 5] } }, 'greater')],
          default: 'Did not match',
        },
      },
      'Did not match',
    ],
    [{ $switch: { branches: [then({ case: { $lt: [0, 5] } }, 'less')] } }, 'less'],
    [{ $switch: { branches: [then({ case: false }, 1)] } }, fails(40066)],
  ],
  $concat: [
    [{ $concat: ['$text', ' - ', 'd'] }, 'abc - d'],
    [{ $concat: ['$text', '$none'] }, null],
    [{ $concat: ['a', 5] }, fails(16702)],
  ],
  $indexOfBytes: [
    [{ $indexOfBytes: ['cafeteria', 'e'] }, 3],
    [{ $indexOfBytes: ['cafétéria', 'é'] }, 3],
    [{ $indexOfBytes: ['cafétéria', 'e'] }, -1],
    [{ $indexOfBytes: ['cafétéria', 't'] }, 5],
    [{ $indexOfBytes: ['foo.bar.fi', '.', 5] }, 7],
    [{ $indexOfBytes: ['vanilla', 'll', 0, 2] }, -1],
    [{ $indexOfBytes: ['vanilla', 'll', -1] }, fails(40097)],
    [{ $indexOfBytes: ['vanilla', 'll', 12] }, -1],
    [{ $indexOfBytes: ['vanilla', 'll', 5, 2] }, -1],
    [{ $indexOfBytes: [null, 'foo'] }, null],
  ],
  $indexOfCP: [
    [{ $indexOfCP: ['cafétéria', 'é'] }, 3],
    [{ $indexOfCP: ['cafétéria', 't'] }, 4],
    [{ $indexOfCP: ['cafétéria', 'e'] }, -1],
    [{ $indexOfCP: ['😀a', 'a'] }, 1],
  ],
  $split: [
    [{ $split: ['June-15-2013', '-'] }, ['June', '15', '2013']],
    [{ $split: ['banana split', 'a'] }, ['b', 'n', 'n', ' split']],
    [{ $split: ['headphone jack', 7] }, fails(40086)],
    [{ $split: ['astronomical', 'astro'] }, ['', 'nomical']],
    [{ $split: ['astronomical', 'astronomical'] }, ['', '']],
    [{ $split: ['astronomical', 'big'] }, ['astronomical']],
    [{ $split: ['a', ''] }, fails(40087)],
    [{ $split: [null, 'a'] }, null],
  ],
  $strLenBytes: [
    [{ $strLenBytes: 'cafétéria' }, 11],
    [{ $strLenBytes: literal('$€λG') }, 7],
    [{ $strLenBytes: '寿司' }, 6],
    [{ $strLenBytes: null }, fails(34473)],
  ],
  $strLenCP: [
    [{ $strLenCP: 'cafétéria' }, 9],
    [{ $strLenCP: literal('$€λG') }, 4],
    [{ $strLenCP: '😀' }, 1],
    [{ $strLenCP: null }, fails(34471)],
  ],
  $strcasecmp: [
    [{ $strcasecmp: ['13Q1', '13q4'] }, -1],
    [{ $strcasecmp: ['13Q4', '13q4'] }, 0],
    [{ $strcasecmp: ['14q1', '13q4'] }, 1],
    [{ $strcasecmp: [null, ''] }, 0],
  ],
  $substr: [
    [{ $substr: ['13Q1', 0, 2] }, '13'],
    [{ $substr: ['13Q1', 2, -1] }, 'Q1'],
    [{ $substr: [1234, 0, 2] }, '12'],
  ],
  $substrBytes: [
    [{ $substrBytes: ['Hello World!', 6, 5] }, 'World'],
    [{ $substrBytes: ['cafétéria', 0, 5] }, 'café'],
    [{ $substrBytes: ['cafétéria', 5, 4] }, 'tér'],
    [{ $substrBytes: ['cafétéria', 7, 3] }, fails(28656)],
    [{ $substrBytes: ['cafétéria', 3, 1] }, fails(28657)],
  ],
  $substrCP: [
    [{ $substrCP: ['cafétéria', 0, 5] }, 'cafét'],
    [{ $substrCP: ['cafétéria', 5, 4] }, 'éria'],
    [{ $substrCP: ['cafétéria', 7, 3] }, 'ia'],
    [{ $substrCP: [null, 0, 1] }, ''],
  ],
  $toLower: [
    [{ $toLower: 'PRODUCT 1' }, 'product 1'],
    [{ $toLower: '$none' }, ''],
  ],
  $toUpper: [
    [{ $toUpper: 'product 1' }, 'PRODUCT 1'],
    [{ $toUpper: '$missing' }, ''],
  ],
  $trim: [
    [{ $trim: { input: '  \n good  bye \t  ' } }, 'good  bye'],
    [{ $trim: { input: ' ggggoodbyeeeee', chars: 'ge' } }, ' ggggoodby'],
    [{ $trim: { input: '    ggggoodbyeeeee', chars: ' gde' } }, 'oodby'],
    [{ $trim: { input: null } }, null],
    [{ $trim: { input: 5 } }, fails(50699)],
  ],
  $ltrim: [[{ $ltrim: { input: ' ggggoodbyeeeee ', chars: ' gd' } }, 'oodbyeeeee ']],
  $rtrim: [[{ $rtrim: { input: ' ggggoodbyeeeee ', chars: 'e ' } }, ' ggggoodby']],
  $replaceOne: [
    [{ $replaceOne: { input: 'green paint, green', find: 'green', replacement: 'red' } }, 'red paint, green'],
    [{ $replaceOne: { input: 'a.b', find: '.', replacement: literal('$&') } }, 'a$&b'],
    [{ $replaceOne: { input: null, find: 'a', replacement: 'b' } }, null],
  ],
  $replaceAll: [
    [{ $replaceAll: { input: 'blue paint, blue', find: 'blue', replacement: 'red' } }, 'red paint, red'],
    [{ $replaceAll: { input: 'a.b.c', find: '.', replacement: literal('$&') } }, 'a$&b$&c'],
    [{ $replaceAll: { input: 5, find: 'a', replacement: 'b' } }, fails(51746)],
  ],
  $regexFind: [
    [
      { $regexFind: { input: 'Single LINE', regex: new BSONRegExp('line', 'i') } },
      { match: 'LINE', idx: 7, captures: [] },
    ],
    [
      { $regexFind: { input: 'Carol', regex: '(C(ar)*)ol' } },
      { match: 'Carol', idx: 0, captures: ['Car', 'ar'] },
    ],
    [{ $regexFind: { input: 'x', regex: 'y' } }, null],
  ],
  $regexFindAll: [
    [
      { $regexFindAll: { input: 'Colleen', regex: '(C(ar)*)ol' } },
      [{ match: 'Col', idx: 0, captures: ['C', null] }],
    ],
    [{ $regexFindAll: { input: null, regex: 'y' } }, []],
  ],
  $regexMatch: [
    [{ $regexMatch: { input: 'line', regex: 'LINE', options: 'i' } }, true],
    [{ $regexMatch: { input: null, regex: 'y' } }, false],
  ],
  $literal: [[literal({ $add: [2, 3] }), { $add: [2, 3] }]],
  $let: [
    [{ $let: { vars: { low: 1, high: '$text' }, in: { $concat: ['$$high', '!'] } } }, 'abc!'],
    [{ $let: { vars: { a: 1 }, in: '$$b' } }, fails(17276)],
  ],
  $rand: [[{ $lt: [{ $rand: {} }, 1] }, true]],
  $max: [
    [{ $max: [1, 'a', null] }, 'a'],
    [{ $max: [[85, 90, 71]] }, 90],
  ],
  $min: [[{ $min: [3, null, 2] }, 2]],
  $sum: [
    [{ $sum: [[85, 90, 'x']] }, 175],
    [{ $sum: ['a'] }, 0],
    [{ $sum: [decimal('0.1'), decimal('0.2')] }, decimal('0.3')],
  ],
  $avg: [
    [{ $avg: [[80, 90]] }, double(85)],
    [{ $avg: [['x']] }, null],
  ],
  $stdDevPop: [[{ $stdDevPop: [[85, 90, 71]] }, about(8.04155872120988)]],
  $stdDevSamp: [
    [{ $stdDevSamp: [[85, 90, 71]] }, about(9.848857801796104)],
    [{ $stdDevSamp: [[85]] }, null],
  ],
  $median: [[{ $median: { input: [75, 34, 56], method: 'approximate' } }, double(56)]],
  $percentile: [
    [
      { $percentile: { input: [67, 93, 81, 77, 80], p: [0.5, 0.95], method: 'approximate' } },
      [double(80), double(93)],
    ],
    [{ $percentile: { input: ['x'], p: [0.5], method: 'approximate' } }, [null]],
    [{ $percentile: { input: [1], p: [2], method: 'approximate' } }, fails(7750303)],
  ],
  'no operator': [
    [{ $no: 1 }, fails(168)],
    ['$missing', MISSING],
  ],
};

describe('operators on numbers and texts', () => {
  for (const [name, cases] of Object.entries(CASES))
    test(name, (t) => {
      const examples = new Examples(t);
      for (const each of cases) examples.check(each);
    });
});
