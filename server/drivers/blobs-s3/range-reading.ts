/** A blob being read on a worker thread: verified chunks from one or more responses of S3. */
import type { IncomingMessage } from 'node:http';
import { CHUNK_BYTES, chunkCount, chunkLength, fileLength, frameOffset } from '../blob-frames/blob-format.ts';
import { type FrameCodec, frameCodec } from '../blob-frames/frame-codec.ts';
import type { S3Counters } from '../s3-client/s3-counters.ts';
import { faultOfConnection, isS3Fault, s3Fault } from '../s3-client/s3-fault.ts';
import type { S3Objects } from '../s3-client/s3-objects.ts';
import type { ReadRequest } from './s3-messages.ts';

export interface RangeReadingDeps {
  readonly objects: S3Objects;
  readonly counters: S3Counters;
  readonly key: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly dataKey: Uint8Array | null;
}

/** Maximum consecutive aborted responses without an intact chunk. */
const MAX_BREAKS = 3;

export class RangeReading {
  readonly #deps: RangeReadingDeps;
  readonly #codec: FrameCodec;
  #answer: IncomingMessage | null = null;
  #pieces: AsyncIterator<Buffer> | null = null;
  #held: Buffer = Buffer.alloc(0);
  /** The next chunk of the open response, and the end. */
  #nextChunk = -1;
  #untilChunk = -1;
  #closed = false;

  constructor(deps: RangeReadingDeps) {
    this.#deps = deps;
    this.#codec = frameCodec(deps.name, deps.dataKey);
  }

  /**
   * Resolves to the number of intact chunks in the slot. A damaged or missing chunk is requested
   * once more before it counts, because bytes may be corrupted in transit too. Rejects with a
   * BlobFault; `missing` if there is no such object.
   */
  async read({ slot, firstChunk, chunks, untilChunk, patience }: ReadRequest): Promise<number> {
    let good = 0;
    let wasBad = false;
    let breaks = 0;
    while (good < chunks) {
      const index = firstChunk + good;
      try {
        await this.#seek(index, { untilChunk, patience });
        const body = new Uint8Array(slot, good * CHUNK_BYTES, chunkLength(this.#deps.sizeBytes, index));
        if (!(await this.#readOne(body, index))) throw s3Fault('range', 'a chunk is damaged');
        good++;
        wasBad = false;
        breaks = 0;
      } catch (error) {
        const brokeOff = this.#answer !== null;
        this.#drop();
        if (this.#closed) throw error;
        if (isS3Fault(error, 'range', 'missing')) {
          if (wasBad) {
            if (isS3Fault(error, 'missing')) throw error;
            return good;
          }
          wasBad = true;
        } else if (!brokeOff || !isS3Fault(error, 'away') || ++breaks >= MAX_BREAKS) throw error;
      }
    }
    if (this.#nextChunk === this.#untilChunk) this.#drain();
    return good;
  }

  /** Ends the open response. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  /** Makes `index` the next chunk. */
  async #seek(
    index: number,
    { untilChunk, patience }: Pick<ReadRequest, 'untilChunk' | 'patience'>,
  ): Promise<void> {
    if (this.#answer !== null && this.#nextChunk === index) return;
    this.#drop();
    const { objects, key, sizeBytes } = this.#deps;
    const { tailBytes } = this.#codec;
    const totalBytes = fileLength(sizeBytes, tailBytes);
    const end = untilChunk === chunkCount(sizeBytes) ? totalBytes : frameOffset(untilChunk, tailBytes);
    const range = { start: frameOffset(index, tailBytes), end, totalBytes };
    const answer = await objects.range(key, range, patience);
    if (this.#closed) {
      answer.destroy();
      throw s3Fault('away', 'the read has ended');
    }
    // Errors after the last reader has left do not matter.
    answer.on('error', () => {});
    this.#answer = answer;
    this.#pieces = answer[Symbol.asyncIterator]();
    this.#nextChunk = index;
    this.#untilChunk = untilChunk;
  }

  async #readOne(body: Uint8Array, index: number): Promise<boolean> {
    const tail = Buffer.allocUnsafe(this.#codec.tailBytes);
    await this.#fill(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    await this.#fill(tail);
    this.#nextChunk = index + 1;
    return this.#codec.open(body, tail, { index, last: index === chunkCount(this.#deps.sizeBytes) - 1 });
  }

  async #fill(target: Buffer): Promise<void> {
    for (let filled = 0; filled < target.length; ) {
      if (this.#held.length === 0) this.#held = await this.#nextPiece();
      const copied = this.#held.copy(target, filled);
      filled += copied;
      this.#held = this.#held.subarray(copied);
    }
  }

  async #nextPiece(): Promise<Buffer> {
    const pieces = this.#pieces;
    if (pieces === null) throw s3Fault('away', 'the read has ended');
    let next: IteratorResult<Buffer>;
    try {
      next = await pieces.next();
    } catch (error) {
      throw faultOfConnection(error);
    }
    if (next.done) throw s3Fault('away', 'the response ended early');
    this.#deps.counters.add('receivedBytes', next.value.length);
    return next.value;
  }

  /** All was read: the connection can be reused. */
  #drain(): void {
    const pieces = this.#pieces;
    this.#forget();
    void pieces?.next().catch(() => {});
  }

  #drop(): void {
    const answer = this.#answer;
    this.#forget();
    answer?.destroy();
  }

  #forget(): void {
    this.#answer = null;
    this.#pieces = null;
    this.#held = Buffer.alloc(0);
    this.#nextChunk = -1;
    this.#untilChunk = -1;
  }
}
