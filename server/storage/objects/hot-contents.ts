/**
 * Caches small, frequently downloaded objects in memory, already verified. Code that changes an object calls
 * forget() after its commit, before the response is sent.
 */
import type { Content } from './downloads.ts';

/** Size of the cache; two generations of half as much each. */
const MAX_BYTES = 16 * 2 ** 20;
/** Overhead counted per entry. */
const ENTRY_BYTES = 1024;

/** Contents by object id, and the ids by bucket and name. An id may remain when the content is gone. */
interface Generation {
  readonly contents: Map<string, Content>;
  readonly ids: Map<string, string>;
}

const emptyGeneration = (): Generation => ({ contents: new Map(), ids: new Map() });
const nameOf = (bucketId: number, name: string) => `${bucketId}/${name}`;

export class HotContents {
  // Least-recently-used at the cost of a plain Map: see Authenticator.
  #young = emptyGeneration();
  #old = emptyGeneration();
  #youngBytes = 0;
  /** Counts calls of forget(): content read before such a call must not be cached after it. */
  #epoch = 0;

  get epoch(): number {
    return this.#epoch;
  }

  get(objectId: string): Content | undefined {
    const young = this.#young.contents.get(objectId);
    if (young) return young;
    const old = this.#old.contents.get(objectId);
    if (old) this.#put(objectId, old);
    return old;
  }

  /** The current content of a name; `bucketId`: the row's. */
  named(bucketId: number, name: string): Content | undefined {
    const text = nameOf(bucketId, name);
    const id = this.#young.ids.get(text) ?? this.#old.ids.get(text);
    const content = id === undefined ? undefined : this.get(id);
    // The object may have been renamed, and cached again.
    return content?.name === name && content.row.bucket_id === bucketId ? content : undefined;
  }

  /** Caches content that was read at `epoch`, unless forget() was called since. */
  put(objectId: string, content: Content, epoch: number): void {
    if (epoch === this.#epoch) this.#put(objectId, content);
  }

  forget(objectId: string): void {
    this.#epoch++;
    this.#young.contents.delete(objectId);
    this.#old.contents.delete(objectId);
  }

  /** All of them, because a bucket with some of them has other settings. */
  clear(): void {
    this.#epoch++;
    this.#young = emptyGeneration();
    this.#old = emptyGeneration();
    this.#youngBytes = 0;
  }

  #put(objectId: string, content: Content): void {
    const bytes = (content.inline?.length ?? 0) + ENTRY_BYTES;
    if (this.#youngBytes + bytes > MAX_BYTES / 2) {
      this.#old = this.#young;
      this.#young = emptyGeneration();
      this.#youngBytes = 0;
    }
    this.#young.contents.set(objectId, content);
    this.#young.ids.set(nameOf(content.row.bucket_id, content.name), objectId);
    this.#youngBytes += bytes;
  }
}
