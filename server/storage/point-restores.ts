/**
 * Owners restore objects from recovery points: a bucket, a prefix, one object or one version, into the same
 * or another bucket. Each object is an ordinary upload: a new version, counted and charged. Equal live
 * objects are skipped, so an interrupted call can be repeated. A live object is replaced only if the caller
 * says so.
 */
import { type Call, mayTouch, type Principal } from '../calls/principal.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { formatTime } from '../platform/clock.ts';
import { AppError, type ErrorCode, invalidField, isAppError } from '../platform/errors.ts';
import { plural } from '../platform/plural.ts';
import { RestoreTurns } from '../resources/restore-turns.ts';
import { type BucketRow, BucketSql } from './bucket-sql.ts';
import { type Buckets, bucketNotFound } from './buckets.ts';
import { formatSize } from './entries.ts';
import type { EntryRow, ObjectSql, VersionRow } from './object-sql.ts';
import { PointCopies, type PointCopiesDeps } from './point-copies.ts';
import { PointSql } from './point-sql.ts';
import {
  batchOf,
  entriesIn,
  isCopied,
  type OpenPoint,
  type Source,
  type Step,
  type StoragePoints,
  Tally,
} from './point-steps.ts';
import { type BucketPoint, type BucketRestore, type NewBucketRestore, VERSIONING } from './schema.ts';
import type { StorageBilling } from './storage-billing.ts';

export interface PointRestoresDeps extends PointCopiesDeps {
  readonly points: StoragePoints;
  readonly store: ObjectSql;
  readonly buckets: Buckets;
  readonly billing: StorageBilling;
  /** Throws `out_of_space` unless that many bytes more may be stored. */
  readonly assertSpace: (bytes: number) => void;
}

const COPIES_AT_ONCE = 4;
/** After this a restore lets others go first, between two objects. */
const PORTION_MS = 5000;
/** Errors of one object that do not end the restore of the others. */
const OF_ONE: readonly ErrorCode[] = [
  'encryption_key_not_found',
  'encryption_key_disabled',
  'customer_key_required',
  'payload_too_large',
  'data_corrupted',
  'version_not_found',
];

function isOfOne(error: unknown): error is AppError {
  return isAppError(error) && OF_ONE.includes(error.code);
}

export class PointRestores {
  readonly #deps: PointRestoresDeps;
  /** Previews too. */
  readonly #turns = new RestoreTurns({ what: 'objects' });
  readonly #closing = new AbortController();

  constructor(deps: PointRestoresDeps) {
    this.#deps = deps;
  }

  /** The sound points since the account was made, newest first. The bucket need not exist any more. */
  async list(principal: Principal, bucketName: string): Promise<BucketPoint[]> {
    assertMayEnter(principal, bucketName);
    const points = await this.#pointsOf(principal);
    return points.map(({ pointId, createdAt }) => ({ point_id: pointId, created_at: formatTime(createdAt) }));
  }

  /**
   * Resolves when everything is on disk; what was restored before an error stays. Throws `point_not_found`
   * for a point without the bucket, `object_not_found`, `version_not_found`, `overloaded`, and what an upload
   * throws.
   */
  async restore(call: Call, bucketName: string, wanted: NewBucketRestore): Promise<BucketRestore> {
    const { principal } = call;
    assertMayTake(principal, bucketName, wanted);
    if (wanted.version_id !== undefined && wanted.name === undefined) {
      throw invalidField('name', 'must be given with version_id');
    }
    if (wanted.name !== undefined && wanted.prefix !== undefined) {
      throw invalidField('prefix', 'must not be given with name');
    }
    return this.#turns.inPortions(principal.accountId, async (turn) => {
      const { point_id: pointId } = wanted;
      const isKnown = (await this.#pointsOf(principal)).some((point) => point.pointId === pointId);
      if (!isKnown) throw notIn(bucketName, pointId);
      const run = new Run(principal, bucketName, wanted);
      const portion = () => this.#deps.points.during(pointId, (point) => this.#portion(run, point));
      while (!run.isOver) {
        try {
          await turn(portion);
        } catch (error) {
          throw after(run.tally, error);
        }
      }
      return run.answer();
    });
  }

  /** Ends restores in progress with `shutting_down`. */
  stop(): void {
    this.#closing.abort(new AppError('shutting_down', 'Cloudlet is shutting down'));
  }

  async #pointsOf({ accountId }: Principal) {
    const account = await new PointSql(this.#deps.metadata).account(accountId);
    if (account === undefined) return [];
    const points = await this.#deps.points.points();
    return points.filter(({ createdAt }) => createdAt >= account.created_at);
  }

  /** The bucket of this very account: a number alone might have been another's in a cloud that was lost. */
  async #bucketIn({ reads }: OpenPoint, { accountId }: Principal, name: string) {
    const [now, then] = [
      await new PointSql(this.#deps.metadata).account(accountId),
      await new PointSql(reads).account(accountId),
    ];
    if (now === undefined || now.created_at !== then?.created_at) return undefined;
    return new BucketSql(reads).find(accountId, name);
  }

  /** Goes on until others wait for their turn. */
  async #portion(run: Run, point: OpenPoint): Promise<void> {
    const { principal, wanted, bucketName, toBucket, tally } = run;
    const bucket = await this.#bucketIn(point, principal, bucketName);
    if (bucket === undefined) throw notIn(bucketName, wanted.point_id);
    assertMayTake(principal, toBucket, wanted);
    const source = { point, bucket };
    if (run.left.length === 0) {
      const entries = await entriesIn(source, wanted, run.after);
      run.target ??= await this.#find(principal, toBucket);
      if (!run.isPreview) run.target ??= await this.#create(principal, bucket, toBucket);
      const { batch, isLast } = await batchOf(this.#steps(entries, run));
      run.take(batch, isLast);
    }
    if (run.isPreview) for (const step of run.left.splice(0)) tally.count(step);
    else if (run.target !== undefined) await this.#copyAll(run, source, run.target);
    if (run.isOver && run.isPreview) run.refusal = await this.#refusalOf(run);
  }

  async #find(principal: Principal, name: string): Promise<BucketRow | undefined> {
    try {
      return await this.#deps.buckets.find(principal, name);
    } catch (error) {
      if (isAppError(error, 'bucket_not_found')) return undefined;
      throw error;
    }
  }

  /** Makes the target like the bucket of the point, without rights of others. */
  async #create(principal: Principal, { region, versioning, encryption }: BucketRow, name: string) {
    const like = { name, region, versioning: versioning === VERSIONING.on, encryption: encryption === 1 };
    await this.#deps.buckets.create({ ...BACKGROUND, principal }, like);
    return this.#deps.buckets.find(principal, name);
  }

  async *#steps(
    entries: AsyncIterable<EntryRow> | readonly EntryRow[],
    { target: bucket, wanted }: Run,
  ): AsyncGenerator<Step> {
    for await (const entry of entries) {
      this.#closing.signal.throwIfAborted();
      const { store } = this.#deps;
      const found = bucket && (await store.target(bucket.id, entry.name));
      const previous = found?.previous;
      const step = { entry, freedBytes: 0 };
      if (previous === undefined) yield { ...step, kind: 'new' };
      else if (await this.#isSame(entry, await store.version(previous.id))) yield { ...step, kind: 'same' };
      else if (wanted.existing !== 'replace') yield { ...step, kind: 'keep' };
      else {
        const isKept = found?.versioning === VERSIONING.on;
        yield { entry, kind: 'replace', freedBytes: isKept ? 0 : previous.size_bytes };
      }
    }
  }

  async #isSame(then: VersionRow, now: VersionRow | undefined): Promise<boolean> {
    if (now === undefined || now.blob === null || !MEMBERS.every((name) => now[name] === then[name]))
      return false;
    return !(await new PointSql(this.#deps.metadata).isDamaged(now.blob));
  }

  /** Takes steps off until none is left, or others wait. */
  async #copyAll(run: Run, source: Source, target: BucketRow): Promise<void> {
    const { principal, tally, left, wanted } = run;
    await this.#assertActive(principal);
    const bucket = await this.#deps.buckets.find(principal, target.name);
    if (bucket.id !== target.id) throw bucketNotFound(bucket.name);
    const copies = new PointCopies(this.#deps, source.point);
    const copied = left.filter(isCopied).map(({ entry }) => entry);
    const copy = await copies.prepare(copied);
    const failed = new AbortController();
    const signal = AbortSignal.any([failed.signal, this.#closing.signal]);
    const mayReplace = wanted.existing === 'replace';
    const copyOne = async (step: Step) => {
      try {
        if (isCopied(step)) {
          await copy({ principal, source: source.bucket, entry: step.entry, bucket, mayReplace, signal });
        }
        tally.count(step);
      } catch (error) {
        if (isAppError(error, 'precondition_failed')) tally.kept++;
        else if (wanted.name === undefined && isOfOne(error)) tally.refuse(step.entry.name, error);
        else failed.abort(error);
      }
    };
    const isLongEnough = this.#portionEnd();
    const work = async () => {
      do {
        const step = left.shift();
        if (step === undefined) return;
        await copyOne(step);
      } while (!signal.aborted && !isLongEnough());
    };
    await Promise.all(Array.from({ length: COPIES_AT_ONCE }, work));
    signal.throwIfAborted();
  }

  #portionEnd(): () => boolean {
    const { clock, points } = this.#deps;
    const end = clock.now() + PORTION_MS;
    return () => (this.#turns.isWanted || points.isWanted) && clock.now() >= end;
  }

  /** Throws `account_suspended`, `insufficient_credits`. */
  async #assertActive({ accountId }: Principal): Promise<void> {
    const account = await new PointSql(this.#deps.metadata).account(accountId);
    if (account?.is_active !== 1) throw new AppError('account_suspended', 'This account is suspended');
    await this.#deps.billing.assertCredit(accountId);
  }

  /** Why the restore of a preview would be refused now; null: it would not. */
  async #refusalOf({ principal, target, tally, toBucket: name }: Run): Promise<string | null> {
    const { accountId: account_id, bucketLimits } = principal;
    const { billing, assertSpace } = this.#deps;
    try {
      await billing.assertCredit(account_id);
      if (target === undefined && bucketLimits !== null) throw bucketNotFound(name);
      if (target === undefined) await billing.bucketCreated({ id: 0, account_id, name });
      await billing.bytesKept({ id: target?.id ?? 0, account_id }, tally.bytes - tally.freedBytes);
      assertSpace(tally.bytes);
      return null;
    } catch (error) {
      if (isAppError(error)) return error.message;
      throw error;
    }
  }
}

/** A restore, or its preview, between portions. */
class Run {
  readonly principal: Principal;
  readonly bucketName: string;
  readonly toBucket: string;
  readonly wanted: NewBucketRestore;
  readonly isPreview: boolean;
  readonly tally = new Tally();
  /** The live bucket, once it is there. */
  target: BucketRow | undefined;
  /** Steps of the last batch that are not done. */
  left: Step[] = [];
  /** Name of the last one of the batches so far. */
  after: string | undefined;
  refusal: string | null = null;
  #isLast = false;

  constructor(principal: Principal, bucketName: string, wanted: NewBucketRestore) {
    this.principal = principal;
    this.bucketName = bucketName;
    this.wanted = wanted;
    this.toBucket = wanted.to_bucket ?? bucketName;
    this.isPreview = wanted.preview ?? false;
  }

  get isOver(): boolean {
    return this.#isLast && this.left.length === 0;
  }

  take(batch: Step[], isLast: boolean): void {
    this.left = batch;
    this.#isLast = isLast;
    this.after = batch.at(-1)?.entry.name ?? this.after;
  }

  answer(): BucketRestore {
    const { objects, bytes: size, same, kept, replaced, refused, refusals } = this.tally;
    return {
      point_id: this.wanted.point_id,
      bucket: this.bucketName,
      to_bucket: this.toBucket,
      preview: this.isPreview,
      ...{ objects, size, size_formatted: formatSize(size), same, kept, replaced },
      refused,
      refusals,
      refusal: this.refusal,
    };
  }
}

/** Members in which equal versions agree. */
const MEMBERS = ['size_bytes', 'etag', 'mime_type', 'metadata', 'headers', 'tags', 'checksum'] as const;

/** The error of a restore that got so far. */
function after({ objects }: Tally, error: unknown): unknown {
  if (!isAppError(error) || objects === 0) return error;
  const detail = `${error.message}; ${plural(objects, 'object')} had been restored`;
  const again = 'Repeat the call to go on: what is there already is skipped';
  const hint = error.hint === undefined ? again : `${error.hint}. ${again}`;
  return new AppError(error.code, detail, { hint, cause: error });
}

function assertMayEnter({ bucketLimits }: Principal, bucket: string): void {
  if (bucketLimits !== null && !bucketLimits.some((limit) => limit.bucket === bucket))
    throw bucketNotFound(bucket);
}

/** Throws `bucket_not_found` and `scope_required` unless the key's limits cover all that is wanted. */
function assertMayTake(principal: Principal, bucket: string, { name, prefix = '' }: NewBucketRestore): void {
  assertMayEnter(principal, bucket);
  if (mayTouch(principal, bucket, name ?? prefix)) return;
  throw new AppError('scope_required', `This key's limits do not cover ${name ?? `${prefix}*`} in ${bucket}`);
}

function notIn(bucket: string, pointId: string): AppError {
  return new AppError('point_not_found', `No recovery point ${pointId} has a bucket ${bucket} of yours`, {
    hint: `GET /api/buckets/${bucket}/points lists your recovery points`,
  });
}
