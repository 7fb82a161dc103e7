/**
 * The event loop's side of a write: it copies bytes into slots and passes them to a target, whose
 * threads digest, seal and store them.
 */
import type { Digests } from '../../../libs/s3-wire/index.ts';
import { AppError } from '../../platform/errors.ts';
import type { BlobWriter, WrittenBlob } from '../../storage/blobs/blobs.ts';
import { LARGE_SLOT_BYTES, type Slot, type SlotPool, SMALL_SLOT_BYTES } from './slot-pool.ts';

/**
 * Slots sent to the target before the caller is asked to wait: 3 MiB, because with fewer the slower
 * thread is sometimes idle.
 */
const MAX_IN_FLIGHT = 6;

/** A slot's share of a blob. */
export interface SlotContent {
  readonly bytes: number;
  /** The blob ends here. */
  readonly last: boolean;
  /** Ends of pieces, in order, if the pieces of the blob are hashed. */
  readonly cuts: readonly number[];
}

/** Receives the slots of a writer, in order. */
export interface SlotTarget {
  /**
   * Receives the bytes of a slot: whole chunks, unless they are the last. Returns one promise per
   * user of the slot, which is released when all have settled. After the last slot, resolved means
   * durable, and they resolve to the digests of the plaintext.
   */
  send(slot: Slot, content: SlotContent): readonly Promise<Digests | undefined>[];
  /** Converts the first failure for the caller. Called once. */
  explain(error: unknown): AppError;
  /** Throws AppError if a blob that was stored must not be acknowledged. */
  assertAcknowledgeable(): void;
  /** Removes the stored bytes, even after a success. */
  discard(): Promise<void>;
  /** Called once, when the blob is finished or gone. */
  end(): void;
}

export interface SlotWriterDeps {
  readonly name: string;
  readonly slots: SlotPool;
  readonly target: SlotTarget;
  /** Called once, when the blob is finished or gone. */
  readonly onEnd: (state: 'finished' | 'aborted') => void;
  /** The sweeper may decide about the blob by its row. May be called more than once. */
  readonly onRelease: () => void;
}

export class SlotWriter implements BlobWriter {
  readonly name: string;
  readonly #deps: SlotWriterDeps;
  #isFirstSlot = true;
  #slot: Slot | null = null;
  #filled = 0;
  #cuts: number[] = [];
  #sizeBytes = 0;
  #inFlight = 0;
  #waiting: PromiseWithResolvers<void> | null = null;
  #error: AppError | null = null;
  #state: 'open' | 'finishing' | 'finished' | 'aborted' = 'open';
  #aborting: Promise<void> | null = null;

  constructor(deps: SlotWriterDeps) {
    this.name = deps.name;
    this.#deps = deps;
  }

  write(chunk: Uint8Array, endsPiece = false): Promise<void> | undefined {
    this.#assertOpen();
    // Not `set`, which copies byte by byte between differently aligned memory.
    const source = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let taken = 0;
    while (taken < source.length) {
      const copied = source.copy(this.#slotWithSpace().bytes, this.#filled, taken);
      this.#filled += copied;
      taken += copied;
    }
    this.#sizeBytes += chunk.length;
    if (endsPiece) this.#cuts.push(this.#filled);
    if (this.#inFlight < MAX_IN_FLIGHT) return undefined;
    this.#waiting ??= Promise.withResolvers();
    return this.#waiting.promise;
  }

  async finish(): Promise<WrittenBlob> {
    this.#assertOpen();
    this.#state = 'finishing';
    this.#slot ??= this.#deps.slots.take(SMALL_SLOT_BYTES);
    const digests = await this.#dispatch(true);
    if (this.#error !== null) throw this.#error;
    if (this.#state !== 'finishing') throw ended();
    this.#deps.target.assertAcknowledgeable();
    this.#end('finished');
    return { name: this.name, sizeBytes: this.#sizeBytes, digests };
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
    try {
      await this.#deps.target.discard();
    } finally {
      if (!wasFinished) this.#end('aborted');
      this.release();
    }
  }

  #end(state: 'finished' | 'aborted'): void {
    this.#state = state;
    this.#deps.target.end();
    this.#deps.onEnd(state);
  }

  #assertOpen(): void {
    if (this.#error !== null) throw this.#error;
    if (this.#state !== 'open') throw ended();
  }

  #slotWithSpace(): Slot {
    // A full slot is kept until more bytes arrive, because it may be the last one.
    if (this.#slot !== null && this.#filled === this.#slot.bytes.length) this.#dispatch(false);
    this.#slot ??= this.#deps.slots.take(this.#isFirstSlot ? SMALL_SLOT_BYTES : LARGE_SLOT_BYTES);
    return this.#slot;
  }

  /** Sends the slot off. Resolves with the digests if it was the last one. Never rejects: see #error. */
  #dispatch(last: boolean): Promise<Digests> {
    const slot = this.#slot;
    if (slot === null) throw new Error('nothing to dispatch');
    const bytes = this.#filled;
    const replies = this.#deps.target.send(slot, { bytes, last, cuts: this.#cuts });
    this.#cuts = [];
    this.#isFirstSlot = false;
    this.#slot = null;
    this.#filled = 0;
    this.#inFlight++;
    return Promise.allSettled(replies).then((results) => {
      this.#deps.slots.give(slot);
      this.#inFlight--;
      const digests: Digests = {};
      for (const result of results) {
        if (result.status === 'rejected') this.#report(result.reason);
        else Object.assign(digests, result.value);
      }
      if (this.#error === null && this.#inFlight < MAX_IN_FLIGHT) {
        this.#waiting?.resolve();
        this.#waiting = null;
      }
      return digests;
    });
  }

  #report(error: unknown): void {
    if (this.#error !== null) return;
    this.#fail(this.#deps.target.explain(error));
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
