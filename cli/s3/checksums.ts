/** Checksums of what is sent and received, and how those of parts make that of the whole. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import * as zlib from 'node:zlib';
import type { FileRange } from './requests.ts';

const READ_BYTES = 512 * 1024;
const CRC32_POLYNOMIAL = 0xedb88320n;
const CRC64_POLYNOMIAL = 0x9a6c9329ac4bc9b5n;

/** Reflected; each entry is the CRC of one byte. */
function crc32Table(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    return crc;
  });
}

function slowCrc32(): (bytes: Uint8Array, before?: number) => number {
  const table = crc32Table();
  return (bytes, before = 0) => {
    let crc = ~before;
    for (const byte of bytes) crc = (table[(crc ^ byte) & 0xff] as number) ^ (crc >>> 8);
    return ~crc >>> 0;
  };
}

/** zlib has it from Node 20.15 on. */
export const crc32: (bytes: Uint8Array, before?: number) => number = zlib.crc32 ?? slowCrc32();

/** The upper and lower half of each entry, since numbers hold 53 bits. */
let halves: { readonly upper: Uint32Array; readonly lower: Uint32Array } | undefined;

function crc64Halves() {
  if (halves !== undefined) return halves;
  const [upper, lower] = [new Uint32Array(256), new Uint32Array(256)];
  for (let byte = 0; byte < 256; byte++) {
    let crc = BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ CRC64_POLYNOMIAL : crc >> 1n;
    upper[byte] = Number(crc >> 32n);
    lower[byte] = Number(crc & 0xffffffffn);
  }
  halves = { upper, lower };
  return halves;
}

export interface Running {
  update(bytes: Uint8Array): void;
  /** Base64, as in headers. */
  digest(): string;
}

function runningCrc32(): Running {
  let crc = 0;
  return {
    update: (bytes) => {
      crc = crc32(bytes, crc);
    },
    digest: () => base64OfCrc32(crc),
  };
}

function runningCrc64(): Running {
  const { upper, lower } = crc64Halves();
  let [high, low] = [0xffffffff, 0xffffffff];
  return {
    update: (bytes) => {
      for (const byte of bytes) {
        const index = (low ^ byte) & 0xff;
        low = (((low >>> 8) | (high << 24)) ^ (lower[index] as number)) >>> 0;
        high = ((high >>> 8) ^ (upper[index] as number)) >>> 0;
      }
    },
    digest: () => {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt32BE(~high >>> 0, 0);
      bytes.writeUInt32BE(~low >>> 0, 4);
      return bytes.toString('base64');
    },
  };
}

function runningHash(name: string): Running {
  const hash = createHash(name);
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('base64') };
}

/** In the order in which they are preferred. */
const BY_HEADER: Readonly<Record<string, () => Running>> = {
  'x-amz-checksum-crc32': runningCrc32,
  'x-amz-checksum-crc64nvme': runningCrc64,
  'x-amz-checksum-sha256': () => runningHash('sha256'),
  'x-amz-checksum-sha1': () => runningHash('sha1'),
};

export interface Expected {
  readonly running: Running;
  readonly value: string;
}

/**
 * The checksum of the whole object that an answer tells, to be computed along; undefined: it tells none that
 * we know. The ETag of an object that came in one piece is its MD5.
 */
export function expectedChecksum(headers: Readonly<Record<string, unknown>>): Expected | undefined {
  const isWhole = headers['x-amz-checksum-type'] !== 'COMPOSITE';
  for (const [header, begin] of isWhole ? Object.entries(BY_HEADER) : []) {
    const value = headers[header];
    if (typeof value === 'string') return { running: begin(), value };
  }
  const [, md5] = /^"([0-9a-f]{32})"$/.exec(String(headers['etag'])) ?? [];
  if (md5 === undefined) return undefined;
  return { running: runningHash('md5'), value: Buffer.from(md5, 'hex').toString('base64') };
}

export function base64OfCrc32(crc: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc, 0);
  return bytes.toString('base64');
}

/** The CRC-32 of a part of a file. Throws what reading does. */
export async function crc32OfFile({ path, start, end }: FileRange): Promise<number> {
  if (end === start) return 0;
  let crc = 0;
  for await (const chunk of createReadStream(path, { start, end: end - 1, highWaterMark: READ_BYTES })) {
    crc = crc32(chunk, crc);
  }
  return crc;
}

/** The MD5 of a file in hex, which is the ETag of an object that came in one piece. */
export async function md5OfFile(path: string, size: number): Promise<string> {
  const hash = createHash('md5');
  // A stream costs many times what reading a small file does.
  if (size <= READ_BYTES) return hash.update(await readFile(path)).digest('hex');
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) hash.update(chunk);
  return hash.digest('hex');
}

/** Product of two polynomials modulo that of the CRC; the highest bit is the coefficient of x^0. */
function multiply(one: bigint, other: bigint): bigint {
  let [product, shifted] = [0n, other];
  for (let bit = 1n << 31n; bit > 0n; bit >>= 1n) {
    if (one & bit) product ^= shifted;
    shifted = shifted & 1n ? (shifted >> 1n) ^ CRC32_POLYNOMIAL : shifted >> 1n;
  }
  return product;
}

/** The CRC-32 of a text from those of its parts, in their order. Reads none of them. */
export function combinedCrc32(parts: readonly { readonly crc: number; readonly bytes: number }[]): number {
  return Number(
    parts.reduce((whole, { crc, bytes }) => {
      let power = 1n << 31n;
      let square = 1n << 30n;
      for (let left = BigInt(bytes) * 8n; left > 0n; left >>= 1n) {
        if (left & 1n) power = multiply(power, square);
        square = multiply(square, square);
      }
      return multiply(power, whole) ^ BigInt(crc);
    }, 0n),
  );
}
