/**
 * The event loop's side of a read: threads fill slots with verified chunks, and the sink receives
 * them in order. A fast sink gets large slots, with the next ones read ahead; a slow one gets small
 * ones, without read-ahead.
 */
import { AppError } from '../../platform/errors.ts';
import type { BlobRange, BlobReader, BlobRef } from '../../storage/blobs/blobs.ts';
import { damaged } from './blob-fault.ts';
import { CHUNK_BYTES, chunkCount } from './blob-format.ts';
import { LARGE_SLOT_BYTES, type Slot, type SlotPool, SMALL_SLOT_BYTES } from './slot-pool.ts';

/** A slot to fill. */
export interface SlotRequest {
  readonly slot: Slot;
  readonly firstChunk: number;
  readonly chunks: number;
  /** One past the last chunk to read. */
  readonly endChunk: number;
  /** The sink is slow: nothing after this slot is requested soon. */
  readonly isSlow: boolean;
}

interface Part extends Pick<SlotRequest, 'slot' | 'firstChunk' | 'chunks'> {
  /** Number of intact chunks. */
  readonly reply: Promise<number>;
}

/** The origin of the chunks. */
export interface SlotSource {
  /** Resolves with the number of intact chunks, from the first. Rejects with the errors of reading. */
  read(request: SlotRequest): Promise<number>;
  /** Called when the sink is slow. */
  rest?(): void;
  /** Called at the end; requests may still be running. */
  close(): void;
}

export interface SlotReadingDeps extends BlobReader {
  readonly ref: BlobRef;
  readonly range: BlobRange;
  readonly slots: SlotPool;
  readonly source: SlotSource;
  /** A sink is slow if a slot takes longer, ms. */
  readonly stallMs: number;
  /** Slots read ahead for a fast sink. */
  readonly readAhead: number;
  /** Whether a sink counts as fast before its speed is known. */
  readonly isPrompt: boolean;
  /** A short read uses one large slot. */
  readonly isWholeAtOnce: boolean;
}

/**
 * False: there are no bytes. An empty blob still has a frame, which is verified. Throws
 * `range_not_satisfiable`.
 */
export function hasBytes({ sizeBytes }: BlobRef, { start, end }: BlobRange): boolean {
  if (!(start >= 0 && start <= end && end <= sizeBytes)) {
    throw new AppError('range_not_satisfiable', `Bytes ${start}–${end} of ${sizeBytes} do not exist.`);
  }
  return start < end || sizeBytes === 0;
}

export class SlotReading {
  readonly #deps: SlotReadingDeps;
  readonly #endChunk: number;
  #nextChunk: number;
  /** Requested, but not yet passed on, in order. */
  #ahead: Part[] = [];
  #slotBytes = SMALL_SLOT_BYTES;
  #isPrompt: boolean;
  #isSlow = false;
  #interrupt: ((reason: unknown) => void) | null = null;

  constructor(deps: SlotReadingDeps) {
    const { ref, range, isPrompt, isWholeAtOnce } = deps;
    this.#deps = deps;
    this.#isPrompt = isPrompt;
    this.#nextChunk = Math.floor(range.start / CHUNK_BYTES);
    this.#endChunk = Math.min(chunkCount(ref.sizeBytes), Math.max(1, Math.ceil(range.end / CHUNK_BYTES)));
    const isShort = (this.#endChunk - this.#nextChunk) * CHUNK_BYTES <= LARGE_SLOT_BYTES;
    if (isWholeAtOnce && isShort) this.#slotBytes = LARGE_SLOT_BYTES;
  }

  /**
   * Resolves when the sink has accepted everything. Rejects with the source's error, the sink's,
   * the signal's reason, or the fault `damaged`.
   */
  async run(): Promise<void> {
    const { signal, source } = this.#deps;
    signal?.throwIfAborted();
    const onAbort = () => this.#interrupt?.(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (let part = this.#next(); part !== undefined; part = this.#next()) await this.#deliver(part);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#dropAhead();
      source.close();
    }
  }

  #next(): Part | undefined {
    if (this.#ahead.length === 0 && this.#nextChunk < this.#endChunk) this.#ahead.push(this.#request());
    return this.#ahead.shift();
  }

  #readAhead(): void {
    const { readAhead } = this.#deps;
    while (this.#isPrompt && this.#ahead.length < readAhead && this.#nextChunk < this.#endChunk) {
      this.#ahead.push(this.#request());
    }
  }

  #request(): Part {
    const { slots, source } = this.#deps;
    const slot = slots.take(this.#slotBytes);
    const firstChunk = this.#nextChunk;
    const endChunk = this.#endChunk;
    const chunks = Math.min(slot.bytes.length / CHUNK_BYTES, endChunk - firstChunk);
    this.#nextChunk += chunks;
    const reply = source.read({ slot, firstChunk, chunks, endChunk, isSlow: this.#isSlow });
    reply.catch(() => {});
    return { slot, firstChunk, chunks, reply };
  }

  async #deliver(part: Part): Promise<void> {
    const { ref, range, sink, slots } = this.#deps;
    let inUse: unknown = part.reply;
    try {
      const goodChunks = await this.#unlessAborted(part.reply);
      inUse = undefined;
      this.#readAhead();
      const base = part.firstChunk * CHUNK_BYTES;
      const from = Math.max(range.start, base);
      const to = Math.min(range.end, base + goodChunks * CHUNK_BYTES);
      if (from < to) {
        inUse = sink(part.slot.bytes.subarray(from - base, to - base));
        if (inUse instanceof Promise) await this.#drained(inUse, part.slot);
        else this.#speedUp();
        inUse = undefined;
      }
      if (goodChunks < part.chunks) throw damaged(`blob ${ref.name}, chunk ${part.firstChunk + goodChunks}`);
    } finally {
      // After an abort the sink, or the thread, may still use the memory.
      if (inUse === undefined) slots.give(part.slot);
      else slots.forfeit(part.slot);
    }
  }

  async #drained(taken: Promise<void>, slot: Slot): Promise<void> {
    let hasStalled = false;
    const timer = setTimeout(() => {
      hasStalled = true;
      this.#deps.slots.rest(slot);
      this.#slowDown();
    }, this.#deps.stallMs);
    try {
      await this.#unlessAborted(taken);
    } finally {
      clearTimeout(timer);
    }
    if (!hasStalled) this.#speedUp();
  }

  #speedUp(): void {
    this.#isPrompt = true;
    this.#isSlow = false;
    this.#slotBytes = Math.min(LARGE_SLOT_BYTES, this.#slotBytes * 2);
  }

  /** Drops the read-ahead, which is read again when the sink resumes. */
  #slowDown(): void {
    this.#isPrompt = false;
    this.#isSlow = true;
    this.#slotBytes = SMALL_SLOT_BYTES;
    this.#nextChunk = this.#ahead[0]?.firstChunk ?? this.#nextChunk;
    this.#dropAhead();
    this.#deps.source.rest?.();
  }

  #dropAhead(): void {
    for (const { slot, reply } of this.#ahead) {
      const give = () => this.#deps.slots.give(slot);
      reply.then(give, give);
    }
    this.#ahead = [];
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
