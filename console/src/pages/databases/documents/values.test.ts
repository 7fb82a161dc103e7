import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentIn, preview, sayId, shownValue } from './values.ts';

test('values have their type beside their text', () => {
  assert.deepEqual(shownValue({ $oid: '507f1f77bcf86cd799439011' }), {
    type: 'ObjectId',
    text: '507f1f77bcf86cd799439011',
  });
  assert.deepEqual(shownValue({ $numberLong: '9007199254740993' })?.text, '9007199254740993');
  assert.deepEqual(shownValue(5), { type: 'Int32', text: '5' });
  assert.deepEqual(shownValue({ $binary: { base64: 'AP8=', subType: '00' } })?.text, '2 bytes, type 00');
  assert.equal(shownValue({ $unknown: 1 }), null);
  assert.equal(shownValue([1]), null);
  assert.equal(shownValue('x'.repeat(1_000_000))?.text.length, 203);
});

test('a folded document is one short line', () => {
  assert.equal(preview({ _id: 1, a: 'x', b: [1, 2], c: { d: 1 } }), 'a: "x", b: [2], c: {1}');
  const wide = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, 'y'.repeat(1000)]));
  assert.ok(preview(wide).length < 500);
  assert.deepEqual([sayId({ $oid: 'ab' }), sayId('<b>'), sayId({ a: 1 })], ['ab', '<b>', '{"a":1}']);
});

test('typed numbers are what their text says', () => {
  assert.deepEqual(documentIn('{"a":1,"b":1.5,"c":1.0,"d":9007199254740993}'), {
    a: 1,
    b: 1.5,
    c: { $numberDouble: '1.0' },
    d: { $numberLong: '9007199254740993' },
  });
  for (const text of ['[]', '1', 'null', '{']) assert.throws(() => documentIn(text), SyntaxError);
});
