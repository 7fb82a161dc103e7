/** Shared memory in which bytes go to and from the worker threads, recycled so that it stays flat. */
import { CHUNK_BYTES } from './blob-format.ts';

export const SMALL_SLOT_BYTES = CHUNK_BYTES;
export const CHUNKS_PER_SLOT = 8;
export const LARGE_SLOT_BYTES = CHUNKS_PER_SLOT * CHUNK_BYTES;

/**
 * Above this number of slots in use only small ones are handed out: a thousand slow clients then
 * use 64 KiB each.
 */
const BUDGET_BYTES = 48 * 2 ** 20;
/** Slots kept for the next user; others are left to the garbage collector. */
const MAX_IDLE_BYTES = 32 * 2 ** 20;

export interface Slot {
  readonly memory: SharedArrayBuffer;
  readonly bytes: Buffer<SharedArrayBuffer>;
}

export class SlotPool {
  readonly #idle = new Map<number, Slot[]>([
    [SMALL_SLOT_BYTES, []],
    [LARGE_SLOT_BYTES, []],
  ]);
  #idleBytes = 0;
  #inUseBytes = 0;
  /** Slots of stalled sinks, so that those of fast ones stay large. */
  readonly #resting = new Set<Slot>();
  #restingBytes = 0;

  get inUseBytes(): number {
    return this.#inUseBytes;
  }

  /** A LARGE_SLOT_BYTES slot if requested and memory is available, else SMALL_SLOT_BYTES. */
  take(wantedBytes: number): Slot {
    const activeBytes = this.#inUseBytes - Math.min(this.#restingBytes, BUDGET_BYTES);
    const large = wantedBytes > SMALL_SLOT_BYTES && activeBytes + LARGE_SLOT_BYTES <= BUDGET_BYTES;
    const size = large ? LARGE_SLOT_BYTES : SMALL_SLOT_BYTES;
    this.#inUseBytes += size;
    const idle = this.#idle.get(size)?.pop();
    if (idle !== undefined) {
      this.#idleBytes -= size;
      return idle;
    }
    const memory = new SharedArrayBuffer(size);
    return { memory, bytes: Buffer.from(memory) };
  }

  /** Call when the sink of a slot stalls. Idempotent. */
  rest(slot: Slot): void {
    if (this.#resting.has(slot)) return;
    this.#resting.add(slot);
    this.#restingBytes += slot.bytes.length;
  }

  #wake(slot: Slot): void {
    if (this.#resting.delete(slot)) this.#restingBytes -= slot.bytes.length;
  }

  /** Returns a slot, which the caller must not use any more. */
  give(slot: Slot): void {
    const size = slot.bytes.length;
    this.#wake(slot);
    this.#inUseBytes -= size;
    if (this.#idleBytes + size > MAX_IDLE_BYTES) return;
    this.#idleBytes += size;
    this.#idle.get(size)?.push(slot);
  }

  /** Discards a slot that may still be referenced; it is never reused. */
  forfeit(slot: Slot): void {
    this.#wake(slot);
    this.#inUseBytes -= slot.bytes.length;
  }
}
