/** Reads a body that is needed as a whole. What it takes is counted before it comes. */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { detachBuffer } from '../platform/detach-buffer.ts';
import { AppError } from '../platform/errors.ts';
import { type BodyRoom, COUNTED_BODY_BYTES, type HeldBody } from './body-room.ts';

const LINGER_MS = 5000;

declare module 'fastify' {
  interface FastifyRequest {
    /** Given back when the response is over; null: nothing was read. */
    heldBody: HeldBody | null;
  }
}

export interface BodyBounds {
  readonly room: BodyRoom;
  readonly accountId: number;
  readonly maxBytes: number;
  /** The error for a body that is larger. */
  readonly tooLarge: () => AppError;
}

/** Throws `overloaded` when there is no room for it, what `tooLarge` gives, `bad_http` when it is cut off. */
export async function readBody(request: FastifyRequest, bounds: BodyBounds): Promise<Buffer> {
  const { room, accountId, maxBytes, tooLarge } = bounds;
  const { raw } = request;
  const held = room.hold(accountId);
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
 * Drops the rest of a refused body for a while: a client that is still sending when its connection closes
 * sees a broken pipe instead of the response.
 */
export function dropRest(raw: IncomingMessage): void {
  const cut = setTimeout(() => raw.socket.destroy(), LINGER_MS).unref();
  raw.once('close', () => clearTimeout(cut)).once('end', () => clearTimeout(cut));
  raw.resume();
}

/** `take` must not keep the piece. Rejects with what it threw; the rest is left to the caller then. */
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
      reject(new AppError('bad_http', 'The client went away before its body was read', { cause }));
    };
    const leave = () => {
      raw.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost);
    };
    if (raw.destroyed && !raw.complete) return onLost();
    raw.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost);
  });
}

/** A body of a length that is known, and counted. */
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

/** A small body, or one that comes in chunks: it is counted as it comes. */
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
