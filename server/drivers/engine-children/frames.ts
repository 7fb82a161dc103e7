/**
 * The protocol between Cloudlet and the child that has a tenant's file open, over one socket. A frame is two
 * lengths (32 bit, little-endian), a head of JSON and a body of raw bytes.
 *
 *     main → child   {id, kind, …}             a call; `open` is the first
 *                    {id, kind: 'ack'}         the last part was passed on, send the next
 *                    {id, kind: 'cancel'}      the caller gave up
 *                    {id: 0, kind: 'ping'}     answered before any call; no answer means busy
 *     child → main   {id: 0, pong: true}
 *                    {id, begun: true}         a call with `tell` has begun
 *                    {id, part: true, …}       a part of an answer; the next follows the ack
 *                    {id, …}                   the answer, or its end
 *                    {id, error: {…}}          an error instead of it
 *                    {id: 0, counters: {…}}    unsolicited
 *                    {id: 0, damage}           unsolicited: a description of corrupt data
 */
import { detachBuffer } from '../../platform/buffers.ts';

export interface FrameHead {
  readonly id: number;
  readonly [member: string]: unknown;
}

const LENGTHS = 8;
/** Maximum frame size; more is an error of the other side. */
const MAX_FRAME = 128 * 2 ** 20;
export const NO_BODY: Uint8Array = new Uint8Array(0);

/** Encodes a frame in two pieces, so that the body is not copied. */
export function encodeFrame(head: FrameHead, body: Uint8Array = NO_BODY): [Uint8Array, Uint8Array] {
  const text = Buffer.from(JSON.stringify(head));
  const start = Buffer.allocUnsafe(LENGTHS + text.length);
  start.writeUInt32LE(text.length, 0);
  start.writeUInt32LE(body.length, 4);
  text.copy(start, LENGTHS);
  return [start, body];
}

/** Bodies of this size and above get separate memory, which their last user can free. */
const OWN_BYTES = 64 * 1024;

/** A frame with an incomplete body. */
interface Coming {
  readonly head: FrameHead;
  readonly body: Buffer;
  /** Bytes of the body received. */
  filled: number;
}

/** Reassembles frames. `push` throws for an invalid one: the other side is no longer trusted. */
export class FrameReader {
  readonly #onFrame: (head: FrameHead, body: Buffer) => void;
  #pieces: Buffer[] = [];
  #length = 0;
  /** Bytes needed before parsing is tried again. */
  #wanted = LENGTHS;
  #coming: Coming | null = null;

  constructor(onFrame: (head: FrameHead, body: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** Takes ownership of `piece`: its memory may be freed. */
  push(piece: Buffer): void {
    const rest = this.#coming === null ? piece : this.#fill(this.#coming, piece);
    if (rest === piece || rest.length > 0) this.#gather(rest);
    else detachBuffer(piece);
  }

  /** Copies the piece into the incomplete body; the rest belongs to the next frame. */
  #fill(coming: Coming, piece: Buffer): Buffer {
    const { head, body } = coming;
    const taken = piece.copy(body, coming.filled);
    coming.filled += taken;
    if (coming.filled === body.length) {
      this.#coming = null;
      this.#onFrame(head, body);
    }
    return piece.subarray(taken);
  }

  #gather(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#length < this.#wanted) return;
    let bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    for (;;) {
      const { bodyAt, size } = sizeOf(bytes);
      const isLarge = size - bodyAt >= OWN_BYTES;
      this.#wanted = isLarge ? bodyAt : size;
      if (bytes.length < this.#wanted) break;
      const head = readHead(bytes.toString('utf8', LENGTHS, bodyAt));
      if (isLarge) {
        // Without this, each large answer needs twice its memory, and the garbage collector frees
        // it late.
        this.#coming = { head, body: Buffer.allocUnsafeSlow(size - bodyAt), filled: 0 };
        bytes = this.#fill(this.#coming, bytes.subarray(bodyAt));
        if (this.#coming !== null) break;
      } else {
        this.#onFrame(head, bytes.subarray(bodyAt, size));
        bytes = bytes.subarray(size);
      }
    }
    this.#pieces = bytes.length === 0 ? [] : [bytes];
    this.#length = bytes.length;
    if (this.#coming !== null || bytes.length === 0) this.#wanted = LENGTHS;
  }
}

/** Start and end of the body; the number of bytes needed if the lengths are incomplete. */
function sizeOf(bytes: Buffer): { readonly bodyAt: number; readonly size: number } {
  if (bytes.length < LENGTHS) return { bodyAt: LENGTHS, size: LENGTHS };
  const bodyAt = LENGTHS + bytes.readUInt32LE(0);
  const size = bodyAt + bytes.readUInt32LE(4);
  if (size > MAX_FRAME) throw new Error(`a frame of ${size} bytes is too long`);
  return { bodyAt, size };
}

function readHead(text: string): FrameHead {
  const head: unknown = JSON.parse(text);
  if (typeof head !== 'object' || head === null || !('id' in head) || typeof head.id !== 'number')
    throw new Error('a frame has no id');
  return head as FrameHead;
}
