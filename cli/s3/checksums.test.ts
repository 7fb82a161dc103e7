import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base64OfCrc32, combinedCrc32, crc32, expectedChecksum } from './checksums.ts';

const CHECK = Buffer.from('123456789');

test('the checksums are those of their specifications', () => {
  assert.equal(crc32(CHECK), 0xcbf43926);
  const value = 'rosUhgp5mIg=';
  const expected = expectedChecksum({
    'x-amz-checksum-crc64nvme': value,
    'x-amz-checksum-type': 'FULL_OBJECT',
  });
  expected?.running.update(CHECK.subarray(0, 4));
  expected?.running.update(CHECK.subarray(4));
  assert.equal(expected?.running.digest(), value);
});

test('an ETag is used where there is no checksum of the whole', () => {
  const etag = '"25f9e794323b453885f5181f1b624d0b"';
  const composite = { 'x-amz-checksum-sha256': 'x-2', 'x-amz-checksum-type': 'COMPOSITE' };
  const expected = expectedChecksum({ etag, ...composite });
  expected?.running.update(CHECK);
  assert.equal(expected?.running.digest(), expected?.value);
  assert.equal(expectedChecksum({ etag: '"25f9e794323b453885f5181f1b624d0b-2"' }), undefined);
});

test('the checksum of the whole comes from those of its parts', () => {
  const parts = [CHECK.subarray(0, 2), CHECK.subarray(2, 2), CHECK.subarray(2)];
  const told = parts.map((part) => ({ crc: crc32(part), bytes: part.length }));
  assert.equal(base64OfCrc32(combinedCrc32(told)), base64OfCrc32(crc32(CHECK)));
});
