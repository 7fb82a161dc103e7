import assert from 'node:assert/strict';
import { test } from 'node:test';
import { combinedCrc32, crc32Of, expectedChecksum } from './checksums.ts';

const CHECK = Buffer.from('123456789');

test('the checksums are those of their specifications', () => {
  assert.equal(Buffer.from(crc32Of(CHECK), 'base64').toString('hex'), 'cbf43926');
  const values = { crc32: 'y/Q5Jg==', crc32c: '4waSgw==', crc64nvme: 'rosUhgp5mIg=' };
  for (const [name, value] of Object.entries(values)) {
    const type = { 'x-amz-checksum-type': 'FULL_OBJECT' };
    const expected = expectedChecksum({ [`x-amz-checksum-${name}`]: value, ...type });
    expected?.running.update(CHECK.subarray(0, 4));
    expected?.running.update(CHECK.subarray(4));
    assert.equal(expected?.value.toString('base64'), value);
    assert.deepEqual(expected?.running.digest(), expected?.value);
  }
});

test('an ETag is used where there is no checksum of the whole', () => {
  const etag = '"25f9e794323b453885f5181f1b624d0b"';
  const composite = { 'x-amz-checksum-sha256': 'x-2', 'x-amz-checksum-type': 'COMPOSITE' };
  const expected = expectedChecksum({ etag, ...composite });
  expected?.running.update(CHECK);
  assert.deepEqual(expected?.running.digest(), expected?.value);
  assert.equal(expectedChecksum({ etag: '"25f9e794323b453885f5181f1b624d0b-2"' }), undefined);
});

test('the checksum of the whole comes from those of its parts', () => {
  const parts = [CHECK.subarray(0, 2), CHECK.subarray(2, 2), CHECK.subarray(2)];
  const told = parts.map((part) => ({ crc: crc32Of(part), bytes: part.length }));
  assert.equal(combinedCrc32(told), crc32Of(CHECK));
});
