/** The specification tests can fail: values that the matching must refuse, and values that it must accept. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Long, ObjectId } from 'mongodb';
import { assertMatches, assertSame } from './matching.ts';

const PASS: readonly (readonly [expected: unknown, actual: unknown])[] = [
  [{ n: 1 }, { n: Long.fromNumber(1), more: 2 }],
  [{ n: { $numberLong: '1' } }, { n: 1 }],
  [[{ _id: 1 }], [{ _id: 1, x: 1 }]],
  [{ n: { $$unsetOrMatches: 1 } }, {}],
  [{ n: { $$unsetOrMatches: 1 } }, { n: 1 }],
  [{ n: { $$exists: false } }, {}],
  [{ n: { $$type: ['string', 'long'] } }, { n: Long.MAX_VALUE }],
  [null, null],
];
const REFUSED: typeof PASS = [
  [{ n: 1 }, { n: 2 }],
  [{ n: 1 }, {}],
  [{ n: 1 }, undefined],
  [{ n: { a: 1 } }, { n: { a: 1, b: 2 } }],
  [[{ n: { a: 1 } }], [{ n: { a: 1, b: 2 } }]],
  [[1], [1, 2]],
  [
    [1, 2],
    [2, 1],
  ],
  [{}, []],
  [{}, null],
  [null, undefined],
  [{ n: { $$unsetOrMatches: 1 } }, { n: 2 }],
  [{ n: { $$exists: true } }, {}],
  [{ n: { $$exists: false } }, { n: null }],
  [{ n: { $$type: 'long' } }, { n: '1' }],
  [{ n: { $$type: 'object' } }, { n: [] }],
  [{ n: { $$unknown: 1 } }, { n: 1 }],
  [{ _id: new ObjectId() }, { _id: new ObjectId() }],
];

test('what is expected passes', () => {
  for (const [expected, actual] of PASS) assertMatches(expected, actual, 'result');
});

test('anything else is refused', () => {
  for (const [expected, actual] of REFUSED) {
    assert.throws(() => assertMatches(expected, actual, 'result'), assert.AssertionError);
  }
});

test('stored documents have these fields alone, in this order', () => {
  assertSame([{ _id: 1, a: 1 }], [{ _id: 1, a: 1 }], 'test');
  for (const other of [[{ a: 1, _id: 1 }], [{ _id: 1, a: 1, b: 1 }], [{ _id: 1 }], []]) {
    assert.throws(() => assertSame([{ _id: 1, a: 1 }], other, 'test'), assert.AssertionError);
  }
});
