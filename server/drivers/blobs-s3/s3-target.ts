/**
 * Sends a blob to S3. One thread seals it, others compute its digests. A blob of at most 8 MiB is
 * stored by one request, a larger one in parts, of which two are sent while the next is filled.
 */
import type { Digests } from '../../../libs/s3-wire/index.ts';
import { AppError } from '../../platform/errors.ts';
import { CHUNK_BYTES } from '../blob-frames/blob-format.ts';
import type { DigestStreams } from '../blob-frames/digest-streams.ts';
import { type Slot, SMALL_SLOT_BYTES } from '../blob-frames/slot-pool.ts';
import type { SlotContent, SlotTarget } from '../blob-frames/slot-writer.ts';
import { type BlobThread, STORE_LOAD, type WorkerPool } from '../blob-frames/worker-pool.ts';
import type { S3Objects } from '../s3-client/s3-objects.ts';
import type { S3Patience } from '../s3-client/s3-requests.ts';
import type { PartLease, PartMemory } from './part-memory.ts';
import { framesOfPart } from './parts.ts';
import type { S3Health } from './s3-health.ts';
import type { S3ThreadReply, S3ThreadRequest } from './s3-messages.ts';
import { keyOf } from './sealed-blob.ts';

export type S3Thread = BlobThread<S3ThreadRequest, S3ThreadReply>;
export type S3Threads = WorkerPool<S3ThreadRequest, S3ThreadReply>;

export interface S3TargetDeps {
  readonly name: string;
  readonly dataKey: Uint8Array | null;
  /** Account that the upload belongs to. */
  readonly owner: number;
  readonly digests: DigestStreams;
  readonly workers: S3Threads;
  readonly objects: S3Objects;
  readonly health: S3Health;
  readonly memory: PartMemory;
  /** Length of the stored blob, bytes. */
  readonly storedBytes: (sizeBytes: number) => number;
}

const PARTS_UNDER_WAY = 2;
/** Clean-up after an upload is brief, because a caller waits; the sweeper removes the rest. */
const DISCARD: S3Patience = { tries: 2, silenceMs: 5000 };

let nextStream = 0;

export class S3Target implements SlotTarget {
  readonly #deps: S3TargetDeps;
  readonly #stream = nextStream++;
  readonly #key: string;
  #sealing: S3Thread | null = null;
  /** Each slot waits for the previous ones. */
  #turn: Promise<unknown> = Promise.resolve();
  #frames = 0;
  #sizeBytes = 0;
  #part = 0;
  #endOfPart = framesOfPart(0);
  #lease: PartLease | null = null;
  #uploadId: Promise<string> | null = null;
  readonly #parts: Promise<string>[] = [];
  /** True once S3 was asked to store something. */
  #hasSent = false;
  #ended: AppError | null = null;
  /** The first failure of a part, reported by the next slot. */
  #failure: unknown;

  constructor(deps: S3TargetDeps) {
    this.#deps = deps;
    this.#key = keyOf(deps.name);
  }

  send(slot: Slot, content: SlotContent): readonly Promise<Digests | undefined>[] {
    const { workers, digests } = this.#deps;
    const isOneSlot = content.last && this.#sealing === null;
    let digested: Promise<Digests | undefined>[];
    try {
      const sealing = this.#pickSealing();
      digested = digests.send(slot, content, () => (isOneSlot ? sealing : workers.pick()));
    } catch (error) {
      return [Promise.reject(error)];
    }
    const stored = this.#turn.then(() => this.#store(slot, content));
    this.#turn = stored;
    stored.catch(() => {});
    return [stored.then(() => undefined), ...digested];
  }

  explain(error: unknown): AppError {
    return this.#ended ?? this.#deps.health.explain(error);
  }

  assertAcknowledgeable(): void {
    // A request is durable as soon as S3 has responded.
  }

  async discard(): Promise<void> {
    const { objects } = this.#deps;
    this.#ended ??= ended();
    const stream = this.#stream;
    this.#deps.digests.discard();
    // A dead thread has lost the blob and its requests.
    await this.#sealing?.request({ op: 'discard', stream }).catch(() => {});
    this.#releaseMemory();
    if (!this.#hasSent || !this.#deps.health.answers) return;
    try {
      const uploadId = await this.#uploadId?.catch(() => undefined);
      if (uploadId !== undefined) await objects.abandon(this.#key, uploadId, DISCARD);
      await objects.remove(this.#key, DISCARD);
    } catch (error) {
      // Without its row it is an orphan.
      this.#deps.health.note(error);
    }
  }

  end(): void {
    if (this.#sealing !== null) this.#sealing.load -= STORE_LOAD;
    this.#deps.digests.end();
    this.#releaseMemory();
  }

  #pickSealing(): S3Thread {
    if (this.#sealing === null) {
      this.#sealing = this.#deps.workers.pick();
      this.#sealing.load += STORE_LOAD;
    }
    return this.#sealing;
  }

  async #store(slot: Slot, { bytes, last }: SlotContent): Promise<void> {
    const { name, dataKey } = this.#deps;
    const frames = Math.max(1, Math.ceil(bytes / CHUNK_BYTES));
    const isWhole = last && this.#part === 0 && this.#frames + frames <= this.#endOfPart;
    await this.#makeRoom(isWhole && this.#sizeBytes + bytes <= SMALL_SLOT_BYTES);
    const request = {
      op: 'seal',
      stream: this.#stream,
      name,
      dataKey,
      slot: slot.memory,
      bytes,
      last,
    } as const;
    await this.#pickSealing().request(request);
    this.#assertGoesOn();
    this.#sizeBytes += bytes;
    this.#frames += frames;
    if (isWhole) return this.#putWhole();
    // A slot is not longer than a part, so it completes at most one.
    if (this.#frames > this.#endOfPart || (this.#frames === this.#endOfPart && !last)) await this.#nextPart();
    if (last) await this.#complete();
  }

  /** Waits for the memory of the next part, unless the blob is small. */
  async #makeRoom(isSmall: boolean): Promise<void> {
    this.#assertGoesOn();
    if (isSmall || this.#lease !== null) return;
    const bytes = framesOfPart(this.#part) * CHUNK_BYTES;
    const { memory, owner } = this.#deps;
    const lease = await memory.take({ bytes, owner, evict: () => this.#evict() });
    if (this.#ended !== null) lease.release();
    else this.#lease = lease;
    this.#assertGoesOn();
  }

  async #putWhole(): Promise<void> {
    const { health } = this.#deps;
    this.#lease?.filled();
    this.#hasSent = true;
    await this.#pickSealing().request({ op: 'put', stream: this.#stream, patience: health.patience });
    health.stored();
  }

  /** Sends the full part. Frames of the next one may be sealed: less than a slot, not counted. */
  async #nextPart(): Promise<void> {
    this.#sendPart();
    this.#part++;
    this.#endOfPart += framesOfPart(this.#part);
    await this.#parts.at(-PARTS_UNDER_WAY - 1);
  }

  #sendPart(): void {
    const { objects, health } = this.#deps;
    const lease = this.#lease;
    this.#lease = null;
    lease?.filled();
    this.#hasSent = true;
    this.#uploadId ??= objects.initiate(this.#key, health.patience);
    const part = this.#storePart(this.#part).finally(() => lease?.release());
    part.catch((error: unknown) => {
      this.#failure ??= error;
    });
    this.#parts.push(part);
  }

  async #storePart(part: number): Promise<string> {
    const uploadId = await this.#uploadId;
    this.#assertGoesOn();
    const request = { op: 'part', stream: this.#stream, part, uploadId: uploadId ?? '' } as const;
    const { patience } = this.#deps.health;
    const { etag = '' } = await this.#pickSealing().request({ ...request, patience });
    this.#deps.health.stored();
    return etag;
  }

  async #complete(): Promise<void> {
    const { objects, storedBytes } = this.#deps;
    this.#sendPart();
    const etags = await Promise.all(this.#parts);
    this.#assertGoesOn();
    const uploadId = (await this.#uploadId) ?? '';
    const sizeBytes = storedBytes(this.#sizeBytes);
    await objects.complete(this.#key, { uploadId, etags, sizeBytes });
    this.#assertGoesOn();
    // The ETag covers all parts: nothing was lost on the way to S3.
    this.#forget();
  }

  #evict(): void {
    this.#ended ??= new AppError('overloaded', 'This upload was too slow while others waited for memory', {
      hint: 'Retry when there is less load, or ask the operator to raise CLOUDLET_BLOBS_MEMORY_MB',
      retryAfterSeconds: 10,
    });
    this.#forget();
    this.#releaseMemory();
  }

  /** Frees the threads' memory; running requests end soon. */
  #forget(): void {
    this.#deps.digests.discard();
    this.#sealing?.request({ op: 'discard', stream: this.#stream }).catch(() => {});
  }

  #releaseMemory(): void {
    this.#lease?.release();
    this.#lease = null;
  }

  #assertGoesOn(): void {
    if (this.#ended !== null) throw this.#ended;
    if (this.#failure !== undefined) throw this.#failure;
  }
}

function ended(): AppError {
  return new AppError('internal_error', 'This write has ended.');
}
