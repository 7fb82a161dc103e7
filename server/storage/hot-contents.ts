/**
 * Caches small, frequently downloaded objects in memory, already verified. Code that changes an object calls
 * forget() after its commit, before the response is sent.
 */
import type { Content } from './downloads.ts';

/** Size of the cache; two generations of half as much each. */
const MAX_BYTES = 16 * 2 ** 20;
/** Overhead counted per entry. */
const ENTRY_BYTES = 1024;

export class HotContents {
  // Least-recently-used at the cost of a plain Map: see Authenticator.
  #young = new Map<string, Content>();
  #old = new Map<string, Content>();
  #youngBytes = 0;
  /** Counts calls of forget(): content that was read before one must not be kept after it. */
  #epoch = 0;

  get epoch(): number {
    return this.#epoch;
  }

  get(objectId: string): Content | undefined {
    const young = this.#young.get(objectId);
    if (young) return young;
    const old = this.#old.get(objectId);
    if (old) this.#put(objectId, old);
    return old;
  }

  /** Caches content that was read at `epoch`, unless forget() was called since. */
  put(objectId: string, content: Content, epoch: number): void {
    if (epoch === this.#epoch) this.#put(objectId, content);
  }

  forget(objectId: string): void {
    this.#epoch++;
    this.#young.delete(objectId);
    this.#old.delete(objectId);
  }

  #put(objectId: string, content: Content): void {
    const bytes = (content.inline?.length ?? 0) + ENTRY_BYTES;
    if (this.#youngBytes + bytes > MAX_BYTES / 2) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#young.set(objectId, content);
    this.#youngBytes += bytes;
  }
}
