/** A blob on a worker thread, sealed into the bytes of its parts. */
import { createHash, type Hash } from 'node:crypto';
import { detachBuffer } from '../../platform/buffers.ts';
import { blobPath, CHUNK_BYTES, chunkCount } from '../blob-frames/blob-format.ts';
import { type FrameCodec, frameCodec } from '../blob-frames/frame-codec.ts';
import { s3Fault } from '../s3-client/s3-fault.ts';
import type { S3Body } from '../s3-client/s3-objects.ts';
import { framesOfPart } from './parts.ts';

interface SealedPart {
  readonly pieces: Uint8Array[];
  /** S3 checks it, so that corruption in transit is detected. */
  readonly md5: Hash;
}

/** The folder of blobs below the prefix. */
export const BLOBS = 'blobs/';

/** The key of a blob, below the prefix: the path of its file. Throws for anything that is not a name. */
export function keyOf(name: string): string {
  return `${BLOBS}${blobPath(name)}`;
}

export class SealedBlob {
  readonly key: string;
  readonly #codec: FrameCodec;
  readonly #abort = new AbortController();
  readonly #parts = new Map<number, SealedPart>();
  readonly #requests = new Set<Promise<unknown>>();
  #frames = 0;
  #part = 0;
  #endOfPart = framesOfPart(0);

  constructor(name: string, dataKey: Uint8Array | null) {
    this.key = keyOf(name);
    this.#codec = frameCodec(name, dataKey);
  }

  /** Aborts when the blob is discarded. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Seals a copy of `plain`: whole chunks, except the last. */
  seal(plain: Uint8Array, last: boolean): void {
    const count = chunkCount(plain.length);
    for (let i = 0; i < count; i++) {
      const chunk = plain.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES);
      this.#sealOne(chunk, last && i === count - 1);
    }
  }

  #sealOne(chunk: Uint8Array, last: boolean): void {
    if (this.#frames === this.#endOfPart) this.#endOfPart += framesOfPart(++this.#part);
    const [body, tail] = this.#codec.seal(chunk, { index: this.#frames++, last });
    const frame = Buffer.allocUnsafeSlow(body.length + tail.length);
    // Not `set`, which copies byte by byte between differently aligned memory.
    Buffer.from(body.buffer, body.byteOffset, body.byteLength).copy(frame);
    frame.set(tail, body.length);
    detachBuffer(body);
    const part = this.#parts.get(this.#part) ?? { pieces: [], md5: createHash('md5') };
    this.#parts.set(this.#part, part);
    part.pieces.push(frame);
    part.md5.update(frame);
  }

  /** The bytes of a part, from 0, which are then forgotten here. */
  take(part: number): S3Body {
    const found = this.#parts.get(part);
    if (found === undefined) throw s3Fault('away', 'the part was lost');
    this.#parts.delete(part);
    return { parts: found.pieces, md5: found.md5.digest('base64') };
  }

  /** Keeps discard() waiting until the request is done. */
  async using<T>(request: Promise<T>): Promise<T> {
    this.#requests.add(request);
    try {
      return await request;
    } finally {
      this.#requests.delete(request);
    }
  }

  /** Aborts running requests. Resolves when their effects are visible. */
  async discard(): Promise<void> {
    this.#parts.clear();
    this.#abort.abort(s3Fault('away', 'the write was aborted'));
    await Promise.allSettled(this.#requests);
  }
}
