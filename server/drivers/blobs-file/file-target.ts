/** A blob's way to its file: one thread seals and writes it, another hashes it meanwhile. */
import type { AppError } from '../../platform/errors.ts';
import type { Slot } from '../blob-frames/slot-pool.ts';
import type { SlotContent, SlotTarget } from '../blob-frames/slot-writer.ts';
import { HASH_LOAD, STORE_LOAD } from '../blob-frames/worker-pool.ts';
import { faultError } from './disk-fault.ts';
import type { FileThread, FileThreads } from './file-threads.ts';

/** Accounts for free disk space. */
export interface SpaceCheck {
  /** Throws AppError `out_of_space` when `bytes` more should not be written. */
  assertSpace(bytes: number): void;
}

export interface FileTargetDeps {
  readonly name: string;
  readonly dataKey: Uint8Array | null;
  readonly workers: FileThreads;
  readonly diskSpace: SpaceCheck;
  /** Called with the first failure, before it is reported to the caller. */
  readonly onFault: (error: unknown) => void;
  /** Throws `read_only` if the store no longer takes writes. */
  readonly assertWritable: () => void;
  /** Removes the file when the thread that should have is dead. */
  readonly remove: () => Promise<void>;
}

let nextStream = 0;

export class FileTarget implements SlotTarget {
  readonly #deps: FileTargetDeps;
  readonly #stream = nextStream++;
  #storing: FileThread | null = null;
  #hashing: FileThread | null = null;

  constructor(deps: FileTargetDeps) {
    this.#deps = deps;
  }

  /** A blob of one slot takes one thread and one message; a longer one is hashed while it is written. */
  send(slot: Slot, { bytes, last }: SlotContent): readonly Promise<string | undefined>[] {
    const stream = this.#stream;
    const memory = slot.memory;
    let create = null;
    try {
      this.#deps.diskSpace.assertSpace(bytes);
      if (this.#storing === null) {
        create = { name: this.#deps.name, dataKey: this.#deps.dataKey };
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
    const request = { op: 'store', stream, create, slot: memory, bytes, last, hash } as const;
    const stored = this.#storing.request(request).then(({ md5 }) => md5);
    if (this.#hashing === null) return [stored];
    const hashed = this.#hashing.request({ op: 'hash', stream, slot: memory, bytes, last });
    return [stored, hashed.then(({ md5 }) => md5)];
  }

  explain(error: unknown): AppError {
    this.#deps.onFault(error);
    return faultError(error);
  }

  /** Another file's fsync may have failed meanwhile: then nothing is acknowledged any more. */
  assertAcknowledgeable(): void {
    this.#deps.assertWritable();
  }

  async discard(): Promise<void> {
    const stream = this.#stream;
    // A dead thread has forgotten the stream already.
    this.#hashing?.request({ op: 'discard', stream, remove: null }).catch(() => {});
    try {
      await this.#storing?.request({ op: 'discard', stream, remove: this.#deps.name });
    } catch {
      await this.#deps.remove();
    }
  }

  end(): void {
    if (this.#storing !== null) this.#storing.load -= STORE_LOAD;
    if (this.#hashing !== null) this.#hashing.load -= HASH_LOAD;
  }
}
