import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detachBuffer } from './buffers.ts';

test('its own large buffer is freed at once', () => {
  const buffer = Buffer.from(new ArrayBuffer(64 * 1024));
  detachBuffer(buffer);
  assert.equal(buffer.length, 0);
  detachBuffer(buffer);
});

test('small buffers, views of larger memory and shared memory stay as they are', () => {
  const large = new ArrayBuffer(256 * 1024);
  const kept = [
    Buffer.from('a few bytes'),
    Buffer.from(large, 0, 128 * 1024),
    Buffer.from(large, 128 * 1024),
    Buffer.from(new SharedArrayBuffer(64 * 1024)),
  ];
  const lengths = kept.map(({ length }) => length);
  for (const buffer of kept) detachBuffer(buffer);
  assert.deepEqual(
    kept.map(({ length }) => length),
    lengths,
  );
});
