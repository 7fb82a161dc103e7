/** Writes a component of a point: the files of one part of a cloud, and their index. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { contentChunks, fixedBlocks, HOLE } from '../repository/chunks.ts';
import type { Repository, StoredBytes } from '../repository/repository.ts';
import { type Component, type Entry, entriesOf } from './manifest.ts';
import type { OpenedFile, PlainFile, Snapshot, Source, SourceFile } from './sources.ts';

export interface ComponentsDeps {
  readonly repository: Repository;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Read limit; pieces shared with an earlier point are not read. */
  readonly bytesPerSecond: number;
  /**
   * Reports bytes that were read or found stored already, negative if they are read again; `added`:
   * newly stored bytes.
   */
  readonly onProgress: (bytes: number, added: number) => void;
  /** Reports an unreadable file that the point continues without. */
  readonly onGap?: (component: string, error: Error) => void;
}

export class Components {
  readonly #deps: ComponentsDeps;
  readonly #pace: Pace;

  constructor(deps: ComponentsDeps) {
    this.#deps = deps;
    this.#pace = new Pace(deps);
  }

  /** `before`: the same component in an earlier intact point, whose pieces exist. */
  async write(source: Source, snapshot: Snapshot, before: Component | undefined): Promise<Component> {
    const { repository, clock, signal, onProgress } = this.#deps;
    const readAt = formatTime(clock.now());
    let files = 0;
    let sizeBytes = 0;
    const earlier = new Earlier(before && entriesOf(repository, before), source.order);
    const entryOf = async (file: SourceFile) => {
      signal.throwIfAborted();
      const fingerprint = file.fingerprint?.();
      const mayBeKept = file.changes === 'never' || fingerprint !== undefined;
      const kept = mayBeKept ? await earlier.find(file.path) : undefined;
      const isSound = kept?.pieces.every((piece) => repository.isTrusted(piece)) === true;
      if (kept === undefined || kept.witness !== fingerprint || !isSound)
        return { work: this.#keep(file, fingerprint) };
      onProgress(kept.size_bytes, 0);
      return { work: Promise.resolve(kept) };
    };
    const lines = async function* (): AsyncGenerator<Buffer> {
      for await (const entry of severalAhead(source.files(snapshot, signal), entryOf)) {
        if (entry === undefined) continue;
        files++;
        sizeBytes += entry.size_bytes;
        yield Buffer.from(`${JSON.stringify(entry)}\n`);
      }
    };
    const index = await repository.store(contentChunks(lines()), { isPacked: false, signal });
    onProgress(0, index.addedBytes);
    return {
      name: source.name,
      consistency: source.consistency,
      files,
      size_bytes: sizeBytes,
      index: index.pieces,
      read_at: readAt,
    };
  }

  async #keep(file: SourceFile, fingerprint: string | undefined): Promise<Entry | undefined> {
    for (let left = (file.tries ?? 1) - 1; ; left--) {
      try {
        return await this.#keepWhole(file, fingerprint);
      } catch (error) {
        const mayFail = error instanceof Unreadable && file.gap !== undefined && !this.#deps.signal.aborted;
        if (!mayFail) throw error;
        if (left > 0) continue;
        this.#deps.onGap?.(String(file.gap), error);
        return undefined;
      }
    }
  }

  async #keepWhole(file: SourceFile, fingerprint: string | undefined): Promise<Entry | undefined> {
    let counted = 0;
    const onPiece = (bytes: number) => {
      counted += bytes;
      this.#deps.onProgress(bytes, 0);
    };
    try {
      const kept =
        'absolutePath' in file ? await this.#keepPlain(file, onPiece) : await this.#keepOpened(file, onPiece);
      const { path, mode } = file;
      return kept && { path, mode, size_bytes: kept.sizeBytes, pieces: kept.pieces, witness: fingerprint };
    } catch (error) {
      this.#deps.onProgress(-counted, 0);
      throw error;
    }
  }

  async #keepOpened(
    file: SourceFile & OpenedFile,
    onPiece: (bytes: number) => void,
  ): Promise<StoredBytes | undefined> {
    const { repository, signal, onProgress } = this.#deps;
    const opened = await file.open().catch(unreadable);
    if (opened === undefined) return undefined;
    const bytes = readable(opened);
    const pieces = file.changes === 'by_insertion' ? contentChunks(bytes) : fixedBlocks(bytes);
    const paced = this.#pace.through(pieces, onPiece);
    const stored = await repository.store(paced, { isPacked: file.isPacked, signal });
    onProgress(0, stored.addedBytes);
    return stored;
  }

  async #keepPlain(
    file: SourceFile & PlainFile,
    onPiece: (bytes: number) => void,
  ): Promise<StoredBytes | undefined> {
    const { repository, signal, onProgress } = this.#deps;
    const stored = { sizeBytes: 0, pieces: [] as string[], addedBytes: 0 };
    for (;;) {
      signal.throwIfAborted();
      const part = await repository.storePart(
        { path: file.absolutePath, from: stored.sizeBytes },
        file.isPacked,
      );
      if ('unreadable' in part) return part.unreadable === null ? undefined : unreadable(part.unreadable);
      stored.pieces.push(...part.pieces);
      stored.sizeBytes += part.bytes;
      onPiece(part.bytes);
      onProgress(0, part.addedBytes);
      await this.#pace.wait(part.bytes);
      if (part.isEnd) return stored;
    }
  }
}

/** The source file could not be read; its target is fine. */
class Unreadable extends Error {}

function unreadable(error: unknown): never {
  throw new Unreadable(error instanceof Error ? error.message : String(error), { cause: error });
}

async function* readable(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = bytes[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await reader.next().catch(unreadable);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await reader.return?.();
  }
}

const FILES_AT_ONCE = 8;

/** Results in the order of the items; the next items are processed ahead. */
async function* severalAhead<T, R>(
  items: AsyncIterable<T>,
  begin: (item: T) => Promise<{ readonly work: Promise<R> }>,
): AsyncGenerator<R> {
  const begun: Promise<R>[] = [];
  try {
    for await (const item of items) {
      const { work } = await begin(item);
      work.catch(() => {});
      begun.push(work);
      if (begun.length >= FILES_AT_ONCE) yield await (begun.shift() as Promise<R>);
    }
    for (const work of begun) yield await work;
  } finally {
    await Promise.allSettled(begun);
  }
}

/** Files of an earlier point, iterated in step with the new ones. */
class Earlier {
  readonly #entries: AsyncGenerator<Entry> | undefined;
  readonly #keyOf: (path: string) => string;
  #next: Entry | undefined;
  #isBegun = false;

  constructor(entries: AsyncGenerator<Entry> | undefined, order: Source['order']) {
    this.#entries = order && entries;
    this.#keyOf = (path) => (order === 'name' ? path.slice(path.lastIndexOf('/') + 1) : path);
  }

  async find(path: string): Promise<Entry | undefined> {
    if (!this.#isBegun) await this.#advance();
    const wanted = this.#keyOf(path);
    while (this.#next !== undefined && this.#keyOf(this.#next.path) < wanted) await this.#advance();
    return this.#next?.path === path ? this.#next : undefined;
  }

  async #advance(): Promise<void> {
    this.#isBegun = true;
    this.#next = (await this.#entries?.next())?.value;
  }
}

/** Limits the total read rate. */
export interface PaceDeps {
  readonly clock: Clock;
  readonly bytesPerSecond: number;
  readonly signal: AbortSignal;
}

class Pace {
  readonly #deps: PaceDeps;
  /** Time up to which the rate is used up; monotonic ms. */
  #dueAt = 0;

  constructor(deps: PaceDeps) {
    this.#deps = deps;
  }

  /** `onPiece` receives the size of each piece. Rejects when the signal aborts. */
  async *through(pieces: AsyncIterable<Buffer>, onPiece: (bytes: number) => void): AsyncGenerator<Buffer> {
    for await (const piece of pieces) {
      // A hole is not read from disk.
      if (piece !== HOLE) await this.wait(piece.length);
      onPiece(piece.length);
      yield piece;
    }
  }

  /** Waits until that many bytes may be read. Rejects when the signal aborts. */
  async wait(bytes: number): Promise<void> {
    const { clock, bytesPerSecond, signal } = this.#deps;
    this.#dueAt = Math.max(this.#dueAt, clock.monotonic()) + (bytes / bytesPerSecond) * 1000;
    const aheadMs = this.#dueAt - clock.monotonic();
    if (aheadMs > 1) await sleep(aheadMs, undefined, { signal });
  }
}
