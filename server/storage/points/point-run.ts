/** A running restore of objects: remaining and finished work. */
import { type Principal, type Progress, permits, type Work } from '../../calls/principal.ts';
import { type CallEntry, type InFirst, inFirstCommit } from '../../metadata/change.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import { formatSize } from '../listing/entries.ts';
import type { BucketRestore, NewBucketRestore } from '../schema.ts';
import { isCopied, type Place, type Step, Tally } from './point-steps.ts';

interface Behind {
  /** The account that owns the bucket in the point; default: the caller's. */
  readonly owner?: number;
  readonly work?: Work | undefined;
  readonly entry?: CallEntry | undefined;
}

/** A restore, or its preview, between portions. */
export class Run {
  readonly principal: Principal;
  readonly bucketName: string;
  readonly toBucket: string;
  readonly wanted: NewBucketRestore;
  readonly isPreview: boolean;
  /** The account that owns the bucket in the point. */
  readonly owner: number;
  /** Whether access control lists of objects and the policy of the bucket are restored. */
  readonly mayShare: boolean;
  readonly tally = new Tally();
  /** The live bucket, once it exists. */
  target: BucketRow | undefined;
  /** Remaining steps of the last batch. */
  left: Step[] = [];
  /** Position after the batches read so far. */
  place: Place | undefined;
  isBegun = false;
  /** Length of the portion. */
  portionMs = 0;
  /** Whether the target bucket has object lock. */
  locks = false;
  refusal: string | null = null;
  /** Stores the entry of the call in the first commit. */
  readonly inFirst: InFirst;
  readonly #work: Work | undefined;
  #total: Pick<Progress, 'total' | 'totalBytes'> = { total: null, totalBytes: null };
  #isLast = false;

  constructor(
    principal: Principal,
    bucketName: string,
    { owner = principal.accountId, work, entry, ...wanted }: NewBucketRestore & Behind,
  ) {
    this.#work = work;
    this.inFirst = inFirstCommit(entry);
    this.principal = principal;
    this.owner = owner;
    this.mayShare = owner === principal.accountId && permits(principal, 'storage:admin');
    this.bucketName = bucketName;
    this.wanted = wanted;
    this.toBucket = wanted.to_bucket ?? bucketName;
    this.isPreview = wanted.preview ?? false;
  }

  get isOver(): boolean {
    return this.#isLast && this.left.length === 0;
  }

  get signals(): readonly AbortSignal[] {
    return this.#work === undefined ? [] : [this.#work.signal];
  }

  /** Whether the counts of a whole bucket are known. */
  expect({ object_count, size_bytes, version_count, total_bytes }: BucketRow): void {
    const { name, prefix = '', versions } = this.wanted;
    if (name !== undefined || prefix !== '') return;
    this.#total =
      versions === true
        ? { total: version_count, totalBytes: total_bytes }
        : { total: object_count, totalBytes: size_bytes };
  }

  tell(step: Step): void {
    const { tally } = this;
    tally.see(step);
    this.#work?.report({ done: tally.seen, bytes: tally.seenBytes, ...this.#total });
  }

  take(batch: Step[], isLast: boolean): void {
    this.left = batch;
    this.#isLast = isLast;
    this.place = batch.at(-1)?.place ?? this.place;
  }

  /** The next step; with histories, all next steps of a name, which must run in sequence. */
  shift(): Step[] {
    const { left, wanted } = this;
    const { name } = left[0]?.entry ?? {};
    const other = wanted.versions === true ? left.findIndex(({ entry }) => entry.name !== name) : 1;
    return left.splice(0, other < 0 ? left.length : other);
  }

  answer(): BucketRestore {
    const { objects, markers, bytes: size, same, kept, replaced, refused, refusals, leftOut } = this.tally;
    return {
      point_id: this.wanted.point_id,
      bucket: this.bucketName,
      to_bucket: this.toBucket,
      preview: this.isPreview,
      objects,
      markers,
      size,
      size_formatted: formatSize(size),
      same,
      kept,
      replaced,
      refused,
      refusals,
      left_out: [...leftOut.values()],
      refusal: this.refusal,
    };
  }
}

interface Chain {
  readonly isOver: () => boolean;
  /** Resolves with the version id that the next version must follow. */
  readonly copyOne: (step: Step, after: string | null) => Promise<string | null>;
  readonly putBack: (rest: readonly Step[]) => void;
}

/** In sequence: each version of a name must follow the previous one. */
export async function inOrder(steps: readonly Step[], { isOver, copyOne, putBack }: Chain): Promise<void> {
  let head = steps.find(isCopied)?.after ?? null;
  for (const [at, step] of steps.entries()) {
    if (at > 0 && isOver()) {
      putBack(steps.slice(at).map((left) => (isCopied(left) ? { ...left, after: head } : left)));
      return;
    }
    head = await copyOne(step, head);
  }
}
