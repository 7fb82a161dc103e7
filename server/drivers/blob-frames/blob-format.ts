/**
 * How a blob is stored on disk: frames of 64 KiB of plaintext (the last may be shorter, or empty
 * for an empty blob), each followed by a tail. Plain: the bytes, then a CRC-32 (zlib's,
 * little-endian). Encrypted: AES-256-GCM ciphertext, then the 16-byte tag. Lengths follow from
 * BlobRef.sizeBytes, so no header is needed.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { crc32 } from '@node-rs/crc32';
import { isId } from '../../platform/ids.ts';

export const CHUNK_BYTES = 65_536;
export const CRC_BYTES = 4;
export const TAG_BYTES = 16;

/** Number of frames of a blob of `sizeBytes`; an empty blob has one, so that a swap is detected there too. */
export function chunkCount(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / CHUNK_BYTES));
}

/** Plaintext bytes in chunk `index`. */
export function chunkLength(sizeBytes: number, index: number): number {
  return Math.min(CHUNK_BYTES, sizeBytes - index * CHUNK_BYTES);
}

/** Offset in the file of frame `index`, bytes. */
export function frameOffset(index: number, tailBytes: number): number {
  return index * (CHUNK_BYTES + tailBytes);
}

/** Exact length of the file, bytes. */
export function fileLength(sizeBytes: number, tailBytes: number): number {
  return sizeBytes + chunkCount(sizeBytes) * tailBytes;
}

/**
 * The directory of a blob: the end of its id, which is random; the beginning is the time, which
 * would put all of a day's blobs in one directory. 1,024 directories in one level: with two levels
 * of 1,024 each nearly every blob would create its own directory, and no two writers would share an
 * fsync.
 */
export function blobDirectory(name: string): string {
  if (!isId('blob', name)) throw new Error('not the name of a blob');
  return name.slice(-2);
}

/** Path of a blob below the driver's directory. Throws on anything but a blob id, so no path can escape. */
export function blobPath(name: string): string {
  return join(blobDirectory(name), name);
}

/**
 * Initial value of a frame's CRC. It includes name, position and last-flag, so that a frame of
 * another blob, from another position or from a longer blob fails its check (a CRC keeps any
 * difference of the seed).
 */
export function crcSeed(nameCrc: number, index: number, last: boolean): number {
  const position = Buffer.alloc(9);
  position.writeDoubleLE(index);
  position[8] = last ? 1 : 0;
  return crc32(position, nameCrc);
}

/**
 * The first 7 bytes of every nonce of a blob. Derived, not random: the data key belongs to this
 * blob alone, so the counter is enough to keep nonces distinct, and nothing needs to be stored.
 */
export function noncePrefix(name: string): Buffer {
  return createHash('sha256').update('cloudlet blob nonce\0').update(name).digest().subarray(0, 7);
}

/**
 * The nonce of one frame, after the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015):
 * prefix (7) + counter (4, big-endian) + last-flag (1). The counter ends at 256 TiB.
 */
export function frameNonce(prefix: Uint8Array, index: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.set(prefix);
  nonce.writeUInt32BE(index, 7);
  nonce[11] = last ? 1 : 0;
  return nonce;
}
