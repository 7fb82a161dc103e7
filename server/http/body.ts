/**
 * Request bodies: checks their media type and reads them as a whole. Their memory is reserved before they are
 * read, with limits in total and per account.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { detachBuffer } from '../platform/buffers.ts';
import { AppError } from '../platform/errors.ts';
import { JSON_MAX_BYTES, parseJson } from '../platform/json.ts';

/** Throws `unsupported_media_type` for a form where JSON is expected. Call before the body is read. */
export function assertNoForm({ 'content-type': type }: IncomingHttpHeaders): void {
  if (/^multipart\//i.test(type ?? '')) throw notJson(type);
}

/** `unsupported_media_type` for a body of this type where JSON is expected. */
function notJson(type: string | undefined): AppError {
  const form = type === 'application/x-www-form-urlencoded' ? " (curl's own choice with -d)" : '';
  const detail = `The body must be application/json, ${butIs(type)}${form}`;
  const hint =
    "Send JSON and the header Content-Type: application/json; curl: -H 'Content-Type: application/json'";
  return new AppError('unsupported_media_type', detail, { hint });
}

/** The end of a refusal: what the type is instead. */
export function butIs(type: string | undefined): string {
  return type === undefined ? 'but the request has no Content-Type' : `not ${type.slice(0, 100)}`;
}

/** Throws `unsupported_media_type` for a compressed body. */
function assertNotEncoded({ 'content-encoding': encoding }: IncomingHttpHeaders): void {
  if (encoding === undefined || encoding === 'identity') return;
  throw new AppError(
    'unsupported_media_type',
    `The body must not be compressed, but is ${encoding.slice(0, 100)}`,
  );
}

/** True if the headers announce a body. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Smaller bodies are not counted: their connections take as much memory. */
const COUNTED_BODY_BYTES = 16 * 1024;

/** The body of one request. */
export interface HeldBody {
  /** Reserves `bytes` more, before they are read. Throws `overloaded`. */
  add(bytes: number): void;
  /** Call when the request is over. Idempotent. */
  release(): void;
}

export class BodyMemory {
  readonly #maxBytes: number;
  #bytes = 0;
  readonly #byAccount = new Map<number, number>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Nothing is reserved yet. */
  hold(accountId: number): HeldBody {
    let held = 0;
    let isOver = false;
    return {
      add: (bytes) => {
        if (isOver) throw new AppError('bad_http', 'The client disconnected before its body was read');
        this.#take(accountId, bytes);
        held += bytes;
      },
      release: () => {
        if (!isOver && held > 0) this.#take(accountId, -held);
        isOver = true;
      },
    };
  }

  #take(accountId: number, bytes: number): void {
    const own = this.#byAccount.get(accountId) ?? 0;
    if (bytes > 0 && !this.#fits(own, bytes)) {
      throw new AppError('overloaded', 'Too many large requests are in progress', {
        hint: 'Send fewer requests at the same time, or smaller ones',
        retryAfterSeconds: 1,
      });
    }
    this.#bytes += bytes;
    if (own + bytes === 0) this.#byAccount.delete(accountId);
    else this.#byAccount.set(accountId, own + bytes);
  }

  /**
   * An account may hold at most as much as is then left for the others, so that a new caller finds memory.
   */
  #fits(own: number, bytes: number): boolean {
    const left = this.#maxBytes - this.#bytes - bytes;
    return left >= 0 && (own === 0 || own + bytes <= left);
  }
}

const LINGER_MS = 5000;

declare module 'fastify' {
  interface FastifyRequest {
    /** Released when the response has ended; null: no body was read. */
    heldBody: HeldBody | null;
  }
}

export interface BodyBounds {
  readonly memory: BodyMemory;
  readonly accountId: number;
  readonly maxBytes: number;
  /** The error for a larger body. */
  readonly tooLarge: () => AppError;
}

/**
 * Throws `overloaded` if the memory budget is used up, what `tooLarge` returns, `bad_http` if the body is
 * truncated.
 */
export async function readBody(request: FastifyRequest, bounds: BodyBounds): Promise<Buffer> {
  const { memory, accountId, maxBytes, tooLarge } = bounds;
  const { raw } = request;
  const held = memory.hold(accountId);
  request.heldBody = held;
  const announced = Number(raw.headers['content-length'] ?? Number.NaN);
  if (announced > maxBytes) throw tooLarge();
  const isCounted = announced > COUNTED_BODY_BYTES;
  if (isCounted) held.add(announced);
  const pieces = isCounted ? new WholePieces(announced) : new UnknownPieces(held);
  try {
    await eachPiece(raw, (piece) => {
      if (pieces.bytes + piece.length > maxBytes) throw tooLarge();
      pieces.add(piece);
    });
    return pieces.whole();
  } catch (error) {
    pieces.forget();
    throw error;
  }
}

/**
 * Discards the rest of a refused body for a while: a client still sending when its connection closes would
 * see a broken pipe instead of the response.
 */
export function dropRest(raw: IncomingMessage): void {
  const cut = setTimeout(() => raw.socket.destroy(), LINGER_MS).unref();
  raw.once('close', () => clearTimeout(cut)).once('end', () => clearTimeout(cut));
  raw.resume();
}

/** `take` must not keep the piece. Rejects with what it threw; the rest is then left to the caller. */
function eachPiece(raw: IncomingMessage, take: (piece: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const onData = (piece: Buffer) => {
      try {
        take(piece);
      } catch (error) {
        leave();
        raw.pause();
        reject(error);
      }
    };
    const onEnd = () => {
      leave();
      resolve();
    };
    const onLost = (cause?: Error) => {
      leave();
      reject(new AppError('bad_http', 'The client disconnected before its body was read', { cause }));
    };
    const leave = () => {
      raw.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost);
    };
    if (raw.destroyed && !raw.complete) return onLost();
    raw.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost);
  });
}

/** A body of known length, reserved in advance. */
class WholePieces {
  readonly #whole: Buffer;
  bytes = 0;

  constructor(length: number) {
    this.#whole = Buffer.allocUnsafeSlow(length);
  }

  add(piece: Buffer): void {
    this.bytes += piece.copy(this.#whole, this.bytes);
    detachBuffer(piece);
  }

  whole(): Buffer {
    return this.#whole;
  }

  forget(): void {
    detachBuffer(this.#whole);
  }
}

/** A small or chunked body: reserved as it arrives. */
class UnknownPieces {
  readonly #held: HeldBody;
  #pieces: Buffer[] = [];
  #counted = 0;
  bytes = 0;

  constructor(held: HeldBody) {
    this.#held = held;
  }

  add(piece: Buffer): void {
    this.bytes += piece.length;
    if (this.bytes > COUNTED_BODY_BYTES) {
      this.#held.add(this.bytes - this.#counted);
      this.#counted = this.bytes;
    }
    this.#pieces.push(piece);
  }

  whole(): Buffer {
    const whole = Buffer.concat(this.#pieces, this.bytes);
    this.forget();
    return whole;
  }

  forget(): void {
    for (const piece of this.#pieces) detachBuffer(piece);
    this.#pieces = [];
  }
}

/** Makes `app` read JSON, and refuse other bodies. Forms: see multipart.ts. */
export function acceptBodies(app: FastifyInstance, memory: BodyMemory): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    assertNotEncoded(request.headers);
    const { accountId } = request.principal;
    const maxBytes = request.routeOptions.bodyLimit ?? JSON_MAX_BYTES;
    const bytes = await readBody(request, {
      memory,
      accountId,
      maxBytes,
      tooLarge: () => tooLarge(maxBytes),
    });
    const body = parseJson(bytes);
    detachBuffer(bytes);
    return body;
  });
  // Without a body every type is accepted: `curl -X POST -d ''` sends one.
  app.addContentTypeParser('*', ({ headers }, _payload, done) =>
    done(announcesBody(headers) ? notJson(headers['content-type']) : null),
  );
}

function tooLarge(maxBytes: number): AppError {
  return new AppError('payload_too_large', `The body is larger than ${Math.floor(maxBytes / 1024)} KiB`);
}
