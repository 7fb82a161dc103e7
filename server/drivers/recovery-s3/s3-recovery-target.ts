/** Recovery points in a bucket of any S3. Each request that S3 answered is durable by itself. */
import type { S3Address } from '../../config/s3-address.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { programFile } from '../../platform/program-files.ts';
import { pieceLockEnd, pointLockEnd } from '../../recovery/repository/piece-locks.ts';
import {
  NotRemovable,
  type PieceStore,
  type Removal,
  type Target,
  TargetProblem,
  type TargetSpace,
} from '../../recovery/repository/target.ts';
import { PieceThreads } from '../recovery-pieces/piece-threads.ts';
import { S3Counters } from '../s3-client/s3-counters.ts';
import { isS3Fault } from '../s3-client/s3-fault.ts';
import { bodyOf, lockHeaders, S3Objects } from '../s3-client/s3-objects.ts';
import { type S3Limits, S3Requests } from '../s3-client/s3-requests.ts';
import { type BucketLock, type BucketProof, proveBucket } from './bucket-proof.ts';
import { explainS3 } from './explain-s3.ts';

/** Manifests and journals are JSON: a journal of a million keys has 60 MiB. */
const MAX_FILE_BYTES = 2 ** 30;
/** Limits while Cloudlet stops. */
const HURRIED: S3Limits = { tries: 1, silenceMs: 3000 };

export interface S3RecoveryTargetDeps {
  readonly address: S3Address;
  readonly clock: Clock;
  /** Whether an object of that key and MD5, in hex, belongs to this cloud. */
  readonly isOwn: (key: string, md5: string) => Promise<boolean>;
  /** See BucketProofDeps. */
  readonly lockDays: number;
}

export class S3RecoveryTarget implements Target {
  readonly location: string;
  readonly #deps: S3RecoveryTargetDeps;
  readonly #requests: S3Requests;
  readonly #objects: S3Objects;
  readonly #counters = new S3Counters();
  /** Worker threads by encryption key. */
  readonly #pieces = new Map<string, PieceThreads>();
  #cancel = new AbortController();
  #limits: S3Limits;
  #proof: Promise<BucketProof> | undefined;
  #removal: Removal = 'gone';
  #lock: BucketLock | null = null;
  /** Lengths of the objects that were listed last. */
  readonly #listed = new Map<string, number>();

  constructor(deps: S3RecoveryTargetDeps) {
    const { address, clock } = deps;
    this.#deps = deps;
    this.location = address.label;
    this.#requests = new S3Requests({ address, clock, counters: this.#counters });
    this.#objects = new S3Objects(this.#requests, address.prefix);
    this.#limits = { signal: this.#cancel.signal };
  }

  get removal(): Removal {
    return this.#removal;
  }

  pieces(key: Uint8Array): PieceStore {
    const id = Buffer.from(key).toString('hex');
    const explain = (cause: unknown) => explainS3(cause, this.location);
    const made =
      this.#pieces.get(id) ??
      new PieceThreads({
        thread: programFile('drivers/recovery-s3/s3-piece-thread'),
        setup: () => ({ address: this.#deps.address, counters: this.#counters.memory, lock: this.#lock }),
        key,
        explain,
        explainReading: explain,
      });
    this.#pieces.set(id, made);
    return made;
  }

  /** Proves the bucket, of whose space nothing is known. */
  async inspect(): Promise<TargetSpace> {
    try {
      await this.prove();
    } catch (error) {
      if (!(error instanceof AppError) || !(error.cause instanceof Error)) throw error;
      throw new TargetProblem(error.cause.message, error.hint ?? '', error);
    }
    return { isOnDataDisk: false, freeBytes: null };
  }

  /** Tests the bucket, once. Rejects with an AppError if it is unsuitable for recovery points. */
  prove(): Promise<BucketProof> {
    const { address, isOwn, clock, lockDays } = this.#deps;
    const about = {
      requests: this.#requests,
      objects: this.#objects,
      prefix: address.prefix,
      isOwn,
      clock,
      lockDays,
    };
    this.#proof ??= this.#told(proveBucket({ ...about, limits: this.#limits })).then(
      (proof) => {
        this.#removal = proof.removal;
        this.#lock = proof.lock;
        for (const pieces of this.#pieces.values()) pieces.setUpAnew();
        return proof;
      },
      (error: unknown) => {
        this.#proof = undefined;
        throw error;
      },
    );
    return this.#proof;
  }

  put(name: string, bytes: Uint8Array): Promise<void> {
    return this.#told(this.#objects.replace(name, bodyOf(bytes), this.#limits));
  }

  /** Locked: it is the manifest of a point, or the mark of a deleted one. */
  putSynced(name: string, bytes: Uint8Array): Promise<void> {
    const headers = this.#lockHeaders(pointLockEnd);
    return this.#told(this.#objects.replace(name, { ...bodyOf(bytes), headers }, this.#limits));
  }

  async create(name: string, bytes: Uint8Array): Promise<boolean> {
    // The lease depends on it.
    await this.prove();
    return this.#told(this.#create(name, bytes));
  }

  async #create(name: string, bytes: Uint8Array): Promise<boolean> {
    try {
      // The writers' files are useless later.
      const headers = name.includes('/') ? {} : this.#lockHeaders(pieceLockEnd);
      await this.#objects.put(name, { ...bodyOf(bytes), headers }, this.#limits);
      return true;
    } catch (error) {
      if (!isS3Fault(error, 'exists')) throw error;
      // An earlier attempt may have been stored although its answer was lost.
      return (await this.#objects.whole(name, MAX_FILE_BYTES, this.#limits))?.equals(bytes) === true;
    }
  }

  get(name: string): Promise<Buffer | undefined> {
    return this.#told(this.#objects.whole(name, MAX_FILE_BYTES, this.#limits));
  }

  async has(name: string): Promise<boolean> {
    return (await this.#told(this.#objects.head(name, this.#limits))) !== undefined;
  }

  async *list(folder: string): AsyncGenerator<string> {
    try {
      for await (const { key, sizeBytes } of this.#objects.list(`${folder}/`, this.#limits)) {
        this.#listed.clear();
        this.#listed.set(key, sizeBytes);
        yield key;
      }
    } catch (error) {
      throw explainS3(error, this.location);
    }
  }

  async remove(name: string): Promise<number> {
    const listed = this.#listed.get(name);
    const found = listed ?? (await this.#told(this.#objects.head(name, this.#limits)))?.sizeBytes;
    if (found === undefined) return 0;
    try {
      await this.#objects.remove(name, this.#limits);
    } catch (error) {
      if (!isS3Fault(error, 'denied')) throw explainS3(error, this.location);
      this.#removal = 'denied';
      throw new NotRemovable(`${this.location}: the key may not remove ${name}`, { cause: error });
    }
    return this.#removal === 'hidden' ? 0 : found;
  }

  /** S3 has no unfinished files: every file of a repository is stored by one request. */
  async removeUnfinished(): Promise<number> {
    return 0;
  }

  async sync(): Promise<void> {}

  get lockDays(): number {
    return this.#lock?.days ?? 0;
  }

  async renewLock(name: string): Promise<void> {
    if (this.#lock === null) return;
    const { mode, days } = this.#lock;
    const until = pieceLockEnd(days, this.#deps.clock.now());
    await this.#told(this.#objects.retain(name, { mode, until }, this.#limits));
  }

  #lockHeaders(endOf: (days: number, now: number) => number): Record<string, string> {
    if (this.#lock === null) return {};
    const { mode, days } = this.#lock;
    return lockHeaders({ mode, until: endOf(days, this.#deps.clock.now()) });
  }

  hurry(): void {
    this.#limits = HURRIED;
    this.#cancel.abort(explainS3(new Error('Cloudlet is stopping'), this.location));
    for (const pieces of this.#pieces.values()) pieces.close();
  }

  async #told<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw explainS3(error, this.location);
    }
  }
}
