/** Digests without platform-specific parts, for the client. */
import { createHash } from 'node:crypto';
// The namespace import, because Node has crc32 only from 20.15 on.
import * as zlib from 'node:zlib';
import { type Crc, slicedCrc } from './sliced-crc.ts';

export type CrcName = 'CRC32' | 'CRC32C' | 'CRC64NVME';
export type DigestName = CrcName | 'SHA1' | 'SHA256' | 'MD5';

/** A digest of bytes that come in pieces. */
export interface Digest {
  update(bytes: Uint8Array): void;
  /** Call once: hashes end with it. CRCs are big-endian. */
  digest(): Buffer;
}

/** Length of a digest, bytes. */
export const DIGEST_BYTES: Readonly<Record<DigestName, number>> = {
  CRC32: 4,
  CRC32C: 4,
  CRC64NVME: 8,
  SHA1: 20,
  SHA256: 32,
  MD5: 16,
};

/** Reflected, as the algorithms are. */
export const POLYNOMIALS: Readonly<Record<CrcName, bigint>> = {
  CRC32: 0xedb88320n,
  CRC32C: 0x82f63b78n,
  CRC64NVME: 0x9a6c9329ac4bc9b5n,
};

/** From the initial CRC, 0, to that of all bytes so far. */
export const PORTABLE_CRCS: Readonly<Record<CrcName, Crc>> = {
  CRC32:
    zlib.crc32 === undefined
      ? slicedCrc(POLYNOMIALS.CRC32, 32)
      : (bytes, before) => BigInt(zlib.crc32(bytes, Number(before))),
  CRC32C: slicedCrc(POLYNOMIALS.CRC32C, 32),
  CRC64NVME: slicedCrc(POLYNOMIALS.CRC64NVME, 64),
};

/** `crcs`: how they are computed. */
export function newPortableDigest(name: DigestName, crcs = PORTABLE_CRCS): Digest {
  if (!isCrc(name)) {
    const made = createHash(name.toLowerCase());
    return { update: (bytes) => void made.update(bytes), digest: () => made.digest() };
  }
  let crc = 0n;
  return {
    update: (bytes) => {
      crc = crcs[name](bytes, crc);
    },
    digest: () => bigEndian(crc, DIGEST_BYTES[name]),
  };
}

export function isCrc(name: DigestName): name is CrcName {
  return name in POLYNOMIALS;
}

/** A number as that many bytes. */
export function bigEndian(value: bigint, sizeBytes: number): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * sizeBytes, '0'), 'hex');
}
