/**
 * Checksums of objects and parts, and the headers that carry them.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Digests } from './digests.ts';
import { bigEndian, type CrcName, DIGEST_BYTES, type DigestName, POLYNOMIALS } from './portable-digests.ts';
import { S3Error } from './s3-error.ts';

/** MD5 is for `Content-MD5` and ETags; it has no checksum header. */
export type ChecksumAlgorithm = DigestName;
/** The checksum of an object in parts covers the parts' checksums, or its bytes. */
export type ChecksumType = 'COMPOSITE' | 'FULL_OBJECT';

/** The algorithms with their own header. */
export const IN_HEADERS: readonly ChecksumAlgorithm[] = ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'];

/** Polynomials over GF(2) modulo a CRC polynomial; the highest bit is the coefficient of x^0. */
class Field {
  readonly #polynomial: bigint;
  readonly #one: bigint;
  /** x^(2^n), for n from 0 on. */
  readonly #squares: bigint[];
  #lastLength = -1;
  #lastPower = 0n;

  constructor(polynomial: bigint, bits: number) {
    this.#polynomial = polynomial;
    this.#one = 1n << BigInt(bits - 1);
    this.#squares = [this.#one >> 1n];
  }

  multiply(one: bigint, other: bigint): bigint {
    let product = 0n;
    let shifted = other;
    for (let bit = this.#one; bit > 0n; bit >>= 1n) {
      if (one & bit) product ^= shifted;
      shifted = shifted & 1n ? (shifted >> 1n) ^ this.#polynomial : shifted >> 1n;
    }
    return product;
  }

  /**
   * x^(8 · lengthBytes): the effect of that many bytes on the CRC before them. Parts mostly have one length.
   */
  power(lengthBytes: number): bigint {
    if (lengthBytes === this.#lastLength) return this.#lastPower;
    let power = this.#one;
    let left = BigInt(lengthBytes) * 8n;
    for (let at = 0; left > 0n; at += 1) {
      const square = this.#squares[at] ?? 0n;
      if (left & 1n) power = this.multiply(power, square);
      if (this.#squares.length === at + 1) this.#squares.push(this.multiply(square, square));
      left >>= 1n;
    }
    this.#lastLength = lengthBytes;
    this.#lastPower = power;
    return power;
  }
}

const fields = new Map<CrcName, Field>();

/**
 * The CRC of a text, from the CRC `a` of its beginning and that of its other `lengthOfB` bytes `b`.
 * Reads no bytes.
 */
// biome-ignore lint/complexity/useMaxParams: two CRCs, in this order
export function combineCrc(algorithm: CrcName, a: Buffer, b: Buffer, lengthOfB: number): Buffer {
  const sizeBytes = DIGEST_BYTES[algorithm];
  const field = fields.get(algorithm) ?? new Field(POLYNOMIALS[algorithm], 8 * sizeBytes);
  fields.set(algorithm, field);
  const value = (crc: Buffer) => BigInt(`0x${crc.toString('hex')}`);
  return bigEndian(field.multiply(field.power(lengthOfB), value(a)) ^ value(b), sizeBytes);
}

/** `x-amz-checksum-crc32`, … */
export function checksumHeader(algorithm: ChecksumAlgorithm): string {
  return `x-amz-checksum-${algorithm.toLowerCase()}`;
}

function invalidValue(header: string): S3Error {
  return new S3Error('InvalidRequest', `Value for ${header} header is invalid.`);
}

/** A computed digest in the format of headers. */
export function base64Digest(digests: Digests, algorithm: ChecksumAlgorithm): string {
  return Buffer.from(digests[algorithm] ?? '', 'hex').toString('base64');
}

/** From base64. Throws S3Error InvalidRequest if it is not base64, or has the wrong length. */
export function readChecksum(algorithm: ChecksumAlgorithm, text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== DIGEST_BYTES[algorithm] || bytes.toString('base64') !== text) {
    throw invalidValue(checksumHeader(algorithm));
  }
  return bytes;
}

export interface HeaderChecksums {
  /** Null: none is mentioned. Without a value and not in a trailer, only the algorithm is named. */
  readonly algorithm: ChecksumAlgorithm | null;
  readonly value: Buffer | null;
  /** The value follows the body. */
  readonly inTrailer: boolean;
  readonly type: ChecksumType | null;
  /** All names in `x-amz-trailer`, lower case. */
  readonly declaredTrailers: readonly string[];
}

const NOT_CHECKSUMS = ['x-amz-checksum-algorithm', 'x-amz-checksum-type', 'x-amz-checksum-mode'];

function isChecksum(header: string): boolean {
  return header.startsWith('x-amz-checksum-') && !NOT_CHECKSUMS.includes(header);
}

/** The names of the headers that carry a checksum. */
export function checksumsIn(headers: IncomingHttpHeaders): string[] {
  return Object.keys(headers).filter(isChecksum);
}

function algorithmNamed(name: string, header: string): ChecksumAlgorithm {
  const algorithm = IN_HEADERS.find((each) => each === name.toUpperCase());
  if (algorithm === undefined) throw invalidValue(header);
  return algorithm;
}

function algorithmOf(header: string): ChecksumAlgorithm {
  const algorithm = IN_HEADERS.find((each) => checksumHeader(each) === header);
  if (algorithm !== undefined) return algorithm;
  throw new S3Error('InvalidRequest', `The algorithm of ${header} is not supported`);
}

function readType(text: string | undefined, algorithm: ChecksumAlgorithm | null): ChecksumType | null {
  if (text === undefined) return null;
  const type = text.toUpperCase();
  if (type !== 'COMPOSITE' && type !== 'FULL_OBJECT') throw invalidValue('x-amz-checksum-type');
  const impossible =
    type === 'COMPOSITE' ? algorithm === 'CRC64NVME' : algorithm === 'SHA1' || algorithm === 'SHA256';
  if (!impossible) return type;
  const message = `The ${type} checksum type cannot be used with the ${algorithm?.toLowerCase()} checksum algorithm.`;
  throw new S3Error('InvalidRequest', message);
}

/**
 * The checksums in the headers of a request: `x-amz-checksum-*`, `x-amz-trailer`, `x-amz-checksum-type`,
 * and the algorithm by name. Throws S3Error InvalidRequest for two different ones, unknown ones and malformed
 * values.
 */
export function headerChecksums(headers: IncomingHttpHeaders): HeaderChecksums {
  const text = (name: string) => headers[name]?.toString();
  const declaredTrailers = (text('x-amz-trailer') ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
  const inHeaders = checksumsIn(headers);
  const inTrailers = declaredTrailers.filter(isChecksum);
  const [carrier] = [...inHeaders, ...inTrailers];
  if (inHeaders.length + inTrailers.length > 1) {
    throw new S3Error(
      'InvalidRequest',
      'Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.',
    );
  }
  const named = ['x-amz-sdk-checksum-algorithm', 'x-amz-checksum-algorithm'].flatMap((header) => {
    const name = text(header);
    return name === undefined ? [] : [algorithmNamed(name, header)];
  });
  if (carrier === undefined && text('x-amz-sdk-checksum-algorithm') !== undefined) {
    throw new S3Error(
      'InvalidRequest',
      'x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.',
    );
  }
  const carried = carrier === undefined ? [] : [algorithmOf(carrier)];
  const [algorithm = null, ...others] = new Set([...carried, ...named]);
  if (others.length > 0) throw invalidValue('x-amz-sdk-checksum-algorithm');
  const [valueHeader] = inHeaders;
  const value =
    valueHeader === undefined || algorithm === null ? null : readChecksum(algorithm, text(valueHeader) ?? '');
  const type = readType(text('x-amz-checksum-type'), algorithm);
  return { algorithm, value, inTrailer: inTrailers.length > 0, type, declaredTrailers };
}
