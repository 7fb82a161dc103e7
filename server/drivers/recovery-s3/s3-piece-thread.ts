/** The thread that works on the pieces in a bucket: sealed pieces as objects. */
import { workerData } from 'node:worker_threads';
import type { S3Address } from '../../config/s3-address.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import { Damaged } from '../../recovery/repository/piece-box.ts';
import { pieceLockEnd } from '../../recovery/repository/piece-locks.ts';
import { pieceFile } from '../../recovery/repository/repository.ts';
import type { PieceSetup, PieceStorage } from '../recovery-pieces/piece-storage.ts';
import { answerPieceJobs } from '../recovery-pieces/piece-work.ts';
import { S3Counters } from '../s3-client/s3-counters.ts';
import { isS3Fault } from '../s3-client/s3-fault.ts';
import { bodyOf, lockHeaders, S3Objects } from '../s3-client/s3-objects.ts';
import { type S3Patience, S3Requests } from '../s3-client/s3-requests.ts';
import type { BucketLock } from './bucket-proof.ts';

const DAY_MS = 86_400_000;

/** Retries for long enough that a restart of S3 does not end a recovery point. */
const PATIENCE: S3Patience = { tries: 10, untilMs: 60_000 };
/** A sealed piece has at most 4 MiB of content. */
const MAX_PIECE_BYTES = 5 * 2 ** 20;

class S3Pieces implements PieceStorage {
  readonly atOnce = 4;
  readonly readings = 2;
  readonly #objects: S3Objects;
  readonly #lock: BucketLock | null;
  readonly #clock: Clock;

  /** `lock`: null: pieces are not locked. */
  constructor(objects: S3Objects, lock: BucketLock | null, clock: Clock) {
    this.#objects = objects;
    this.#lock = lock;
    this.#clock = clock;
  }

  async has(piece: string): Promise<boolean> {
    try {
      const found = await this.#objects.head(pieceFile(piece), PATIENCE);
      if (found === undefined) return false;
      // The lock of a shared piece may end up to a day before that of the new point.
      const lasts = this.#lock === null || found.lockedUntil + DAY_MS >= this.#lockEnd(this.#lock);
      if (!lasts) await this.renewLock(piece);
      return true;
    } catch (error) {
      // A HEAD answer has no body with the reason; the answer to the following PUT has.
      if (isS3Fault(error, 'denied', 'refused')) return false;
      throw error;
    }
  }

  async put(piece: string, parts: readonly Buffer[]): Promise<number> {
    const { mode = 'GOVERNANCE' } = this.#lock ?? {};
    const headers = this.#lock === null ? {} : lockHeaders({ mode, until: this.#lockEnd(this.#lock) });
    await this.#objects.replace(pieceFile(piece), { ...bodyOf(...parts), headers }, PATIENCE);
    return parts.reduce((sum, { length }) => sum + length, 0);
  }

  async renewLock(piece: string): Promise<void> {
    if (this.#lock === null) return;
    const { mode } = this.#lock;
    await this.#objects.retain(pieceFile(piece), { mode, until: this.#lockEnd(this.#lock) }, PATIENCE);
  }

  #lockEnd({ days }: BucketLock): number {
    return pieceLockEnd(days, this.#clock.now());
  }

  async get(piece: string): Promise<Buffer> {
    const sealed = await this.#objects.whole(pieceFile(piece), MAX_PIECE_BYTES, PATIENCE);
    if (sealed === undefined) throw new Damaged(`the piece ${piece} is missing`, 'missing');
    return sealed;
  }
}

interface Setup extends PieceSetup {
  readonly address: S3Address;
  readonly counters: SharedArrayBuffer;
  readonly lock: BucketLock | null;
}

const { address, counters: memory, lock, ...setup } = workerData as Setup;
const requests = new S3Requests({ address, clock: systemClock, counters: new S3Counters(memory) });
answerPieceJobs(new S3Pieces(new S3Objects(requests, address.prefix), lock, systemClock), setup);
