import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { digestsOf, newDigest } from './digests.ts';
import { type DigestName, newPortableDigest, POLYNOMIALS } from './portable-digests.ts';
import { slicedCrc } from './sliced-crc.ts';

/** One byte at a time, as defined in the catalogue of CRCs. */
function slowCrc(bytes: Uint8Array, polynomial: bigint, bits: number): bigint {
  const ones = (1n << BigInt(bits)) - 1n;
  let crc = ones;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ polynomial : crc >> 1n;
  }
  return crc ^ ones;
}

const hex = (value: bigint | number, digits: number) => value.toString(16).padStart(digits, '0');

const EXPECTED: Readonly<Record<DigestName, (bytes: Uint8Array) => string>> = {
  MD5: (bytes) => createHash('md5').update(bytes).digest('hex'),
  SHA1: (bytes) => createHash('sha1').update(bytes).digest('hex'),
  SHA256: (bytes) => createHash('sha256').update(bytes).digest('hex'),
  CRC32: (bytes) => hex(crc32(bytes), 8),
  CRC32C: (bytes) => hex(slowCrc(bytes, 0x82f63b78n, 32), 8),
  CRC64NVME: (bytes) => hex(slowCrc(bytes, 0x9a6c9329ac4bc9b5n, 64), 16),
};
const NAMES = Object.keys(EXPECTED) as DigestName[];

test('digests are those of Node, and of CRCs one bit at a time, however the bytes come', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
  fc.assert(
    fc.property(fc.subarray(NAMES), pieces, (names, parts) => {
      const whole = Buffer.concat(parts);
      const expected = Object.fromEntries(names.map((name) => [name, EXPECTED[name](whole)]));
      assert.deepEqual(digestsOf(whole, names), expected);
      for (const name of names) {
        for (const digest of [newDigest(name), newPortableDigest(name)]) {
          for (const part of parts) digest.update(part);
          assert.equal(digest.digest().toString('hex'), expected[name]);
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('bytes in shared memory have the digests of a copy', () => {
  const shared = Buffer.from(new SharedArrayBuffer(200_001));
  for (let at = 0; at < shared.length; at++) shared[at] = at * 31;
  // The CRC-32 for a Node without one.
  const sliced = slicedCrc(POLYNOMIALS.CRC32, 32);
  for (const start of [0, 1, 7]) {
    const view = shared.subarray(start);
    assert.deepEqual(digestsOf(view, NAMES), digestsOf(Buffer.from(view), NAMES));
    assert.equal(sliced(view, 0n), BigInt(crc32(Buffer.from(view))));
  }
});
