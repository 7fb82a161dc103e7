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
import { type BucketRow, BucketSql } from './bucket-sql.ts';
import { type Buckets, bucketNotFound } from './buckets.ts';
import { formatSize } from './entries.ts';
import type { EntryRow, ObjectSql, VersionRow } from './object-sql.ts';
import { PointCopies, type PointCopiesDeps } from './point-copies.ts';
import { PointSql } from './point-sql.ts';
import {
  batches,
  entriesIn,
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

/** Maximum of all accounts; each reads as fast as the target allows. */
const MAX_RESTORES = 4;
const COPIES_AT_ONCE = 4;
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
  /** Accounts with a restore or a preview in progress. */
  readonly #busy = new Set<number>();
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
    const { accountId } = principal;
    if (this.#busy.has(accountId) || this.#busy.size >= MAX_RESTORES) throw busy();
    this.#busy.add(accountId);
    try {
      const { point_id: pointId } = wanted;
      const isKnown = (await this.#pointsOf(principal)).some((point) => point.pointId === pointId);
      if (!isKnown) throw notIn(bucketName, pointId);
      return await this.#deps.points.during(pointId, async (point) => {
        const bucket = await this.#bucketIn(point, principal, bucketName);
        if (bucket === undefined) throw notIn(bucketName, pointId);
        return this.#restore(principal, { point, bucket }, wanted);
      });
    } finally {
      this.#busy.delete(accountId);
    }
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

  async #restore(principal: Principal, source: Source, wanted: NewBucketRestore): Promise<BucketRestore> {
    const { point_id, preview = false, to_bucket = source.bucket.name } = wanted;
    assertMayTake(principal, to_bucket, wanted);
    const entries = await entriesIn(source, wanted);
    const tally = new Tally();
    const target = await this.#find(principal, to_bucket);
    let refusal: string | null = null;
    if (preview) {
      for await (const step of this.#steps(entries, { target, wanted, tally })) tally.count(step);
      refusal = await this.#refusalOf(principal, target, { tally, name: to_bucket });
    } else {
      const to = target ?? (await this.#create(principal, source.bucket, to_bucket));
      await this.#assertActive(principal);
      await this.#copyAll(principal, source, {
        tally,
        bucket: to,
        steps: this.#steps(entries, { target: to, wanted, tally }),
        mayReplace: wanted.existing === 'replace',
        isOne: wanted.name !== undefined,
      });
    }
    const { objects, bytes: size, same, kept, replaced, refused, refusals } = tally;
    const counts = { objects, size, size_formatted: formatSize(size), same, kept, replaced };
    return {
      point_id,
      bucket: source.bucket.name,
      to_bucket,
      preview,
      ...counts,
      refused,
      refusals,
      refusal,
    };
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

  /** Yields the objects to restore, and counts the others. */
  async *#steps(
    entries: AsyncIterable<EntryRow> | readonly EntryRow[],
    how: { readonly target: BucketRow | undefined; readonly wanted: NewBucketRestore; readonly tally: Tally },
  ): AsyncGenerator<Step> {
    const { target: bucket, wanted, tally } = how;
    for await (const entry of entries) {
      this.#closing.signal.throwIfAborted();
      const { store } = this.#deps;
      const found = bucket && (await store.target(bucket.id, entry.name));
      const previous = found?.previous;
      if (previous === undefined) {
        yield { entry, replaces: false, freedBytes: 0 };
      } else if (await this.#isSame(entry, await store.version(previous.id))) {
        tally.same++;
      } else if (wanted.existing === 'replace') {
        const isKept = found?.versioning === VERSIONING.on;
        yield { entry, replaces: true, freedBytes: isKept ? 0 : previous.size_bytes };
      } else tally.kept++;
    }
  }

  async #isSame(then: VersionRow, now: VersionRow | undefined): Promise<boolean> {
    if (now === undefined || now.blob === null || !MEMBERS.every((name) => now[name] === then[name]))
      return false;
    return !(await new PointSql(this.#deps.metadata).isDamaged(now.blob));
  }

  async #copyAll(
    principal: Principal,
    source: Source,
    what: {
      readonly bucket: BucketRow;
      readonly steps: AsyncIterable<Step>;
      readonly tally: Tally;
      readonly mayReplace: boolean;
      readonly isOne: boolean;
    },
  ): Promise<void> {
    const { tally, mayReplace, isOne } = what;
    const copies = new PointCopies(this.#deps, source.point);
    for await (const steps of batches(what.steps)) {
      await this.#assertActive(principal);
      const bucket = await this.#deps.buckets.find(principal, what.bucket.name);
      if (bucket.id !== what.bucket.id) throw bucketNotFound(bucket.name);
      const copy = await copies.prepare(steps.map(({ entry }) => entry));
      const failed = new AbortController();
      const signal = AbortSignal.any([failed.signal, this.#closing.signal]);
      const copyOne = async (step: Step) => {
        try {
          await copy({ principal, source: source.bucket, entry: step.entry, bucket, mayReplace, signal });
          tally.count(step);
        } catch (error) {
          if (isAppError(error, 'precondition_failed')) tally.kept++;
          else if (!isOne && isOfOne(error)) tally.refuse(step.entry.name, error);
          else failed.abort(error);
        }
      };
      const queue = steps.values();
      const work = async () => {
        for (const step of queue) if (!signal.aborted) await copyOne(step);
      };
      await Promise.all(Array.from({ length: COPIES_AT_ONCE }, work));
      if (signal.aborted) throw after(tally, signal.reason);
    }
  }

  /** Throws `account_suspended`, `insufficient_credits`. */
  async #assertActive({ accountId }: Principal): Promise<void> {
    const account = await new PointSql(this.#deps.metadata).account(accountId);
    if (account?.is_active !== 1) throw new AppError('account_suspended', 'This account is suspended');
    await this.#deps.billing.assertCredit(accountId);
  }

  /** Why the restore of a preview would be refused now; null: it would not. */
  async #refusalOf(
    { accountId: account_id, bucketLimits }: Principal,
    target: BucketRow | undefined,
    { tally, name }: { readonly tally: Tally; readonly name: string },
  ): Promise<string | null> {
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

function busy(): AppError {
  return new AppError('overloaded', 'Objects are being restored from a recovery point already', {
    hint: 'Try again when that has ended',
    retryAfterSeconds: 10,
  });
}
