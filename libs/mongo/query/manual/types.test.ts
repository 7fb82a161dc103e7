/** Operators on types, with the examples of their pages in MongoDB's manual. */
import { describe, test } from 'node:test';
import { Double, ObjectId } from 'bson';
import { type Case, date, decimal, Examples, fails, long } from '../../testing/expression-cases.ts';

const double = (number: number) => new Double(number);
const AT = date('2014-01-01T08:15:39.736Z');

const TYPES: Readonly<Record<string, readonly Case[]>> = {
  $convert: [
    [{ $convert: { input: true, to: 'int' } }, 1],
    [{ $convert: { input: '1', to: 16 } }, 1],
    [{ $convert: { input: 'a', to: 'int', onError: 'no number' } }, 'no number'],
    [{ $convert: { input: null, to: 'int', onNull: 0 } }, 0],
    [{ $convert: { input: null, to: 'int' } }, null],
    [{ $convert: { input: 'a', to: 'int' } }, fails(241)],
    [{ $convert: { input: 'a', to: 'thing' } }, fails(2)],
  ],
  $toBool: [
    [{ $toBool: 1.99999 }, true],
    [{ $toBool: decimal('0') }, false],
    [{ $toBool: 'false' }, true],
    [{ $toBool: '' }, true],
    [{ $toBool: AT }, true],
    [{ $toBool: null }, null],
  ],
  $toInt: [
    [{ $toInt: 1.99999 }, 1],
    [{ $toInt: decimal('-5.5') }, -5],
    [{ $toInt: decimal('9223372036000000000') }, fails(241)],
    [{ $toInt: '-2' }, -2],
    [{ $toInt: '2.5' }, fails(241)],
    [{ $toInt: false }, 0],
    [{ $toInt: AT }, fails(241)],
  ],
  $toLong: [
    [{ $toLong: true }, long(1)],
    [{ $toLong: 1.99999 }, long(1)],
    [{ $toLong: AT }, long(AT.getTime())],
    [{ $toLong: '-2' }, long(-2)],
  ],
  $toDouble: [
    [{ $toDouble: decimal('-5.5') }, -5.5],
    [{ $toDouble: '2.5' }, 2.5],
    [{ $toDouble: AT }, double(AT.getTime())],
  ],
  $toDecimal: [
    [{ $toDecimal: true }, decimal('1')],
    [{ $toDecimal: '2.50' }, decimal('2.50')],
    [{ $toDecimal: long(7) }, decimal('7')],
  ],
  $toString: [
    [{ $toString: true }, 'true'],
    [{ $toString: 2.5 }, '2.5'],
    [{ $toString: long(7) }, '7'],
    [{ $toString: AT }, '2014-01-01T08:15:39.736Z'],
    [{ $toString: new ObjectId('5ab9c3da31c2ab715d421285') }, '5ab9c3da31c2ab715d421285'],
    [{ $toString: '$none' }, null],
  ],
  $toDate: [
    [{ $toDate: 120000000000.5 }, date('1973-10-20T21:20:00Z')],
    [{ $toDate: long('1253372036000') }, date('2009-09-19T14:53:56Z')],
    [{ $toDate: decimal('1253372036000.50') }, date('2009-09-19T14:53:56Z')],
    [{ $toDate: new ObjectId('5ab9c3da31c2ab715d421285') }, date('2018-03-27T04:08:58Z')],
    [{ $toDate: '2018-03-20' }, date('2018-03-20T00:00:00Z')],
    [{ $toDate: '2018-03-20 11:00:06 +0500' }, date('2018-03-20T06:00:06Z')],
    [{ $toDate: 'Friday' }, fails(241)],
  ],
  $toObjectId: [
    [{ $toObjectId: '5ab9cbfa31c2ab715d42129e' }, new ObjectId('5ab9cbfa31c2ab715d42129e')],
    [{ $toObjectId: '5ab9cbfa31c2ab715d42129' }, fails(241)],
  ],
  $isNumber: [
    [{ $isNumber: 1.5 }, true],
    [{ $isNumber: '1' }, false],
    [{ $isNumber: '$missing' }, false],
  ],
  $type: [
    [{ $type: 'a' }, 'string'],
    [{ $type: [[1, 2]] }, 'array'],
    [{ $type: '$missing' }, 'missing'],
    [{ $type: decimal('1') }, 'decimal'],
  ],
};

describe('operators on types', () => {
  for (const [name, cases] of Object.entries(TYPES))
    test(name, (t) => {
      const examples = new Examples(t);
      for (const each of cases) examples.check(each);
    });
});
