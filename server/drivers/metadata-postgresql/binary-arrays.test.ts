import assert from 'node:assert/strict';
import { test } from 'node:test';
import { binaryArray } from './binary-arrays.ts';

test('an array is sent as array_recv reads it', () => {
  const head = '00000001000000010000001400000003' + '00000001';
  const elements = '00000008ffffffffffffffff' + 'ffffffff' + '000000080020000000000001';
  assert.equal(binaryArray('bigint', [-1, null, 2n ** 53n + 1n])?.toString('hex'), head + elements);
  const texts = '00000001000000000000001900000001' + '00000001' + '00000002c3a4';
  assert.equal(binaryArray('text', ['ä'])?.toString('hex'), texts);
});

test('types and values that have no such form are left to pg', () => {
  assert.equal(binaryArray('numeric', [1]), null);
  assert.equal(binaryArray('bigint', [1.5]), null);
  assert.equal(binaryArray('text', [1]), null);
  assert.equal(binaryArray('bytea', ['text']), null);
});
