import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { crc32 as expected } from 'node:zlib';
import { crc32, crcText } from './crc32.ts';

test('it is that of zlib, in pieces too, at any offset', () => {
  for (let length = 0; length < 40; length++) {
    const bytes = randomBytes(64).subarray(3, 3 + length);
    assert.equal(crc32(bytes), expected(bytes));
    const half = length >> 1;
    assert.equal(crc32(bytes.subarray(half), crc32(bytes.subarray(0, half))), expected(bytes));
  }
  assert.equal(crcText(crc32(Buffer.from('123456789'))), 'y/Q5Jg==');
});
