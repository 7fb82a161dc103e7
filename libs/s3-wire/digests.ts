/** Digests of bytes, the same on the event loop and on threads, with the CRC-32C of the processor. */
import { hash } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import {
  bigEndian,
  DIGEST_BYTES,
  type Digest,
  type DigestName,
  isCrc,
  newPortableDigest,
  PORTABLE_CRCS,
} from './portable-digests.ts';
import type { Crc } from './sliced-crc.ts';

/** Lower-case hex by name; CRCs are big-endian. */
export type Digests = Readonly<Partial<Record<DigestName, string>>>;

const nativeCrc32c: Crc = (bytes, before) => BigInt(crc32c(bytes, Number(before)));
const CRCS = { ...PORTABLE_CRCS, CRC32C: nativeCrc32c };

export function newDigest(name: DigestName): Digest {
  return newPortableDigest(name, CRCS);
}

/** The digests of complete bytes. */
export function digestsOf(bytes: Uint8Array, names: readonly DigestName[]): Digests {
  return Object.fromEntries(
    names.map((name) => {
      // One call costs a third less than a hash object.
      if (!isCrc(name)) return [name, hash(name.toLowerCase(), bytes, 'hex')];
      return [name, bigEndian(CRCS[name](bytes, 0n), DIGEST_BYTES[name]).toString('hex')];
    }),
  );
}
