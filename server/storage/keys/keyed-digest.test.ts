import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyedDigest } from './keyed-digest.ts';

const KEY = randomBytes(32);

function digestOf(key: Uint8Array, ...pieces: readonly Uint8Array[]): string {
  const digest = new KeyedDigest(key);
  for (const piece of pieces) digest.update(piece);
  return digest.digest();
}

test('equal bytes have the same digest, however they come; other bytes and keys have another', () => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 5 }), bytes, (pieces, other) => {
      const whole = Buffer.concat(pieces);
      const digest = digestOf(KEY, ...pieces);
      assert.match(digest, /^[0-9a-f]{32}$/);
      assert.equal(digestOf(KEY, whole), digest);
      assert.equal(digestOf(KEY, other) === digest, whole.equals(other));
      assert.notEqual(digestOf(randomBytes(32), whole), digest);
      // GMAC pads blocks with zeros.
      assert.notEqual(digestOf(KEY, whole, new Uint8Array(1)), digest);
    }),
  );
});
