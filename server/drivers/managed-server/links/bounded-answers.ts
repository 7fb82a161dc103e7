/**
 * A bound on the rows that a server sends for a tenant's statement: rows that are not shown must not fill our
 * memory.
 */
import type { Duplex } from 'node:stream';
import { QueryFailed } from '../../../databases/engine.ts';

/** A single value can exceed the limit of rows by this much. */
export const MAX_OVERSHOOT_BYTES = 16 * 2 ** 20;
const TOO_LARGE = 'The rows are too large to be shown here: select fewer of them, or parts of their values';

/** Why a connection ended. */
export class SentTooMuch extends Error {}

/** Ends a connection that receives more than `maxBytes` from here on. `stream`: the innermost, behind TLS. */
export function endBeyond(stream: Duplex, maxBytes: number): void {
  endBeyondEach(stream, maxBytes);
}

/** Same as above, between any two calls of the returned function. */
export function endBeyondEach(stream: Duplex, maxBytes: number): () => void {
  let bytes = 0;
  stream.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > maxBytes) stream.destroy(new SentTooMuch('the server sent too much data'));
  });
  return () => {
    bytes = 0;
  };
}

/** `engineCode`: the engine's code for an exceeded limit. */
export function tooLarge(engineCode: string): QueryFailed {
  return new QueryFailed(TOO_LARGE, engineCode);
}
