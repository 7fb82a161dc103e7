/**
 * Receives the body of a request: removes the frames of aws-chunked, checks length, hashes and
 * checksums, and pauses the sender while the receiver is busy.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import {
  base64Digest,
  type ChecksumAlgorithm,
  ChunkedBody,
  checksumHeader,
  type DigestName,
  type Digests,
  digestsOf,
  type HeaderChecksums,
  headerChecksums,
  type Payload,
  readChecksum,
  S3Error,
  type VerifiedSignature,
} from '../../../libs/s3-wire/index.ts';
import type { HeldBody } from '../../http/bodies/body-memory.ts';
import { type BodyPump, pumpBody } from '../../platform/concurrency.ts';
import type { ReceivedBytes, Upload } from '../../storage/uploads/upload.ts';

export interface BodyReaderDeps {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly payload: Payload;
  /** null: an anonymous request. */
  readonly verified: VerifiedSignature | null;
  /** Begins to reserve memory for a whole body; accounts share it. */
  readonly hold: () => Pick<HeldBody, 'add'>;
}

/** The body of a request for its operation: see BodyReader. */
export type Body = Pick<BodyReader, 'whole' | 'into'>;

/** The checksum that the client sent, which matches the bytes. */
export interface SentChecksum {
  readonly algorithm: ChecksumAlgorithm;
  /** Base64. */
  readonly value: string;
}

/** The receiver of the bytes of an object or a part. */
export type Receiver = Pick<Upload, 'digest' | 'hashPieces' | 'write' | 'finish'>;

/** Maximum bytes of one request; larger objects are uploaded in parts. */
export const MAX_BODY_BYTES = 5 * 2 ** 30;

export interface ReceivedBody {
  readonly received: ReceivedBytes;
  readonly sent: SentChecksum | null;
}

export class BodyReader {
  readonly #deps: BodyReaderDeps;
  #isTaken = false;

  constructor(deps: BodyReaderDeps) {
    this.#deps = deps;
  }

  /** True once the body was read. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /**
   * The whole body of at most `maxBytes`. `isSummed`: a checksum in the headers is the body's.
   * Throws the S3Errors of into(), MaxMessageLengthExceeded, and AppError `overloaded`.
   */
  async whole(maxBytes: number, isSummed = true): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const checks = new BodyChecks(this.#stated, isSummed ? undefined : 'none');
    const held = this.#deps.hold();
    const trailers = await this.#stream(this.#frames(checks.sent), (chunk) => {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new S3Error('MaxMessageLengthExceeded');
      held.add(chunk.length);
      chunks.push(Buffer.from(chunk));
      return undefined;
    });
    const body = Buffer.concat(chunks);
    checks.assertMet(digestsOf(body, checks.names), trailers);
    return body;
  }

  /**
   * Passes all bytes to an upload, and ends it once they are verified against the request.
   * `fallback` is computed if the client sent no checksum. Throws S3Error: MissingContentLength,
   * EntityTooLarge (before anything is read if the length is announced), IncompleteBody, BadDigest,
   * InvalidDigest, XAmzContentSHA256Mismatch, SignatureDoesNotMatch, and the errors of the upload.
   */
  async into(upload: Receiver, fallback: ChecksumAlgorithm): Promise<ReceivedBody> {
    const { 'content-length': length, 'transfer-encoding': coding } = this.#deps.request.headers;
    if (length === undefined && coding === undefined) throw new S3Error('MissingContentLength');
    assertSize(this.#lengthOf() ?? 0);
    const checks = new BodyChecks(this.#stated, fallback);
    upload.digest(checks.names);
    const frames = this.#frames(checks.sent);
    // Worker threads hash the signed chunks if possible, so that other requests need not wait.
    const isShared = frames?.isSigned && upload.hashPieces((hashes) => frames.tookHashes(hashes));
    if (isShared) frames.leaveHashing();
    let bytes = 0;
    const trailers = await this.#stream(frames, (chunk, ends) => {
      bytes += chunk.length;
      assertSize(bytes);
      return upload.write(chunk, ends);
    });
    const received = await upload.finish();
    frames?.assertVerified(true);
    return { received, sent: checks.assertMet(received.digests, trailers) };
  }

  get #stated(): StatedBody {
    return { headers: this.#deps.request.headers, payload: this.#deps.payload };
  }

  /**
   * Passes all bytes to `take`; `ends`: a chunk hashed by worker threads ends with them. Resolves
   * with the trailers. Throws the errors of into(), except for digests.
   */
  async #stream(
    frames: ChunkedBody | undefined,
    take: (chunk: Uint8Array, ends: boolean) => Promise<void> | undefined,
  ): Promise<ReadonlyMap<string, string>> {
    this.#isTaken = true;
    const { request, response } = this.#deps;
    const length = this.#lengthOf();
    if (request.headers.expect !== undefined) response.writeContinue();
    let bytes = 0;
    await pump(request, (piece) => {
      const parts = frames?.push(piece) ?? [piece];
      let waiting: Promise<void> | undefined;
      for (const part of parts) {
        bytes += part.length;
        const ends = frames?.ends(part) ?? false;
        const sink: Sink = (chunk) => take(chunk, ends);
        waiting = waiting === undefined ? sink(part) : later(waiting, part, sink);
      }
      frames?.assertVerified(false);
      return waiting;
    });
    const trailers = frames?.end().trailers ?? new Map<string, string>();
    if (length !== null && bytes !== length) throw new S3Error('IncompleteBody');
    return trailers;
  }

  /** Length of the bytes without frames; null: not announced. */
  #lengthOf(): number | null {
    const { headers } = this.#deps.request;
    const isChunked = this.#deps.payload.kind === 'chunked';
    const text = headers[isChunked ? 'x-amz-decoded-content-length' : 'content-length'];
    if (typeof text === 'string') {
      if (/^\d{1,15}$/.test(text)) return Number(text);
      throw new S3Error('InvalidArgument', 'The length of the body is not a number');
    }
    if (isChunked && headers['transfer-encoding'] !== undefined) return null;
    if (headers['transfer-encoding'] === undefined && !isChunked) return 0;
    throw new S3Error('MissingContentLength');
  }

  #frames(sent: HeaderChecksums): ChunkedBody | undefined {
    const { payload, verified } = this.#deps;
    if (payload.kind !== 'chunked') return undefined;
    const { signed, trailer } = payload;
    const { declaredTrailers } = sent;
    return new ChunkedBody({ signed, trailer, decodedLength: this.#lengthOf(), declaredTrailers, verified });
  }
}

function assertSize(bytes: number): void {
  if (bytes <= MAX_BODY_BYTES) return;
  throw new S3Error('EntityTooLarge', undefined, {
    fields: { ProposedSize: String(bytes), MaxSizeAllowed: String(MAX_BODY_BYTES) },
  });
}

const NO_CHECKSUM: HeaderChecksums = {
  algorithm: null,
  value: null,
  inTrailer: false,
  type: null,
  declaredTrailers: [],
};

/** The headers that describe a body. */
interface StatedBody {
  readonly headers: IncomingHttpHeaders;
  readonly payload: Payload;
}

/** The digests that a body must have. */
export class BodyChecks {
  readonly sent: HeaderChecksums;
  readonly #payload: Payload;
  readonly #md5: string | undefined;
  readonly #algorithm: ChecksumAlgorithm | undefined;

  constructor({ headers, payload }: StatedBody, fallback: ChecksumAlgorithm | 'none' | undefined) {
    this.sent = fallback === 'none' ? NO_CHECKSUM : headerChecksums(headers);
    this.#payload = payload;
    const md5 = headers['content-md5'];
    this.#md5 = typeof md5 === 'string' ? assertMd5(md5) : undefined;
    this.#algorithm = this.sent.algorithm ?? (fallback === 'none' ? undefined : fallback);
  }

  /** The digests that are needed. */
  get names(): readonly DigestName[] {
    const names = new Set<DigestName>();
    if (this.#md5 !== undefined) names.add('MD5');
    if (this.#payload.kind === 'hash') names.add('SHA256');
    if (this.#algorithm !== undefined) names.add(this.#algorithm);
    return [...names];
  }

  /** Throws S3Error if the digests differ from those in headers and trailers. */
  assertMet(digests: Digests, trailers: ReadonlyMap<string, string>): SentChecksum | null {
    const base64 = (name: DigestName) => base64Digest(digests, name);
    if (this.#md5 !== undefined && base64('MD5') !== this.#md5) throw new S3Error('BadDigest');
    if (this.#payload.kind === 'hash' && digests.SHA256 !== this.#payload.sha256) {
      throw new S3Error('XAmzContentSHA256Mismatch');
    }
    const algorithm = this.#algorithm;
    if (algorithm === undefined) return null;
    const value = base64(algorithm);
    const inTrailer = this.sent.inTrailer ? trailers.get(checksumHeader(algorithm)) : undefined;
    const claimed = inTrailer === undefined ? this.sent.value : readChecksum(algorithm, inTrailer);
    if (claimed && claimed.toString('base64') !== value) {
      throw new S3Error('BadDigest', `The ${algorithm} you specified did not match the calculated checksum.`);
    }
    return { algorithm, value };
  }
}

function assertMd5(text: string): string {
  if (/^[A-Za-z0-9+/]{22}==$/.test(text)) return text;
  throw new S3Error('InvalidDigest');
}

/** A promise delays the next chunk until the memory of this one is free. */
export type Sink = (chunk: Uint8Array) => Promise<void> | undefined;

/** Bytes after which other requests get a turn. */
const TURN_BYTES = 1024 * 1024;

/** `chunk` is copied: its memory is freed when this returns. */
async function later(before: Promise<void>, chunk: Uint8Array, sink: Sink): Promise<void> {
  const copy = Buffer.from(chunk);
  await before;
  await sink(copy);
}

/** Passes the pieces of a body to `take`, one at a time. Throws IncompleteBody. */
export function pump(request: IncomingMessage, take: BodyPump['take']): Promise<void> {
  return pumpBody(request, { take, turnBytes: TURN_BYTES, lost: () => new S3Error('IncompleteBody') });
}
