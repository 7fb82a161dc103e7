/** Checksums, in base64, of transferred bytes, and of a whole from its parts. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  checksumHeader,
  combineCrc,
  type Digest,
  IN_HEADERS,
  newPortableDigest,
} from '../../libs/s3-wire/index.ts';
import type { FileRange } from './requests.ts';

const READ_BYTES = 512 * 1024;

export interface Expected {
  readonly running: Digest;
  readonly value: Buffer;
}

/**
 * The checksum of the whole object in a response, to be computed during the transfer; undefined:
 * none is supported. The ETag of an object uploaded in one piece is its MD5.
 */
export function expectedChecksum(headers: Readonly<Record<string, unknown>>): Expected | undefined {
  const isWhole = headers['x-amz-checksum-type'] !== 'COMPOSITE';
  for (const algorithm of isWhole ? IN_HEADERS : []) {
    const value = headers[checksumHeader(algorithm)];
    if (typeof value === 'string')
      return { running: newPortableDigest(algorithm), value: Buffer.from(value, 'base64') };
  }
  const [, md5] = /^"([0-9a-f]{32})"$/.exec(String(headers.etag)) ?? [];
  return md5 === undefined
    ? undefined
    : { running: newPortableDigest('MD5'), value: Buffer.from(md5, 'hex') };
}

export function crc32Of(bytes: Uint8Array): string {
  const crc = newPortableDigest('CRC32');
  crc.update(bytes);
  return crc.digest().toString('base64');
}

/** The CRC-32 of a part of a file. Throws read errors. */
export async function crc32OfFile({ path, start, end }: FileRange): Promise<string> {
  if (end === start) return crc32Of(Buffer.alloc(0));
  const crc = newPortableDigest('CRC32');
  for await (const chunk of createReadStream(path, { start, end: end - 1, highWaterMark: READ_BYTES })) {
    crc.update(chunk);
  }
  return crc.digest().toString('base64');
}

/** The MD5 of a file in hex, which is the ETag of an object uploaded in one piece. */
export async function md5OfFile(path: string, size: number): Promise<string> {
  const hash = createHash('md5');
  // A stream costs many times what reading a small file does.
  if (size <= READ_BYTES) return hash.update(await readFile(path)).digest('hex');
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) hash.update(chunk);
  return hash.digest('hex');
}

/** The CRC-32 of a whole from those of its parts in order, without reading them. */
export function combinedCrc32(parts: readonly { readonly crc: string; readonly bytes: number }[]): string {
  const whole = parts.reduce<Buffer>(
    (before, { crc, bytes }) => combineCrc('CRC32', before, Buffer.from(crc, 'base64'), bytes),
    Buffer.alloc(4),
  );
  return whole.toString('base64');
}
