/**
 * Request bodies: checks their media type and reads them as a whole, within a deadline. Their memory is
 * reserved as they arrive (body-memory.ts).
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { detachBuffer } from '../../platform/buffers.ts';
import { AppError } from '../../platform/errors.ts';
import { JSON_MAX_BYTES, parseJson } from '../../platform/json/json.ts';
import { BLOCK_BYTES, type BodyMemory, type HeldBody } from './body-memory.ts';

/** `unsupported_media_type` for a body of this type where JSON is expected. */
export function notJson(type: string | undefined): AppError {
  const form = type === 'application/x-www-form-urlencoded' ? " (curl's own choice with -d)" : '';
  const detail = `The body must be application/json, ${butIs(type)}${form}`;
  const hint =
    "Send JSON and the header Content-Type: application/json; curl: -H 'Content-Type: application/json'";
  return new AppError('unsupported_media_type', detail, { hint });
}

/** The end of the message: the type received. */
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

/** Up to this many bytes are not counted: their connections need as much memory anyway. */
const COUNTED_BODY_BYTES = 16 * 1024;

/** Time limit for any body, and the minimum average speed of larger ones. */
const DEADLINE_MS = 30_000;
const LEAST_BYTES_PER_SECOND = 100_000;

/** A refused body is read on while this much arrives in each interval, and no longer than in all. */
const LINGER_MS = 5000;
const LINGER_BYTES = 32 * 1024;
const MOST_LINGER_MS = 5 * 60_000;

declare module 'fastify' {
  interface FastifyRequest {
    /** Released when the response ends; null: no body was read, or its bytes are not counted. */
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
 * Throws `overloaded` if the memory is needed for others, the error of `tooLarge`,
 * `request_timeout` if the body takes too long, `bad_http` if it is truncated.
 */
export async function readBody(request: FastifyRequest, bounds: BodyBounds): Promise<Buffer> {
  const { memory, accountId, maxBytes, tooLarge } = bounds;
  const { raw } = request;
  const announced = Number(raw.headers['content-length'] ?? Number.NaN);
  if (announced > maxBytes) throw tooLarge();
  const arriving = Promise.withResolvers<never>();
  // The body may be aborted before anyone awaits it.
  arriving.promise.catch(() => {});
  const held = announced <= COUNTED_BODY_BYTES ? null : memory.hold(accountId, arriving.reject);
  request.heldBody = held;
  if (announced > COUNTED_BODY_BYTES) held?.expect(announced);
  const size = Number.isNaN(announced) ? maxBytes : announced;
  const allowedMs = DEADLINE_MS + (size / LEAST_BYTES_PER_SECOND) * 1000;
  const timer = setTimeout(() => arriving.reject(tooSlow(allowedMs)), allowedMs).unref();
  const pieces = new Pieces(held);
  try {
    const take = (piece: Buffer) => {
      if (pieces.bytes + piece.length > maxBytes) throw tooLarge();
      pieces.add(piece);
    };
    await eachPiece(raw, { take, cut: arriving.promise });
    held?.arrived();
    return pieces.whole();
  } catch (error) {
    pieces.forget();
    held?.release();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function tooSlow(allowedMs: number): AppError {
  const seconds = Math.round(allowedMs / 1000);
  return new AppError('request_timeout', `The body did not arrive within ${seconds} s`, {
    hint: `The limit is ${DEADLINE_MS / 1000} s, plus a second per 100 KB of the body`,
  });
}

/**
 * Discards the rest of a refused body while it arrives: many clients send all of it before they read, and
 * would see a broken pipe instead of the response.
 */
export function dropRest(raw: IncomingMessage): void {
  if (raw.readableEnded) return;
  let seen = raw.socket.bytesRead;
  let intervals = 0;
  const timer = setInterval(() => {
    const { bytesRead } = raw.socket;
    intervals++;
    if (bytesRead - seen < LINGER_BYTES || intervals * LINGER_MS >= MOST_LINGER_MS) raw.destroy();
    seen = bytesRead;
  }, LINGER_MS).unref();
  const over = () => clearInterval(timer);
  raw.once('close', over).once('end', over);
  raw.resume();
}

/**
 * Ends the connection of a refused client that asked for `100 Continue`. It may send its body all the same,
 * or nothing, and the next request could not be told from the body.
 */
export function dropExpected(raw: IncomingMessage, response: ServerResponse): void {
  response.setHeader('connection', 'close');
  const { socket } = raw;
  // Node would close both halves at once, and the client's system might throw away the response.
  socket.destroySoon = () => {
    socket.end();
    raw.once('end', () => socket.destroy());
    dropRest(raw);
  };
}

interface Reading {
  /** Must not keep a reference to the chunk. */
  readonly take: (piece: Buffer) => void;
  /** Rejects to end the reading. */
  readonly cut: Promise<never>;
}

/** Rejects with the error of `take` or `cut`; the rest is then left to the caller. */
function eachPiece(raw: IncomingMessage, { take, cut }: Reading): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const onData = (piece: Buffer) => {
      try {
        take(piece);
      } catch (error) {
        stop(error);
      }
    };
    const stop = (error: unknown) => {
      if (isOver) return;
      leave();
      raw.pause();
      reject(error);
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
      isOver = true;
      raw.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost);
    };
    cut.catch(stop);
    if (raw.destroyed && !raw.complete) return onLost();
    raw.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost);
  });
}

/** Received bytes, in blocks that are reserved before allocation. */
class Pieces {
  readonly #held: HeldBody | null;
  #blocks: Buffer[] = [];
  /** Used bytes of the last block. */
  #used = 0;
  /** Length of all blocks together. */
  #size = 0;
  bytes = 0;

  /** null: none of them are counted. */
  constructor(held: HeldBody | null) {
    this.#held = held;
  }

  add(piece: Buffer): void {
    for (let at = 0; at < piece.length; ) {
      const last = this.#blocks.at(-1);
      if (last === undefined || this.#used === last.length) {
        this.#makeBlock(piece.length - at);
        continue;
      }
      const copied = piece.copy(last, this.#used, at);
      this.#used += copied;
      at += copied;
    }
    this.bytes += piece.length;
    detachBuffer(piece);
  }

  /** Up to COUNTED_BODY_BYTES are not counted: they are in one block of that size, or in two. */
  #makeBlock(needed: number): void {
    const count = this.#blocks.length;
    const small = count === 0 ? needed : COUNTED_BODY_BYTES - this.#size;
    const isSmall = count < 2 && this.#size + needed <= COUNTED_BODY_BYTES;
    if (!isSmall) this.#held?.add(BLOCK_BYTES);
    this.#append(isSmall ? small : BLOCK_BYTES);
  }

  #append(bytes: number): void {
    this.#blocks.push(Buffer.allocUnsafeSlow(bytes));
    this.#size += bytes;
    this.#used = 0;
  }

  whole(): Buffer {
    const whole = Buffer.concat(this.#blocks, this.bytes);
    this.forget();
    return whole;
  }

  forget(): void {
    for (const block of this.#blocks) detachBuffer(block);
    this.#blocks = [];
    this.#used = 0;
  }
}

/** Makes `app` accept JSON and refuse other bodies. Forms: see multipart.ts. */
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
  // An empty body of any type is accepted: `curl -X POST -d ''` sends one.
  app.addContentTypeParser('*', ({ headers }, _payload, done) =>
    done(announcesBody(headers) ? notJson(headers['content-type']) : null),
  );
}

function tooLarge(maxBytes: number): AppError {
  return new AppError('payload_too_large', `The body is larger than ${Math.floor(maxBytes / 1024)} KiB`);
}
