/**
 * Blobs as objects of an S3 bucket, in the frames that files have (blob-frames/), so that a move is a copy.
 */
import type { S3Address } from '../../config/s3-address.ts';
import type { Alarms } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';
import { StartupError } from '../../platform/data-directory.ts';
import { isId, newId } from '../../platform/ids.ts';
import { programFile } from '../../platform/program-files.ts';
import type {
  BlobRange,
  BlobReader,
  BlobRef,
  BlobStore,
  BlobWriter,
  NewBlobOptions,
  RawBlob,
  RawCopy,
  StoredBlob,
} from '../../storage/blobs/blobs.ts';
import { BlobFault } from '../blob-frames/blob-fault.ts';
import { CRC_BYTES, fileLength, TAG_BYTES } from '../blob-frames/blob-format.ts';
import { BlobsUnderWay } from '../blob-frames/blobs-under-way.ts';
import { DigestStreams } from '../blob-frames/digest-streams.ts';
import { WorkerPool } from '../blob-frames/worker-pool.ts';
import { S3Counters } from '../s3-client/s3-counters.ts';
import { fixOf, isS3Fault } from '../s3-client/s3-fault.ts';
import { S3Objects } from '../s3-client/s3-objects.ts';
import { S3Requests } from '../s3-client/s3-requests.ts';
import { Ownership } from './ownership.ts';
import { PartMemory } from './part-memory.ts';
import { storeRawObject } from './raw-upload.ts';
import { S3Health } from './s3-health.ts';
import type { S3ThreadSetup } from './s3-messages.ts';
import { S3Source } from './s3-source.ts';
import { S3Target, type S3Threads } from './s3-target.ts';
import { BLOBS, keyOf } from './sealed-blob.ts';

export interface S3BlobStoreDeps {
  readonly address: S3Address;
  /** `cld-…`: the cloud that owns the blobs. */
  readonly cloudId: string;
  /** Whether a bucket without a mark may be claimed: not if this cloud's blobs must already be in it. */
  readonly mayMark: boolean;
  /** Worker threads. With one, hashing and sealing do not overlap. */
  readonly threads: number;
  /** Memory for parts of running uploads, bytes. */
  readonly memoryBytes: number;
  readonly clock: Clock;
  readonly alarms: Alarms;
}

/** No other limit ends such an old upload; S3 dates an object by the start of its upload. */
const ORPHAN_AGE_MS = 3 * 24 * 3_600_000;
/** Probe interval while S3 does not work. */
const PROBE_MS = 5000;
/** Reads ahead on one connection; a slow sink releases it. */
const PACE = { stallMs: 500, readAhead: 1, isPrompt: true, isWholeAtOnce: false };

export class S3BlobStore implements BlobStore {
  readonly minOrphanAgeMs = ORPHAN_AGE_MS;
  readonly counters = new S3Counters();
  readonly #deps: S3BlobStoreDeps;
  readonly #workers: S3Threads;
  readonly #underWay = new BlobsUnderWay();
  readonly #memory: PartMemory;
  readonly #requests: S3Requests;
  readonly #objects: S3Objects;
  readonly #health: S3Health;
  readonly #ownership: Ownership;
  #isClaimed = false;
  #claiming: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  private constructor(deps: S3BlobStoreDeps) {
    const { address, alarms, clock, threads, memoryBytes, cloudId, mayMark } = deps;
    this.#deps = deps;
    const setup: S3ThreadSetup = { address, counters: this.counters.memory };
    const script = programFile('drivers/blobs-s3/s3-worker');
    this.#workers = new WorkerPool({ script, setup, threads, alarms });
    this.#memory = new PartMemory({ limitBytes: memoryBytes, clock });
    this.#requests = new S3Requests({ address, counters: this.counters, clock });
    this.#objects = new S3Objects(this.#requests, address.prefix);
    this.#health = new S3Health({ alarms, label: address.label });
    this.#ownership = new Ownership({
      objects: this.#objects,
      cloudId,
      mayMark,
      now: () => clock.monotonic(),
    });
  }

  /**
   * Claims the bucket for this cloud. Throws a one-line StartupError if it is the wrong one. If S3
   * is unavailable, raises the alarm and resolves: the bucket is claimed when S3 responds.
   */
  static async open(deps: S3BlobStoreDeps): Promise<S3BlobStore> {
    const store = new S3BlobStore(deps);
    try {
      await store.#claim();
    } catch (error) {
      const cause = (error as Error).cause as BlobFault;
      if (!isS3Fault(cause) || isS3Fault(cause, 'away', 'full')) return store.#watched();
      await store.close();
      const { label } = deps.address;
      throw new StartupError(`The bucket ${label} is not usable: ${cause.message}. ${fixOf(cause)}`);
    }
    return store.#watched();
  }

  get works(): boolean {
    return this.#health.works;
  }

  /** Memory used by parts, bytes. */
  get partBytes(): number {
    return this.#memory.usedBytes;
  }

  async create({ dataKey, owner = 0, digests = [], onPieces }: NewBlobOptions): Promise<BlobWriter> {
    this.#underWay.assertMayWrite(dataKey);
    await this.#claimed();
    const name = newId('blob', this.#deps.clock);
    const tailBytes = dataKey === null ? CRC_BYTES : TAG_BYTES;
    const target = new S3Target({
      name,
      dataKey,
      owner,
      digests: new DigestStreams(digests, onPieces),
      workers: this.#workers,
      objects: this.#objects,
      health: this.#health,
      memory: this.#memory,
      storedBytes: (sizeBytes) => fileLength(sizeBytes, tailBytes),
    });
    return this.#underWay.write(name, target);
  }

  async read(ref: BlobRef, range: BlobRange, reader: BlobReader): Promise<void> {
    const reading = { ref, range, reader };
    if (!this.#underWay.mayRead(reading)) return;
    await this.#claimed();
    const health = this.#health;
    const source = new S3Source(ref, { workers: this.#workers, health });
    try {
      await this.#underWay.read(reading, source, PACE);
    } catch (error) {
      // The sink's own error, or the reason of the signal.
      if (!(error instanceof BlobFault)) throw error;
      // If the bucket was replaced or emptied, single blobs are not damaged.
      if (isS3Fault(error, 'missing')) await this.#explained(() => this.#ownership.assertStillOurs());
      throw health.explain(error);
    }
  }

  async remove(name: string): Promise<void> {
    const key = keyOf(name);
    await this.#claimed();
    await this.#explained(async () => {
      await this.#ownership.assertStillOurs();
      await this.#objects.remove(key);
    });
  }

  async *list(): AsyncIterable<StoredBlob> {
    await this.#claimed();
    for (const name of this.#underWay.names()) {
      yield { name, storedBytes: 0, modifiedAt: this.#deps.clock.now() };
    }
    const pages = this.#objects.list(BLOBS)[Symbol.asyncIterator]();
    for (;;) {
      const next = await this.#explained(() => pages.next());
      if (next.done) return;
      const { key, sizeBytes: storedBytes, modifiedAt } = next.value;
      const name = key.slice(key.lastIndexOf('/') + 1);
      if (!isId('blob', name) || key !== keyOf(name) || this.#underWay.hasWriter(name)) continue;
      yield { name, storedBytes, modifiedAt };
    }
  }

  isBeingWritten(name: string): boolean {
    return this.#underWay.isBeingWritten(name);
  }

  /** False unless the bucket still has this cloud's mark. */
  async isOurs(): Promise<boolean> {
    return this.#ownership.assertOurs().then(
      () => true,
      () => false,
    );
  }

  async removeUnfinished(before: number): Promise<number> {
    await this.#claimed();
    return this.#explained(async () => {
      let removed = 0;
      await this.#ownership.assertStillOurs();
      for await (const { key, uploadId, startedAt } of this.#objects.uploads(BLOBS)) {
        if (startedAt > before || this.isBeingWritten(key.slice(key.lastIndexOf('/') + 1))) continue;
        await this.#objects.abandon(key, uploadId);
        removed++;
      }
      return removed;
    });
  }

  raw(name: string): RawBlob {
    const path = keyOf(name);
    const open = async () => {
      await this.#claimed();
      return this.#explained(() => this.#objects.bytes(path));
    };
    return { path, open };
  }

  async storedBytes(name: string): Promise<number | undefined> {
    await this.#claimed();
    return this.#explained(async () => (await this.#objects.head(keyOf(name)))?.sizeBytes);
  }

  async storeRaw(copy: RawCopy): Promise<void> {
    await this.#claimed();
    await this.#explained(() => storeRawObject(this.#objects, copy));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#underWay.close();
    await this.#workers.close();
    this.#requests.close();
  }

  #watched(): this {
    this.#timer = setInterval(() => {
      if (!this.#health.works) void this.#claim().catch(() => {});
    }, PROBE_MS).unref();
    return this;
  }

  /** Resolves when the bucket is known to be this cloud's. Rejects with AppError. */
  async #claimed(): Promise<void> {
    this.#underWay.assertOpen();
    if (!this.#isClaimed) await this.#claim();
  }

  /** Tests the bucket; concurrent calls share a test. Rejects with AppError. */
  #claim(): Promise<void> {
    this.#claiming ??= this.#explained(() => this.#ownership.claim(this.#health.patience))
      .then(() => {
        this.#isClaimed = true;
        this.#health.recovered();
      })
      .finally(() => {
        this.#claiming = null;
      });
    return this.#claiming;
  }

  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#health.explain(error);
    }
  }
}
