/** The event loop's side of one read: one thread reads and verifies, the sink takes what is good. */
import type { BlobRange, BlobRef, BlobSink } from '../../storage/blobs.ts';
import { BlobFault, damaged } from '../blob-frames/blob-fault.ts';
import { CHUNK_BYTES, chunkCount } from '../blob-frames/blob-format.ts';
import { LARGE_SLOT_BYTES, type Slot, type SlotPool, SMALL_SLOT_BYTES } from '../blob-frames/slot-pool.ts';
import type { S3Health } from './s3-health.ts';
import type { S3Thread, S3Threads } from './s3-target.ts';

/** A sink that takes longer over a slot lets go of the connection to S3 until it goes on, ms. */
const STALL_MS = 500;
/** With other threads, when one dies over a read. */
const MAX_THREADS = 3;

interface Part {
  readonly slot: Slot;
  readonly firstChunk: number;
  readonly chunks: number;
  /** How many of them are good. */
  readonly reply: Promise<number>;
}

export interface S3ReadingDeps {
  readonly ref: BlobRef;
  readonly range: BlobRange;
  readonly sink: BlobSink;
  readonly signal: AbortSignal | undefined;
  readonly workers: S3Threads;
  readonly slots: SlotPool;
  readonly health: S3Health;
}

let nextStream = 0;

export class S3Reading {
  readonly #deps: S3ReadingDeps;
  readonly #stream = nextStream++;
  readonly #endChunk: number;
  #nextChunk: number;
  #thread: S3Thread | null = null;
  /** Being read while the sink has the slot before. */
  #ahead: Part | null = null;
  #slotBytes = SMALL_SLOT_BYTES;
  #isSlow = false;
  #interrupt: ((reason: unknown) => void) | null = null;

  constructor(deps: S3ReadingDeps) {
    const { ref, range } = deps;
    this.#deps = deps;
    this.#nextChunk = Math.floor(range.start / CHUNK_BYTES);
    this.#endChunk = Math.min(chunkCount(ref.sizeBytes), Math.max(1, Math.ceil(range.end / CHUNK_BYTES)));
  }

  /**
   * Resolves when the sink has taken everything. Rejects with a BlobFault, the sink's error or the reason.
   */
  async run(): Promise<void> {
    const { signal } = this.#deps;
    signal?.throwIfAborted();
    const onAbort = () => this.#interrupt?.(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (let part = this.#next(); part !== null; part = this.#next()) await this.#deliver(part);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#dropAhead();
      this.#close();
    }
  }

  #next(): Part | null {
    const part = this.#ahead ?? (this.#nextChunk < this.#endChunk ? this.#request() : null);
    this.#ahead = null;
    return part;
  }

  #request(): Part {
    const { slots } = this.#deps;
    const slot = slots.take(this.#slotBytes);
    const firstChunk = this.#nextChunk;
    const chunks = Math.min(slot.bytes.length / CHUNK_BYTES, this.#endChunk - firstChunk);
    this.#nextChunk += chunks;
    // Bytes that a slow sink leaves in the connection would be lost with it.
    const untilChunk = this.#isSlow ? firstChunk + chunks : this.#endChunk;
    const reply = this.#ask({ slot, firstChunk, chunks, untilChunk });
    reply.catch(() => {});
    return { slot, firstChunk, chunks, reply };
  }

  async #ask(part: { slot: Slot; firstChunk: number; chunks: number; untilChunk: number }): Promise<number> {
    const { ref, workers, health } = this.#deps;
    const { name, sizeBytes, dataKey } = ref;
    const { slot, firstChunk, chunks, untilChunk } = part;
    for (let tried = 1; ; tried++) {
      const thread = this.#thread?.isAlive ? this.#thread : workers.pick();
      this.#thread = thread;
      try {
        const where = { slot: slot.memory, firstChunk, chunks, untilChunk };
        const blob = { stream: this.#stream, name, sizeBytes, dataKey };
        const { goodChunks = 0 } = await thread.request({
          op: 'read',
          ...blob,
          ...where,
          patience: health.patience,
        });
        return goodChunks;
      } catch (error) {
        const hasDied = error instanceof BlobFault && error.kind === 'thread';
        if (!hasDied || tried === MAX_THREADS) throw error;
      }
    }
  }

  async #deliver(part: Part): Promise<void> {
    const { ref, range, sink, slots } = this.#deps;
    let inUse: unknown = part.reply;
    try {
      const goodChunks = await this.#unlessAborted(part.reply);
      inUse = undefined;
      if (!this.#isSlow && this.#nextChunk < this.#endChunk) this.#ahead = this.#request();
      const base = part.firstChunk * CHUNK_BYTES;
      const from = Math.max(range.start, base);
      const to = Math.min(range.end, base + goodChunks * CHUNK_BYTES);
      if (from < to) {
        inUse = sink(part.slot.bytes.subarray(from - base, to - base));
        if (inUse instanceof Promise) await this.#drained(inUse);
        inUse = undefined;
      }
      if (goodChunks < part.chunks) throw damaged(`blob ${ref.name}, chunk ${part.firstChunk + goodChunks}`);
    } finally {
      // After an abort the sink, or the thread, may still be at the memory.
      if (inUse === undefined) slots.give(part.slot);
      else slots.forfeit(part.slot);
    }
  }

  async #drained(taken: Promise<void>): Promise<void> {
    let hasStalled = false;
    const timer = setTimeout(() => {
      hasStalled = true;
      this.#slowDown();
    }, STALL_MS);
    try {
      await this.#unlessAborted(taken);
    } finally {
      clearTimeout(timer);
    }
    if (hasStalled) return;
    this.#isSlow = false;
    this.#slotBytes = Math.min(LARGE_SLOT_BYTES, this.#slotBytes * 2);
  }

  #slowDown(): void {
    this.#isSlow = true;
    this.#slotBytes = SMALL_SLOT_BYTES;
    if (this.#ahead !== null) this.#nextChunk = this.#ahead.firstChunk;
    this.#dropAhead();
    this.#close();
  }

  #dropAhead(): void {
    if (this.#ahead === null) return;
    const { slot, reply } = this.#ahead;
    const give = () => this.#deps.slots.give(slot);
    reply.then(give, give);
    this.#ahead = null;
  }

  #close(): void {
    this.#thread?.request({ op: 'close', stream: this.#stream }).catch(() => {});
  }

  /** `promise`, or the rejection with the signal's reason if that comes first. */
  #unlessAborted<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      if (this.#deps.signal?.aborted) reject(this.#deps.signal.reason);
      promise.then(resolve, reject);
    });
  }
}
