/**
 * The event loop's side of one read: it asks threads for verified chunks and hands them to the sink in
 * order.
 */
import type { BlobRange, BlobRef, BlobSink } from '../../storage/blobs.ts';
import { asFault, damaged } from '../blob-frames/blob-fault.ts';
import { CHUNK_BYTES, chunkCount } from '../blob-frames/blob-format.ts';
import { LARGE_SLOT_BYTES, type Slot, type SlotPool, SMALL_SLOT_BYTES } from '../blob-frames/slot-pool.ts';
import type { BlobReply, ReadRequest } from './blob-messages.ts';
import { faultError } from './disk-fault.ts';
import type { FileThread, FileThreads } from './file-threads.ts';

/** A sink that takes longer over a slot gets small ones, and nothing is read ahead for it. */
const STALL_MS = 100;
/** Slots read ahead for a prompt sink; being on different threads they are verified in parallel. */
const READ_AHEAD = 2;
/** With other threads, when one dies over a read. */
const MAX_TRIES = 3;

interface Part {
  readonly slot: Slot;
  readonly firstChunk: number;
  readonly chunks: number;
  /** How many of them are good. */
  readonly reply: Promise<number>;
}

export interface BlobReadingDeps {
  readonly ref: BlobRef;
  readonly range: BlobRange;
  readonly sink: BlobSink;
  readonly signal: AbortSignal | undefined;
  readonly workers: FileThreads;
  readonly slots: SlotPool;
}

export class BlobReading {
  readonly #deps: BlobReadingDeps;
  readonly #endChunk: number;
  #nextChunk: number;
  /** Asked for, not yet handed over, in order. */
  #ahead: Part[] = [];
  /** Every request that may still use the file. */
  readonly #outstanding = new Set<Promise<unknown>>();
  #opener: FileThread | null = null;
  #fd: number | null = null;
  #slotBytes = SMALL_SLOT_BYTES;
  #prompt = false;
  #interrupt: ((reason: unknown) => void) | null = null;

  constructor(deps: BlobReadingDeps) {
    const { ref, range } = deps;
    this.#deps = deps;
    this.#nextChunk = Math.floor(range.start / CHUNK_BYTES);
    this.#endChunk = Math.min(chunkCount(ref.sizeBytes), Math.max(1, Math.ceil(range.end / CHUNK_BYTES)));
    // A short read is requested as a whole: one message, and the thread closes the file.
    if ((this.#endChunk - this.#nextChunk) * CHUNK_BYTES <= LARGE_SLOT_BYTES) {
      this.#slotBytes = LARGE_SLOT_BYTES;
    }
  }

  /**
   * Resolves when the sink has taken everything. Rejects with an AppError, the sink's error or the signal's
   * reason.
   */
  async run(): Promise<void> {
    const { signal } = this.#deps;
    signal?.throwIfAborted();
    const onAbort = () => this.#interrupt?.(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (let part = this.#next(); part !== undefined; part = this.#next()) await this.#deliver(part);
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#release();
    }
  }

  #next(): Part | undefined {
    if (this.#ahead.length === 0 && this.#nextChunk < this.#endChunk) this.#ahead.push(this.#request());
    return this.#ahead.shift();
  }

  #readAhead(): void {
    while (this.#prompt && this.#ahead.length < READ_AHEAD && this.#nextChunk < this.#endChunk) {
      this.#ahead.push(this.#request());
    }
  }

  #request(): Part {
    const { ref, workers, slots } = this.#deps;
    const thread = workers.pick();
    const slot = slots.take(this.#slotBytes);
    const firstChunk = this.#nextChunk;
    const chunks = Math.min(slot.bytes.length / CHUNK_BYTES, this.#endChunk - firstChunk);
    this.#nextChunk += chunks;
    // Its number may be another file's by now.
    const isLost = this.#opener !== null && !this.#opener.isAlive;
    const fd = isLost ? null : this.#fd;
    const close = isLost || (fd === null && this.#nextChunk === this.#endChunk);
    if (fd === null && !close) this.#opener = thread;
    const { name, sizeBytes, dataKey } = ref;
    const request = {
      op: 'read',
      name,
      sizeBytes,
      dataKey,
      fd,
      close,
      slot: slot.memory,
      firstChunk,
      chunks,
    } as const;
    const reply = this.#ask(thread, request).then(
      (answer) => {
        this.#fd ??= answer.fd ?? null;
        return answer.goodChunks ?? 0;
      },
      (error) => {
        throw faultError(asFault(error, 'read'));
      },
    );
    const forget = () => this.#outstanding.delete(reply);
    this.#outstanding.add(reply);
    reply.then(forget, forget);
    return { slot, firstChunk, chunks, reply };
  }

  /**
   * A thread that dies takes along the file that it opened, before anybody hears of it: what was not read
   * well through another's descriptor does not count, and is read anew.
   */
  async #ask(thread: FileThread, request: ReadRequest): Promise<BlobReply> {
    const isOwn = request.fd === null;
    try {
      const answer = await thread.request(request);
      if (isOwn || answer.goodChunks === request.chunks) return answer;
    } catch (error) {
      if (isOwn && thread.isAlive) throw error;
    }
    return this.#askAnew(request);
  }

  async #askAnew(request: ReadRequest): Promise<BlobReply> {
    for (let tries = 1; ; tries++) {
      const thread = this.#deps.workers.pick();
      try {
        return await thread.request({ ...request, fd: null, close: true });
      } catch (error) {
        if (thread.isAlive || tries === MAX_TRIES) throw error;
      }
    }
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
        if (inUse instanceof Promise) await this.#drained(inUse);
        else this.#speedUp();
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
    let stalled = false;
    const timer = setTimeout(() => {
      stalled = true;
      this.#slowDown();
    }, STALL_MS);
    try {
      await this.#unlessAborted(taken);
    } finally {
      clearTimeout(timer);
    }
    if (!stalled) this.#speedUp();
  }

  #speedUp(): void {
    this.#prompt = true;
    this.#slotBytes = Math.min(LARGE_SLOT_BYTES, this.#slotBytes * 2);
  }

  /** Drops the read-ahead, which is read again when the sink resumes. */
  #slowDown(): void {
    this.#prompt = false;
    this.#slotBytes = SMALL_SLOT_BYTES;
    const [first] = this.#ahead;
    if (first === undefined) return;
    this.#nextChunk = first.firstChunk;
    this.#dropAhead();
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

  /** Closes the file once nothing reads from it; the caller need not wait for that. */
  #release(): void {
    this.#dropAhead();
    Promise.allSettled(this.#outstanding).then(() => {
      // The files of a dead thread are closed with it.
      if (this.#fd !== null) this.#opener?.request({ op: 'close', fd: this.#fd }).catch(() => {});
    });
  }
}
