import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ByteRing } from './console.ts';

test('it holds the newest bytes of all that came, oldest first', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 16 }), pieces, (size, added) => {
      const ring = new ByteRing(size);
      for (const piece of added) ring.add(piece);
      assert.deepEqual(Buffer.from(ring.read()), Buffer.concat(added).subarray(-size));
    }),
  );
});

test('what was read does not change with what comes later', () => {
  const ring = new ByteRing(4);
  ring.add(Buffer.from('abcd'));
  const read = ring.read();
  ring.add(Buffer.from('efgh'));
  assert.equal(String(read), String(Buffer.from('abcd')));
});
