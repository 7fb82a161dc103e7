/** Splits a client's bytes into messages, one at a time: the rest waits in the socket. */
import type { Socket } from 'node:net';
import { Malformed } from '../mongo/index.ts';
import { HEADER_BYTES, MAX_MESSAGE_BYTES } from './wire-messages.ts';

/** Larger messages are read in turns, because together they would not fit into memory. */
const LARGE_BYTES = 1024 * 1024;
/** Limit for clients before log-in. */
const MAX_UNAUTHENTICATED_BYTES = 32 * 1024;
/** Timeout for the rest of a message. */
const RECEIVE_MS = 60_000;
const UNAUTHENTICATED_RECEIVE_MS = 5000;

export interface ReaderOptions {
  readonly isKnown: () => boolean;
  /** Resolves when a large message may be received, with a function to call when it was handled. */
  readonly takeTurn: () => Promise<() => void>;
}

/** Ends with the client. Throws Malformed; destroys the socket on exit. */
export async function* readMessages(socket: Socket, options: ReaderOptions): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let length = 0;
  let wanted = HEADER_BYTES;
  let endTurn: (() => void) | null = null;
  let timer: NodeJS.Timeout | undefined;
  const watch = () =>
    setTimeout(() => socket.destroy(), options.isKnown() ? RECEIVE_MS : UNAUTHENTICATED_RECEIVE_MS);
  try {
    for await (const piece of socket) {
      timer ??= watch();
      pieces.push(piece);
      length += piece.length;
      while (length >= wanted) {
        const bytes = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, length);
        wanted = sizeOf(bytes, options);
        if (wanted > LARGE_BYTES) endTurn ??= await options.takeTurn();
        pieces = [bytes];
        if (length < wanted) break;
        clearTimeout(timer);
        timer = undefined;
        yield bytes.subarray(0, wanted);
        endTurn?.();
        endTurn = null;
        pieces = [bytes.subarray(wanted)];
        length -= wanted;
        wanted = HEADER_BYTES;
        if (length > 0) timer = watch();
      }
    }
  } finally {
    clearTimeout(timer);
    endTurn?.();
  }
}

function sizeOf(bytes: Buffer, { isKnown }: ReaderOptions): number {
  const size = bytes.readInt32LE(0);
  const most = isKnown() ? MAX_MESSAGE_BYTES : MAX_UNAUTHENTICATED_BYTES;
  if (size < HEADER_BYTES || size > most) throw new Malformed(`invalid message length: ${size} bytes`);
  return size;
}
