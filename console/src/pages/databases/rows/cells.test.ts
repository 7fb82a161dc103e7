import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesLength, isNumeric, shownText, widthOf } from './cells.ts';

test('values are one short line, bytes in hexadecimal', () => {
  assert.equal(shownText(null), '');
  assert.equal(shownText('9007199254740993'), '9007199254740993');
  assert.equal(shownText({ base64: 'AAH/' }), '0001ff');
  assert.equal(bytesLength({ base64: 'AAH/' }), 3);
  assert.equal(bytesLength({ base64: 'AA==' }), 1);
  assert.equal(shownText({ base64: btoa('x'.repeat(30)) }), `${'78'.repeat(24)}…`);
  assert.equal(shownText('x'.repeat(1_000_000)).length, 301);
});

test('numbers are told by the type of their column', () => {
  const numbers = [
    'INTEGER',
    'bigint',
    'int(11)',
    'bigint(20) unsigned',
    'numeric(10,2)',
    'double precision',
  ];
  for (const type of numbers) assert.ok(isNumeric(type), type);
  for (const type of ['text', 'interval', 'point', 'integer[]', 'date', null]) assert.ok(!isNumeric(type));
});

test('a column is as wide as its name and first values, within bounds', () => {
  assert.equal(widthOf({ name: 'a', type: null }, []), 90);
  assert.equal(widthOf({ name: 'a', type: null }, ['x'.repeat(999)]), 320);
});
