/** Hands on the bytes of a request as they come, and holds the sender back while their receiver is busy. */
import type { IncomingMessage } from 'node:http';
import { detachBuffer } from '../platform/buffers.ts';
import { endOfTick } from '../platform/tick.ts';
import { S3Error } from './s3-error.ts';

/** A promise asks to wait before the next chunk, whose memory is then free. */
export type Sink = (chunk: Uint8Array) => Promise<void> | undefined;

/** Bytes after which other requests get a turn. */
const TURN_BYTES = 1024 * 1024;

/** `chunk` is copied: its memory is freed when this returns. */
export async function later(before: Promise<void>, chunk: Uint8Array, sink: Sink): Promise<void> {
  const copy = Buffer.from(chunk);
  await before;
  await sink(copy);
}

/** Hands the pieces of a body to `take`, one at a time. Rejects when the client goes. */
export function pump(
  request: IncomingMessage,
  take: (piece: Buffer) => Promise<void> | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let taken = 0;
    const onData = (piece: Buffer) => {
      let waiting: Promise<void> | undefined;
      try {
        waiting = take(piece);
      } catch (error) {
        fail(error);
        return;
      }
      taken += piece.length;
      detachBuffer(piece);
      if (waiting === undefined && taken >= TURN_BYTES) waiting = endOfTick();
      if (waiting === undefined) return;
      taken = 0;
      request.pause();
      waiting.then(() => request.resume(), fail);
    };
    const onEnd = () => {
      leave();
      resolve();
    };
    const onLost = () => fail(new S3Error('IncompleteBody'));
    const leave = () => {
      request.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost);
    };
    const fail = (error: unknown) => {
      leave();
      request.pause();
      reject(error);
    };
    if (request.destroyed) return onLost();
    if (request.readableEnded) return resolve();
    request.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost);
  });
}
