import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { randomFrom } from '../../server/testing/random.ts';
import { type ChecksumAlgorithm, checksumHeader, combineCrc, headerChecksums } from './checksums.ts';
import { newDigest } from './digests.ts';
import { S3Error } from './s3-error.ts';

/** Sums of `123456789`, as published: https://reveng.sourceforge.io/crc-catalogue/, FIPS 180, RFC 1321. */
const CHECK_VALUES: Readonly<Record<ChecksumAlgorithm, string>> = {
  CRC32: 'cbf43926',
  CRC32C: 'e3069283',
  CRC64NVME: 'ae8b14860a799888',
  SHA1: 'f7c3bc1d808e04732adf679965ccc34ca7ae3441',
  SHA256: '15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225',
  MD5: '25f9e794323b453885f5181f1b624d0b',
};
const ALGORITHMS = Object.keys(CHECK_VALUES) as ChecksumAlgorithm[];
const CRCS = ['CRC32', 'CRC32C', 'CRC64NVME'] as const;

function checksum(algorithm: ChecksumAlgorithm, ...chunks: readonly Uint8Array[]): Buffer {
  const made = newDigest(algorithm);
  for (const chunk of chunks) made.update(chunk);
  return made.digest();
}

function randomBytes(below: (limit: number) => number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => below(256)));
}

describe('a checksum', () => {
  for (const algorithm of ALGORITHMS) {
    test(`${algorithm} has the published value`, () => {
      assert.equal(checksum(algorithm, Buffer.from('123456789')).toString('hex'), CHECK_VALUES[algorithm]);
    });

    test(`${algorithm} is the same however the bytes are cut`, () => {
      const below = randomFrom(2);
      for (const length of [0, 1, 7, 8, 9, 1000, 300_001]) {
        const data = randomBytes(below, length);
        const cuts = Array.from({ length: 6 }, () => below(length + 1)).sort((a, b) => a - b);
        const parts = [0, ...cuts].map((from, at) => data.subarray(from, cuts[at] ?? length));
        assert.deepEqual(checksum(algorithm, ...parts), checksum(algorithm, data), `${length}`);
      }
    });
  }

  test('CRC64NVME goes through long data as bit by bit', () => {
    const data = randomBytes(randomFrom(4), 250_003);
    let crc = 0xffffffffffffffffn;
    for (const byte of data) {
      crc ^= BigInt(byte);
      for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ 0x9a6c9329ac4bc9b5n : crc >> 1n;
    }
    assert.equal(checksum('CRC64NVME', data).readBigUInt64BE(), crc ^ 0xffffffffffffffffn);
  });

  test('two under way do not disturb one another', () => {
    const [one, other] = [newDigest('CRC64NVME'), newDigest('CRC64NVME')];
    one.update(Buffer.from('12345678'));
    other.update(Buffer.from('something else'));
    one.update(Buffer.from('9'));
    assert.equal(one.digest().toString('hex'), CHECK_VALUES.CRC64NVME);
  });
});

describe('the CRC of a whole from those of its parts', () => {
  for (const algorithm of CRCS) {
    test(algorithm, () => {
      const below = randomFrom(6);
      for (const lengths of [
        [0, 0],
        [5, 0],
        [0, 5],
        [1, 1],
        [100, 70_000],
        [65_536, 65_536, 65_536, 3],
      ]) {
        const parts = lengths.map((length) => randomBytes(below, length));
        const combined = parts
          .slice(1)
          .reduce(
            (whole, part) => combineCrc(algorithm, whole, checksum(algorithm, part), part.length),
            checksum(algorithm, parts[0] ?? Buffer.alloc(0)),
          );
        assert.deepEqual(combined, checksum(algorithm, ...parts), `${lengths}`);
      }
    });

    test(`${algorithm} of more than 4 GiB`, () => {
      const half = Buffer.alloc(1 << 20);
      let [crc, length] = [checksum(algorithm, half), half.length];
      const single = crc;
      // By doubling, and by adding one by one: 4,100 times 1 MiB of zeros.
      for (let doublings = 0; doublings < 12; doublings += 1) {
        crc = combineCrc(algorithm, crc, crc, length);
        length *= 2;
      }
      let one = single;
      for (let count = 1; count < 4100; count += 1) one = combineCrc(algorithm, one, single, half.length);
      const four = [1, 2, 3].reduce((whole) => combineCrc(algorithm, whole, single, half.length), single);
      assert.deepEqual(one, combineCrc(algorithm, four, crc, length));
    });
  }
});

describe('headers', () => {
  const refuse = (headers: Readonly<Record<string, string>>) =>
    assert.throws(
      () => headerChecksums(headers),
      (error: unknown) => error instanceof S3Error && error.code === 'InvalidRequest',
      JSON.stringify(headers),
    );

  test('none, a value, a name, a trailer', () => {
    const none = { algorithm: null, value: null, inTrailer: false, type: null, declaredTrailers: [] };
    assert.deepEqual(headerChecksums({ 'x-amz-checksum-mode': 'ENABLED' }), none);
    const value = Buffer.from('cbf43926', 'hex');
    assert.deepEqual(
      headerChecksums({ 'x-amz-checksum-crc32': 'y/Q5Jg==', 'x-amz-sdk-checksum-algorithm': 'CRC32' }),
      { ...none, algorithm: 'CRC32', value },
    );
    assert.deepEqual(
      headerChecksums({ 'x-amz-checksum-algorithm': 'crc32c', 'x-amz-checksum-type': 'FULL_OBJECT' }),
      { ...none, algorithm: 'CRC32C', type: 'FULL_OBJECT' },
    );
    assert.deepEqual(headerChecksums({ 'x-amz-trailer': ' X-Amz-Checksum-CRC64NVME , x-other' }), {
      ...none,
      algorithm: 'CRC64NVME',
      inTrailer: true,
      declaredTrailers: ['x-amz-checksum-crc64nvme', 'x-other'],
    });
    assert.equal(checksumHeader('CRC64NVME'), 'x-amz-checksum-crc64nvme');
  });

  test('refused', () => {
    const good = { 'x-amz-checksum-crc32': 'y/Q5Jg==' };
    refuse({ ...good, 'x-amz-checksum-crc32c': 'y/Q5Jg==' });
    refuse({ ...good, 'x-amz-trailer': 'x-amz-checksum-crc32' });
    refuse({ ...good, 'x-amz-sdk-checksum-algorithm': 'SHA1' });
    refuse({ 'x-amz-checksum-algorithm': 'SHA1', 'x-amz-sdk-checksum-algorithm': 'SHA256' });
    refuse({ 'x-amz-trailer': 'x-amz-checksum-crc32,x-amz-checksum-sha1' });
    refuse({ 'x-amz-trailer': 'x-amz-checksum-crc16' });
    refuse({ 'x-amz-checksum-xxhash64': 'y/Q5Jg==' });
    refuse({ 'x-amz-checksum-md5': 'JfnnlDI7RTiF9RgfG2JNCw==' });
    refuse({ 'x-amz-sdk-checksum-algorithm': 'SHA512' });
    for (const value of ['', 'y/Q5Jg', 'y/Q5Jg=', 'y/Q5Jg==x', '?/Q5Jg==', 'y/Q5', 'y_Q5Jg==', 'y/Q5Jh==']) {
      refuse({ 'x-amz-checksum-crc32': value });
    }
    refuse({ 'x-amz-checksum-type': 'WHOLE' });
    refuse({ 'x-amz-checksum-algorithm': 'CRC64NVME', 'x-amz-checksum-type': 'COMPOSITE' });
    refuse({ 'x-amz-checksum-algorithm': 'SHA1', 'x-amz-checksum-type': 'FULL_OBJECT' });
  });
});
