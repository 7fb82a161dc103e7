/** Reads a blob from S3: one thread has a connection that continues where the last slot ended. */
import type { BlobRef } from '../../storage/blobs/blobs.ts';
import { BlobFault } from '../blob-frames/blob-fault.ts';
import type { SlotRequest, SlotSource } from '../blob-frames/slot-reading.ts';
import type { S3Health } from './s3-health.ts';
import type { S3Thread, S3Threads } from './s3-target.ts';

/** Attempts, on other threads if one dies. */
const MAX_THREADS = 3;

let nextStream = 0;

/** Rejects with a BlobFault. */
export class S3Source implements SlotSource {
  readonly #ref: BlobRef;
  readonly #workers: S3Threads;
  readonly #health: S3Health;
  readonly #stream = nextStream++;
  #thread: S3Thread | null = null;

  constructor(ref: BlobRef, { workers, health }: { workers: S3Threads; health: S3Health }) {
    this.#ref = ref;
    this.#workers = workers;
    this.#health = health;
  }

  async read({ slot, firstChunk, chunks, endChunk, isSlow }: SlotRequest): Promise<number> {
    const { name, sizeBytes, dataKey } = this.#ref;
    const blob = { stream: this.#stream, name, sizeBytes, dataKey };
    // The bytes left in the connection of a slow sink would be lost.
    const untilChunk = isSlow ? firstChunk + chunks : endChunk;
    const where = { slot: slot.memory, firstChunk, chunks, untilChunk };
    for (let tried = 1; ; tried++) {
      const thread = this.#thread?.isAlive ? this.#thread : this.#workers.pick();
      this.#thread = thread;
      try {
        const { patience } = this.#health;
        const { goodChunks = 0 } = await thread.request({ op: 'read', ...blob, ...where, patience });
        return goodChunks;
      } catch (error) {
        const hasDied = error instanceof BlobFault && error.kind === 'thread';
        if (!hasDied || tried === MAX_THREADS) throw error;
      }
    }
  }

  /** Releases the connection until the sink continues. */
  rest(): void {
    this.close();
  }

  close(): void {
    this.#thread?.request({ op: 'close', stream: this.#stream }).catch(() => {});
  }
}
