/** Blobs being written and read, in a store of frames: files or S3. */
import { AppError } from '../../platform/errors.ts';
import type { BlobRange, BlobReader, BlobRef } from '../../storage/blobs/blobs.ts';
import { SlotPool } from './slot-pool.ts';
import { hasBytes, SlotReading, type SlotReadingDeps, type SlotSource } from './slot-reading.ts';
import { type SlotTarget, SlotWriter } from './slot-writer.ts';

/** Bytes of a key that seals a blob. */
const KEY_BYTES = 32;

interface Reading {
  readonly ref: BlobRef;
  readonly range: BlobRange;
  readonly reader: BlobReader;
}

export class BlobsUnderWay {
  readonly #slots = new SlotPool();
  readonly #writers = new Map<string, SlotWriter>();
  /** Finished, and perhaps about to be referenced by a commit. */
  readonly #unreleased = new Set<string>();
  #closed = false;

  /** Throws AppError `shutting_down`. */
  assertOpen(): void {
    if (this.#closed) throw new AppError('shutting_down', 'The store is closing.');
  }

  /** Throws the errors of assertOpen(), and an Error for a key that cannot seal. */
  assertMayWrite(dataKey: Uint8Array | null): void {
    this.assertOpen();
    if (dataKey !== null && dataKey.length !== KEY_BYTES) throw new Error('a data key has 32 bytes');
  }

  write(name: string, target: SlotTarget): SlotWriter {
    const writer = new SlotWriter({
      name,
      slots: this.#slots,
      target,
      onEnd: (state) => {
        if (state === 'finished') this.#unreleased.add(name);
        this.#writers.delete(name);
      },
      onRelease: () => this.#unreleased.delete(name),
    });
    this.#writers.set(name, writer);
    return writer;
  }

  /** Whether there is anything to read. Throws the errors of assertOpen(), and the abort reason. */
  mayRead({ ref, range, reader }: Reading): boolean {
    this.assertOpen();
    const isWanted = hasBytes(ref, range);
    reader.signal?.throwIfAborted();
    return isWanted;
  }

  async read(
    { ref, range, reader }: Reading,
    source: SlotSource,
    pace: Pick<SlotReadingDeps, 'stallMs' | 'readAhead' | 'isPrompt' | 'isWholeAtOnce'>,
  ): Promise<void> {
    await new SlotReading({ ref, range, ...reader, slots: this.#slots, source, ...pace }).run();
  }

  /** Names of the blobs with unfinished writers. */
  names(): Iterable<string> {
    return this.#writers.keys();
  }

  hasWriter(name: string): boolean {
    return this.#writers.has(name);
  }

  /** Includes a finished blob that is not released yet. */
  isBeingWritten(name: string): boolean {
    return this.#writers.has(name) || this.#unreleased.has(name);
  }

  /** Aborts running writes. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#writers.values()].map((writer) => writer.abort()));
  }
}
