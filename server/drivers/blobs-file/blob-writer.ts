/** The event loop's side of a write: it copies bytes into slots; threads hash, seal, write and sync them. */
import { AppError } from '../../platform/errors.ts';
import type { BlobWriter, WrittenBlob } from '../../storage/blobs.ts';
import { faultError } from './blob-fault.ts';
import type { BlobReply } from './blob-messages.ts';
import { LARGE_SLOT_BYTES, type Slot, type SlotPool, SMALL_SLOT_BYTES } from './slot-pool.ts';
import { type BlobThread, HASH_LOAD, STORE_LOAD, type WorkerPool } from './worker-pool.ts';

/**
 * Slots on their way to the disk before the caller is asked to wait: 3 MiB, or the slower thread starves at
 * times.
 */
const MAX_IN_FLIGHT = 6;

/** Accounts for free disk space. */
export interface SpaceCheck {
  /** Throws AppError `out_of_space` when `bytes` more should not be written. */
  assertSpace(bytes: number): void;
}

export interface FileBlobWriterDeps {
  readonly name: string;
  readonly dataKey: Uint8Array | null;
  readonly workers: WorkerPool;
  readonly slots: SlotPool;
  readonly diskSpace: SpaceCheck;
  /** Called with every failure, before it is reported to the caller. */
  readonly onFault: (error: unknown) => void;
  /** Throws `read_only` if the store no longer takes writes. */
  readonly assertWritable: () => void;
  /** Removes the file when the thread that should have is dead. */
  readonly remove: () => Promise<void>;
  /** Called once, when the file is finished or gone. */
  readonly onEnd: (state: 'finished' | 'aborted') => void;
  /** The sweeper may judge the file by its row. May be called more than once. */
  readonly onRelease: () => void;
}

let nextStream = 0;

export class FileBlobWriter implements BlobWriter {
  readonly name: string;
  readonly #deps: FileBlobWriterDeps;
  readonly #stream = nextStream++;
  #storing: BlobThread | null = null;
  #hashing: BlobThread | null = null;
  #slot: Slot | null = null;
  #filled = 0;
  #sizeBytes = 0;
  #inFlight = 0;
  #waiting: PromiseWithResolvers<void> | null = null;
  #error: AppError | null = null;
  #state: 'open' | 'finishing' | 'finished' | 'aborted' = 'open';
  #aborting: Promise<void> | null = null;

  constructor(deps: FileBlobWriterDeps) {
    this.name = deps.name;
    this.#deps = deps;
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    this.#assertOpen();
    // Not `set`: between shared and own memory, unless aligned alike, it goes byte by byte.
    const source = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let taken = 0;
    while (taken < source.length) {
      const copied = source.copy(this.#slotWithSpace().bytes, this.#filled, taken);
      this.#filled += copied;
      taken += copied;
    }
    this.#sizeBytes += chunk.length;
    if (this.#inFlight < MAX_IN_FLIGHT) return undefined;
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  async finish(): Promise<WrittenBlob> {
    this.#assertOpen();
    this.#state = 'finishing';
    this.#slot ??= this.#deps.slots.take(SMALL_SLOT_BYTES);
    const md5 = await this.#dispatch(true);
    if (this.#error !== null) throw this.#error;
    if (this.#state !== 'finishing') throw ended();
    // Another file's fsync may have failed meanwhile: then nothing is acknowledged any more.
    this.#deps.assertWritable();
    this.#end('finished');
    return { name: this.name, sizeBytes: this.#sizeBytes, md5 };
  }

  abort(): Promise<void> {
    this.#aborting ??= this.#abort();
    return this.#aborting;
  }

  release(): void {
    this.#deps.onRelease();
  }

  async #abort(): Promise<void> {
    const wasFinished = this.#state === 'finished';
    this.#state = 'aborted';
    this.#fail(ended());
    if (this.#slot !== null) this.#deps.slots.give(this.#slot);
    this.#slot = null;
    const { name } = this;
    const stream = this.#stream;
    // A dead thread has forgotten the stream already.
    this.#hashing?.request({ op: 'discard', stream, remove: null }).catch(() => {});
    try {
      await this.#storing?.request({ op: 'discard', stream, remove: name });
    } catch {
      await this.#deps.remove();
    } finally {
      if (!wasFinished) this.#end('aborted');
      this.release();
    }
  }

  #end(state: 'finished' | 'aborted'): void {
    this.#state = state;
    if (this.#storing !== null) this.#storing.load -= STORE_LOAD;
    if (this.#hashing !== null) this.#hashing.load -= HASH_LOAD;
    this.#deps.onEnd(state);
  }

  #assertOpen(): void {
    if (this.#error !== null) throw this.#error;
    if (this.#state !== 'open') throw ended();
  }

  #slotWithSpace(): Slot {
    // A full slot stays until more bytes come: only then is it known not to be the last.
    if (this.#slot !== null && this.#filled === this.#slot.bytes.length) this.#dispatch(false);
    this.#slot ??= this.#deps.slots.take(this.#storing === null ? SMALL_SLOT_BYTES : LARGE_SLOT_BYTES);
    return this.#slot;
  }

  /** Sends the slot off. Resolves with the MD5 if it was the last one. Never rejects: see #error. */
  #dispatch(last: boolean): Promise<string> {
    const slot = this.#slot;
    if (slot === null) throw new Error('nothing to dispatch');
    const bytes = this.#filled;
    const replies = this.#send(slot, { bytes, last });
    this.#slot = null;
    this.#filled = 0;
    this.#inFlight++;
    return Promise.allSettled(replies).then((results) => {
      this.#deps.slots.give(slot);
      this.#inFlight--;
      let md5 = '';
      for (const result of results) {
        if (result.status === 'rejected') this.#report(result.reason);
        else md5 = result.value.md5 ?? md5;
      }
      if (this.#error === null && this.#inFlight < MAX_IN_FLIGHT) {
        this.#waiting?.resolve();
        this.#waiting = null;
      }
      return md5;
    });
  }

  /** A blob of one slot takes one thread and one message; a longer one is hashed while it is written. */
  #send(slot: Slot, { bytes, last }: { bytes: number; last: boolean }): Promise<BlobReply>[] {
    const stream = this.#stream;
    const memory = slot.memory;
    let create = null;
    try {
      this.#deps.diskSpace.assertSpace(bytes);
      if (this.#storing === null) {
        create = { name: this.name, dataKey: this.#deps.dataKey };
        this.#storing = this.#deps.workers.pick();
        this.#storing.load += STORE_LOAD;
        if (!last) {
          this.#hashing = this.#deps.workers.pick(this.#storing);
          this.#hashing.load += HASH_LOAD;
        }
      }
    } catch (error) {
      return [Promise.reject(error)];
    }
    const hash = this.#hashing === null;
    const stored = this.#storing.request({ op: 'store', stream, create, slot: memory, bytes, last, hash });
    if (this.#hashing === null) return [stored];
    return [stored, this.#hashing.request({ op: 'hash', stream, slot: memory, bytes, last })];
  }

  #report(error: unknown): void {
    if (this.#error !== null) return;
    this.#deps.onFault(error);
    this.#fail(faultError(error));
  }

  #fail(error: AppError): void {
    this.#error ??= error;
    // A caller that is not waiting gets the error from its next call.
    this.#waiting?.promise.catch(() => {});
    this.#waiting?.reject(this.#error);
    this.#waiting = null;
  }
}

function ended(): AppError {
  return new AppError('internal_error', 'This write has ended.');
}
