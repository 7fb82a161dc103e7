/**
 * Takes the body of a request: removes the frames of aws-chunked, checks length, hashes and checksums while
 * the bytes pass, and holds the sender back while the receiver is busy.
 */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { HeldBody } from '../http/body.ts';
import { later, pump, type Sink } from './body-pump.ts';
import {
  type Checksum,
  type ChecksumAlgorithm,
  checksumHeader,
  type HeaderChecksums,
  headerChecksums,
  newChecksum,
  readChecksum,
} from './checksums.ts';
import { ChunkedBody } from './chunked-body.ts';
import type { Payload } from './payload.ts';
import { S3Error } from './s3-error.ts';
import type { VerifiedSignature } from './signature.ts';

export interface BodyReaderDeps {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly payload: Payload;
  /** null: an anonymous request. */
  readonly verified: VerifiedSignature | null;
  /** The memory of a body that is kept whole; it is shared out among accounts. */
  readonly held: Pick<HeldBody, 'add'>;
}

/** The bytes of a request, as its operation takes them: see BodyReader. */
export type Body = Pick<BodyReader, 'whole' | 'stream'>;

/** The checksum that the client sent with the bytes, which they have. */
export interface SentChecksum {
  readonly algorithm: ChecksumAlgorithm;
  /** Base64. */
  readonly value: string;
}

export class BodyReader {
  readonly #deps: BodyReaderDeps;
  #isTaken = false;

  constructor(deps: BodyReaderDeps) {
    this.#deps = deps;
  }

  /** True once the body was taken. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /**
   * The whole body of at most `maxBytes`. `isSummed`: a checksum in the headers is the body's. Throws S3Error
   * as stream() does, MaxMessageLengthExceeded, and AppError `overloaded`.
   */
  async whole(maxBytes: number, isSummed = true): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    await this.stream(
      (chunk) => {
        bytes += chunk.length;
        if (bytes > maxBytes) throw new S3Error('MaxMessageLengthExceeded');
        this.#deps.held.add(chunk.length);
        chunks.push(Buffer.from(chunk));
        return undefined;
      },
      isSummed ? undefined : 'none',
    );
    return Buffer.concat(chunks);
  }

  /**
   * Hands all bytes to `sink`. Resolves when they are known to be what the client meant to send; `fallback`
   * is computed where the client sent no checksum; `none`: the headers state none of the body. Throws
   * S3Error: MissingContentLength, IncompleteBody, BadDigest, InvalidDigest, XAmzContentSHA256Mismatch,
   * SignatureDoesNotMatch, and what `sink` throws.
   */
  async stream(sink: Sink, fallback?: ChecksumAlgorithm | 'none'): Promise<SentChecksum | null> {
    this.#isTaken = true;
    const { request, response, payload } = this.#deps;
    const length = this.#lengthOf();
    const checks = new BodyChecks({ headers: request.headers, payload }, fallback);
    const frames = this.#frames(checks.sent);
    if (request.headers.expect !== undefined) response.writeContinue();
    let bytes = 0;
    await pump(request, (piece) => {
      const parts = frames?.push(piece) ?? [piece];
      let waiting: Promise<void> | undefined;
      for (const part of parts) {
        bytes += part.length;
        checks.update(part);
        waiting = waiting === undefined ? sink(part) : later(waiting, part, sink);
      }
      return waiting;
    });
    const trailers = frames?.end().trailers ?? new Map<string, string>();
    if (length !== null && bytes !== length) throw new S3Error('IncompleteBody');
    return checks.end(trailers);
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
  readonly #digests: { md5?: Checksum; sha256?: ReturnType<typeof createHash>; checksum?: Checksum } = {};

  constructor({ headers, payload }: StatedBody, fallback: ChecksumAlgorithm | 'none' | undefined) {
    this.sent = fallback === 'none' ? NO_CHECKSUM : headerChecksums(headers);
    this.#payload = payload;
    const md5 = headers['content-md5'];
    this.#md5 = typeof md5 === 'string' ? assertMd5(md5) : undefined;
    this.#algorithm = this.sent.algorithm ?? (fallback === 'none' ? undefined : fallback);
    if (this.#md5 !== undefined) this.#digests.md5 = newChecksum('MD5');
    if (payload.kind === 'hash') this.#digests.sha256 = createHash('sha256');
    if (this.#algorithm !== undefined) this.#digests.checksum = newChecksum(this.#algorithm);
  }

  update(chunk: Uint8Array): void {
    const { md5, sha256, checksum } = this.#digests;
    md5?.update(chunk);
    sha256?.update(chunk);
    checksum?.update(chunk);
  }

  end(trailers: ReadonlyMap<string, string>): SentChecksum | null {
    const { md5, sha256, checksum } = this.#digests;
    if (md5 && md5.digest().toString('base64') !== this.#md5) throw new S3Error('BadDigest');
    if (sha256 && this.#payload.kind === 'hash' && sha256.digest('hex') !== this.#payload.sha256) {
      throw new S3Error('XAmzContentSHA256Mismatch');
    }
    if (checksum === undefined || this.#algorithm === undefined) return null;
    const value = checksum.digest().toString('base64');
    const inTrailer = this.sent.inTrailer ? trailers.get(checksumHeader(this.#algorithm)) : undefined;
    const claimed = inTrailer === undefined ? this.sent.value : readChecksum(this.#algorithm, inTrailer);
    if (claimed && claimed.toString('base64') !== value) {
      throw new S3Error(
        'BadDigest',
        `The ${this.#algorithm} you specified did not match the calculated checksum.`,
      );
    }
    return { algorithm: this.#algorithm, value };
  }
}

function assertMd5(text: string): string {
  if (/^[A-Za-z0-9+/]{22}==$/.test(text)) return text;
  throw new S3Error('InvalidDigest');
}
