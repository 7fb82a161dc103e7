/**
 * Removes the frames of `aws-chunked` bodies, and checks their signatures.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
 */
import { createHash, createHmac, type Hash, timingSafeEqual } from 'node:crypto';
import { S3Error } from './s3-error.ts';
import type { VerifiedSignature } from './signature.ts';

export interface ChunkedBodyOptions {
  /** Each chunk and the trailers carry a signature. */
  readonly signed: boolean;
  /** Trailers may follow; without, they are refused. */
  readonly trailer: boolean;
  /** `x-amz-decoded-content-length`; null if missing. */
  readonly decodedLength: number | null;
  /** The names in `x-amz-trailer`, in any case: exactly these must follow. */
  readonly declaredTrailers: readonly string[];
  /** Null only for an anonymous request, whose chunks are not signed. */
  readonly verified: VerifiedSignature | null;
}

const MAX_LINE_BYTES = 16 * 1024;
/** Minimum length of signed chunks, except the last. */
const MIN_CHUNK_BYTES = 8 * 1024;
const EMPTY_SHA256 = createHash('sha256').digest('hex');
const LF = 10;

/** A signature and its predecessor in the chain. */
interface Link {
  readonly before: string;
  readonly claimed: string;
}

type State = 'size' | 'data' | 'data-end' | 'trailers' | 'done';

function incomplete(why: string): S3Error {
  return new S3Error('IncompleteBody', `The request body is not complete, or not well-formed: ${why}`);
}

function badTrailer(why: string): S3Error {
  return new S3Error('MalformedTrailerError', `The trailers of the request are not as declared: ${why}`);
}

/**
 * Synchronous: accepts bytes split anywhere, and returns their content. Once a call has thrown,
 * discard everything returned: a chunk's bytes are returned before its signature is verified.
 */
export class ChunkedBody {
  readonly #options: ChunkedBodyOptions;
  readonly #declared: ReadonlySet<string>;
  readonly #trailers = new Map<string, string>();
  #state: State = 'size';
  /** The current line, and the length of the trailer section so far. */
  #line: Buffer[] = [];
  #lineBytes = 0;
  #trailerBytes = 0;
  /** The current chunk's. */
  #sizeBytes = 0;
  #leftBytes = 0;
  #claimed = '';
  #hash: Hash | undefined;
  #chunks = 0;
  #decodedBytes = 0;
  /** The predecessor of the next signature. */
  #before: string;
  #signedTrailers = '';
  #trailersVerified = false;
  #endedPlainly = false;
  #hashesHere = true;
  /** Signatures of chunks that worker threads are still hashing. */
  readonly #unverified: Link[] = [];
  readonly #lastParts = new WeakSet<Uint8Array>();
  #isForged = false;

  constructor(options: ChunkedBodyOptions) {
    if (options.signed && options.verified === null) throw new S3Error('AccessDenied');
    this.#options = options;
    this.#declared = new Set(options.declaredTrailers.map((name) => name.toLowerCase()));
    this.#before = options.verified?.seed ?? '';
  }

  /**
   * The bytes without frames, as views of `chunk`. Throws S3Error: IncompleteBody (malformed frames, or too
   * many bytes), SignatureDoesNotMatch, InvalidChunkSizeError, MalformedTrailerError.
   */
  push(chunk: Uint8Array): Uint8Array[] {
    const decoded: Uint8Array[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (this.#state === 'done') throw incomplete('bytes follow its end');
      if (this.#state === 'data') {
        const part = chunk.subarray(at, at + this.#leftBytes);
        this.#take(part);
        decoded.push(part);
        at += part.length;
      } else {
        at = this.#readLine(chunk, at);
      }
    }
    return decoded;
  }

  /** Ends the body. Trailers by lower-case names. Throws S3Error like push(). */
  end(): { readonly trailers: ReadonlyMap<string, string> } {
    if (this.#state !== 'done') throw incomplete('it ends too early');
    return { trailers: this.#trailers };
  }

  get isSigned(): boolean {
    return this.#options.signed;
  }

  /** Worker threads hash the chunks and pass the results to tookHashes(). Call before the first byte. */
  leaveHashing(): void {
    this.#hashesHere = false;
  }

  /** Whether a chunk ends with that part, which push() returned. Call once. */
  ends(part: Uint8Array): boolean {
    return this.#lastParts.delete(part);
  }

  /** SHA-256 of the next chunks, hex. Never throws: see assertVerified(). */
  tookHashes(hashes: readonly string[]): void {
    for (const hash of hashes) {
      const waiting = this.#unverified.shift();
      this.#isForged ||= waiting === undefined || !this.#isSignature({ ...waiting, hash });
    }
  }

  /**
   * Throws S3Error SignatureDoesNotMatch for a chunk with another signature; at the end, also for
   * one that was not hashed.
   */
  assertVerified(isEnd: boolean): void {
    if (this.#isForged || (isEnd && this.#unverified.length > 0)) throw new S3Error('SignatureDoesNotMatch');
  }

  #isSignature({ hash, ...link }: Link & { readonly hash: string }): boolean {
    return this.#isSigned('AWS4-HMAC-SHA256-PAYLOAD', `${EMPTY_SHA256}\n${hash}`, link);
  }

  #take(part: Uint8Array): void {
    this.#hash?.update(part);
    this.#leftBytes -= part.length;
    this.#decodedBytes += part.length;
    if (this.#leftBytes > 0) return;
    if (!this.#hashesHere && this.#options.signed) {
      this.#lastParts.add(part);
      this.#unverified.push({ before: this.#before, claimed: this.#claimed });
      this.#before = this.#claimed;
    }
    this.#verifyChunk();
    this.#state = 'data-end';
  }

  /** Continues the current line, and handles it when complete. Returns where reading continues. */
  #readLine(chunk: Uint8Array, at: number): number {
    const feed = chunk.indexOf(LF, at);
    const end = feed < 0 ? chunk.length : feed + 1;
    this.#lineBytes += end - at;
    if (this.#lineBytes > MAX_LINE_BYTES) throw incomplete('a line is too long');
    // A copy: the caller may use the memory again.
    this.#line.push(Buffer.from(chunk.subarray(at, end)));
    if (feed >= 0) this.#onLine();
    return end;
  }

  #onLine(): void {
    const text = Buffer.concat(this.#line).toString('latin1').slice(0, -1);
    const lineBytes = this.#lineBytes;
    this.#line = [];
    this.#lineBytes = 0;
    const isPlain = !text.endsWith('\r');
    const line = isPlain ? text : text.slice(0, -1);
    if (this.#state === 'trailers') {
      this.#onTrailer(line, isPlain, lineBytes);
      return;
    }
    if (isPlain) throw incomplete('a line does not end in CR LF');
    if (this.#state === 'size') this.#onSize(line);
    else if (line === '') this.#state = 'size';
    else throw incomplete('a chunk is longer than its stated size');
  }

  #onSize(line: string): void {
    const [, digits = '', extension = ''] = /^([0-9A-Fa-f]{1,12})[ \t]*(?:;(.*))?$/.exec(line) ?? [];
    if (digits === '') throw incomplete('the size of a chunk');
    const sizeBytes = Number.parseInt(digits, 16);
    const { signed, decodedLength } = this.#options;
    if (signed) {
      const [, claimed] = /^\s*chunk-signature=([0-9a-f]{64})\s*$/.exec(extension) ?? [];
      if (claimed === undefined) throw incomplete('a chunk has no signature');
      this.#claimed = claimed;
      this.#checkSize(sizeBytes);
      if (this.#hashesHere || sizeBytes === 0) this.#hash = createHash('sha256');
    }
    const total = this.#decodedBytes + sizeBytes;
    const isWrong = sizeBytes === 0 ? total !== decodedLength : total > (decodedLength ?? 0);
    if (decodedLength !== null && isWrong)
      throw incomplete('not the length given in x-amz-decoded-content-length');
    this.#sizeBytes = sizeBytes;
    this.#leftBytes = sizeBytes;
    this.#chunks += 1;
    this.#state = 'data';
    if (sizeBytes > 0) return;
    this.#verifyChunk();
    this.#state = 'trailers';
  }

  /** Checks the size of the previous chunk. */
  #checkSize(nextBytes: number): void {
    if (this.#chunks === 0 || nextBytes === 0 || this.#sizeBytes >= MIN_CHUNK_BYTES) return;
    throw new S3Error('InvalidChunkSizeError', undefined, {
      fields: { Chunk: String(this.#chunks), BadChunkSize: String(this.#sizeBytes) },
    });
  }

  #verifyChunk(): void {
    const hash = this.#hash?.digest('hex');
    this.#hash = undefined;
    if (hash !== undefined)
      this.#verify('AWS4-HMAC-SHA256-PAYLOAD', `${EMPTY_SHA256}\n${hash}`, this.#claimed);
  }

  #verify(kind: string, hashes: string, claimed: string): void {
    if (!this.#isSigned(kind, hashes, { before: this.#before, claimed })) {
      throw new S3Error('SignatureDoesNotMatch');
    }
    this.#before = claimed;
  }

  #isSigned(kind: string, hashes: string, { before, claimed }: Link): boolean {
    const { verified } = this.#options;
    if (verified === null) throw new S3Error('AccessDenied');
    const { signingKey, dateTime, scope } = verified;
    const text = [kind, dateTime, scope, before, hashes].join('\n');
    const expected = createHmac('sha256', signingKey).update(text).digest();
    const given = Buffer.from(claimed, 'hex');
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  #onTrailer(line: string, isPlain: boolean, lineBytes: number): void {
    this.#trailerBytes += lineBytes;
    if (this.#trailerBytes > MAX_LINE_BYTES) throw incomplete('the trailers are too long');
    const followsPlain = this.#endedPlainly;
    this.#endedPlainly = isPlain && line !== '';
    if (line === '') {
      if (isPlain) throw incomplete('a line does not end in CR LF');
      // Amazon's documentation and some clients end each trailer with LF, and have CR LF before the
      // signature.
      if (followsPlain && this.#options.signed && !this.#trailersVerified) return;
      this.#finish();
      return;
    }
    if (!this.#options.trailer) throw badTrailer('none was announced');
    if (isPlain && !this.#options.signed) throw incomplete('a line does not end in CR LF');
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === '') throw badTrailer('a line without a name');
    if (this.#trailersVerified) throw badTrailer('one follows their signature');
    if (this.#options.signed && name === 'x-amz-trailer-signature') {
      const hash = createHash('sha256').update(this.#signedTrailers, 'latin1').digest('hex');
      this.#verify('AWS4-HMAC-SHA256-TRAILER', hash, value);
      this.#trailersVerified = true;
      return;
    }
    if (!this.#declared.has(name)) throw badTrailer(`${name} was not declared`);
    if (this.#trailers.has(name)) throw badTrailer(`${name} comes twice`);
    this.#trailers.set(name, value);
    this.#signedTrailers += `${name}:${value}\n`;
  }

  #finish(): void {
    const { signed, trailer } = this.#options;
    for (const name of trailer ? this.#declared : []) {
      if (!this.#trailers.has(name)) throw badTrailer(`${name} is missing`);
    }
    if (signed && trailer && !this.#trailersVerified) throw badTrailer('their signature is missing');
    this.#state = 'done';
  }
}
