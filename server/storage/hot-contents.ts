/**
 * Small objects that are downloaded again and again, kept in memory, verified already. Whoever changes an
 * object calls forget() once its commit has ended, before anyone is told that it has.
 */
import type { Content } from './downloads.ts';

/** All kept bytes; two generations of half as much each. */
const MAX_BYTES = 16 * 2 ** 20;
/** Counted for each entry besides its bytes. */
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

  /** Keeps what was read since `epoch`, unless something was forgotten in between. */
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
