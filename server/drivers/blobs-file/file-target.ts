/** Writes a blob to its file: one thread seals and writes, others compute digests. */
import type { Digests } from '../../../libs/s3-wire/index.ts';
import type { AppError } from '../../platform/errors.ts';
import type { DigestStreams } from '../blob-frames/digest-streams.ts';
import type { Slot } from '../blob-frames/slot-pool.ts';
import type { SlotContent, SlotTarget } from '../blob-frames/slot-writer.ts';
import { STORE_LOAD } from '../blob-frames/worker-pool.ts';
import { faultError } from './disk-fault.ts';
import type { FileThread, FileThreads } from './file-threads.ts';

/** Accounts for free disk space. */
export interface SpaceCheck {
  /** Throws AppError `out_of_space` if `bytes` more should not be written. */
  assertSpace(bytes: number): void;
}

export interface FileTargetDeps {
  readonly name: string;
  readonly dataKey: Uint8Array | null;
  readonly digests: DigestStreams;
  readonly workers: FileThreads;
  readonly diskSpace: SpaceCheck;
  /** Called with the first failure, before it is reported to the caller. */
  readonly onFault: (error: unknown) => void;
  /** Throws `read_only` if the store accepts no writes. */
  readonly assertWritable: () => void;
  /** Removes the file when the thread that should have is dead. */
  readonly remove: () => Promise<void>;
}

let nextStream = 0;

export class FileTarget implements SlotTarget {
  readonly #deps: FileTargetDeps;
  readonly #stream = nextStream++;
  #storing: FileThread | null = null;
  #isOneSlot = false;

  constructor(deps: FileTargetDeps) {
    this.#deps = deps;
  }

  /** A one-slot blob takes one thread and one message; a longer one is digested while being written. */
  send(slot: Slot, content: SlotContent): readonly Promise<Digests | undefined>[] {
    const { workers, digests, diskSpace, name, dataKey } = this.#deps;
    const { bytes, last } = content;
    let create = null;
    try {
      diskSpace.assertSpace(bytes);
      if (this.#storing === null) {
        create = { name, dataKey };
        this.#isOneSlot = last;
        this.#storing = workers.pick();
        this.#storing.load += STORE_LOAD;
      }
      const digested = this.#isOneSlot ? [] : digests.send(slot, content, () => workers.pick());
      const names = this.#isOneSlot ? digests.names : [];
      const request = { op: 'store', stream: this.#stream, create, slot: slot.memory, ...content } as const;
      const stored = this.#storing.request({ ...request, digests: names });
      return [stored.then((reply) => digests.took(reply)), ...digested];
    } catch (error) {
      return [Promise.reject(error)];
    }
  }

  explain(error: unknown): AppError {
    this.#deps.onFault(error);
    return faultError(error);
  }

  /** Another file's fsync may have failed: then nothing more is acknowledged. */
  assertAcknowledgeable(): void {
    this.#deps.assertWritable();
  }

  async discard(): Promise<void> {
    const stream = this.#stream;
    this.#deps.digests.discard();
    try {
      await this.#storing?.request({ op: 'discard', stream, remove: this.#deps.name });
    } catch {
      await this.#deps.remove();
    }
  }

  end(): void {
    if (this.#storing !== null) this.#storing.load -= STORE_LOAD;
    this.#deps.digests.end();
  }
}
