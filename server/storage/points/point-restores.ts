/**
 * Owners restore objects from recovery points: a bucket, a prefix, one object or one version, into the same
 * or another bucket. Each object is an ordinary upload: a new version, counted and charged. Equal live
 * objects are skipped, so an interrupted call can be repeated. A live object is replaced only if the caller
 * says so. With all versions, the histories of names come back as they were: see point-histories.ts.
 */
import { type Call, mayTouch, type Principal } from '../../calls/principal.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError, type ErrorCode, invalidField, isAppError } from '../../platform/errors.ts';
import { plural } from '../../platform/plural.ts';
import { RestoreTurns, type Turn } from '../../resources/restore-turns.ts';
import { bucketNotFound } from '../buckets/bucket-errors.ts';
import { settingsOf } from '../buckets/bucket-settings.ts';
import { type BucketRow, BucketSql } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import { isLocked } from '../objects/object-lock.ts';
import type { EntryRow, ObjectSql, VersionRow } from '../objects/object-sql.ts';
import { type BucketPoint, type BucketRestore, type NewBucketRestore, VERSIONING } from '../schema.ts';
import type { StorageBilling } from '../storage-billing.ts';
import { assertFits, likeBucket } from './point-buckets.ts';
import { PointCopies, type PointCopiesDeps } from './point-copies.ts';
import { historyEntries, historySteps } from './point-histories.ts';
import { inOrder, Run } from './point-run.ts';
import { PointSql } from './point-sql.ts';
import {
  batchOf,
  entriesIn,
  isCopied,
  type OpenPoint,
  type Source,
  type Step,
  type StoragePoints,
  type Tally,
} from './point-steps.ts';

export interface PointRestoresDeps extends PointCopiesDeps {
  readonly points: StoragePoints;
  readonly store: ObjectSql;
  readonly buckets: Buckets;
  readonly billing: StorageBilling;
  /** Throws `out_of_space` unless that many more bytes may be stored. */
  readonly assertSpace: (bytes: number) => void;
}

/** The bucket of an account in a point. */
interface From {
  readonly pointId: string;
  readonly accountId: number;
}

const COPIES_AT_ONCE = 4;
/**
 * After this time, a restore lets other restores run, between two objects. It grows with the time for
 * opening the point: otherwise most time would be spent on opening points.
 */
const PORTION = { openings: 4, leastMs: 1000, mostMs: 10_000 };
/** Errors that concern one object; the restore continues with the others. */
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
  /** Includes previews. */
  readonly #turns = new RestoreTurns({ what: 'objects' });
  readonly #closing = new AbortController();

  constructor(deps: PointRestoresDeps) {
    this.#deps = deps;
  }

  /**
   * The intact points since the account was created, newest first, for a bucket of the account, or
   * one that it deleted recently. Throws `bucket_not_found`.
   */
  async list(principal: Principal, bucketName: string): Promise<BucketPoint[]> {
    assertMayEnter(principal, bucketName);
    if (!(await this.#deps.buckets.wasOf(principal, bucketName))) throw bucketNotFound(bucketName);
    const points = await this.#pointsOf(principal);
    return points.map(({ pointId, createdAt }) => ({ point_id: pointId, created_at: formatTime(createdAt) }));
  }

  /**
   * Resolves when everything is on disk; objects restored before an error remain. Throws
   * `point_not_found` for a point without the bucket, `object_not_found`, `version_not_found`,
   * `overloaded`, and the errors of an upload.
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
    if (wanted.versions === true) {
      if (wanted.name !== undefined) throw invalidField('name', 'must not be given with versions');
      if (wanted.existing === 'replace')
        throw invalidField('existing', 'must be keep, or absent, with versions');
    }
    const run = new Run(principal, bucketName, { ...wanted, work: call.work, entry: call.entry });
    return this.#turns.inPortions(principal.accountId, this.#signalOf(run), async (turn) => {
      const { point_id: pointId } = wanted;
      const isKnown = (await this.#pointsOf(principal)).some((point) => point.pointId === pointId);
      if (!isKnown) throw notIn(bucketName, pointId);
      return this.#inPortions(run, turn);
    });
  }

  /**
   * The bucket of another account in the point, with all versions, as a bucket of the caller with
   * the same name: for administrators. Continues an earlier call. Throws the errors of restore().
   */
  async restoreFrom(
    { principal, work, entry }: Call,
    bucketName: string,
    from: From,
  ): Promise<BucketRestore> {
    const { pointId: point_id, accountId: owner } = from;
    // Reports once for the whole call, not for each bucket.
    const heard = work && { signal: work.signal, report: () => {} };
    const run = new Run(principal, bucketName, { point_id, versions: true, owner, work: heard, entry });
    const signal = this.#signalOf(run);
    return this.#turns.inPortions(principal.accountId, signal, (turn) => this.#inPortions(run, turn));
  }

  #signalOf({ signals }: Run): AbortSignal {
    return AbortSignal.any([this.#closing.signal, ...signals]);
  }

  async #inPortions(run: Run, turn: Turn): Promise<BucketRestore> {
    const { point_id: pointId } = run.wanted;
    const { points, clock } = this.#deps;
    const portion = () => {
      const asked = clock.now();
      return points.during(pointId, (point) => {
        const length = (clock.now() - asked) * PORTION.openings;
        run.portionMs = Math.min(PORTION.mostMs, Math.max(PORTION.leastMs, length));
        return this.#portion(run, point);
      });
    };
    while (!run.isOver) {
      try {
        await turn(portion);
      } catch (error) {
        throw after(run.tally, error);
      }
    }
    return run.answer();
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

  /** The bucket of this account: in a cloud that was lost, the same number may have belonged to another. */
  async #bucketIn({ reads }: OpenPoint, { principal: { accountId }, owner, bucketName: name }: Run) {
    if (owner !== accountId) return new BucketSql(reads).find(owner, name);
    const [now, then] = [
      await new PointSql(this.#deps.metadata).account(accountId),
      await new PointSql(reads).account(accountId),
    ];
    if (now === undefined || now.created_at !== then?.created_at) return undefined;
    return new BucketSql(reads).find(accountId, name);
  }

  /** Continues until another restore waits for its turn. */
  async #portion(run: Run, point: OpenPoint): Promise<void> {
    const { principal, wanted, bucketName, toBucket } = run;
    const bucket = await this.#bucketIn(point, run);
    if (bucket === undefined) throw notIn(bucketName, wanted.point_id);
    assertMayTake(principal, toBucket, wanted);
    const source = { point, bucket };
    run.expect(bucket);
    if (run.left.length === 0) {
      const steps = await this.#stepsOf(run, source);
      const { batch, isLast } = await batchOf(steps);
      run.take(batch, isLast);
    }
    if (run.isPreview) for (const step of run.left.splice(0)) this.#count(run, step);
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

  /** Creates the bucket to restore into, if missing, when the first steps are requested. */
  async #stepsOf(run: Run, source: Source): Promise<AsyncIterable<Step>> {
    const { principal, wanted, toBucket: name, place, isPreview, tally } = run;
    const entries = wanted.versions === true ? undefined : await entriesIn(source, wanted, place?.name);
    if (!run.isBegun) {
      run.isBegun = true;
      run.target = await this.#find(principal, name);
      if (run.target === undefined) {
        const { like, leftOut } = await likeBucket(source.bucket, {
          metadata: this.#deps.metadata,
          accountId: principal.accountId,
          mayShare: run.mayShare,
          name,
          wanted,
        });
        run.locks = settingsOf(like).lock !== undefined;
        for (const { what, reason, count } of leftOut) tally.leaveOut(what, reason, count);
        if (!isPreview) {
          await run.inFirst(({ record }) => this.#deps.buckets.create({ record, principal }, { name, like }));
          run.target = await this.#deps.buckets.find(principal, name);
        }
      } else {
        if (wanted.versions === true) assertFits(source.bucket, run.target);
        run.locks = settingsOf(run.target).lock !== undefined;
      }
    }
    if (entries !== undefined) return this.#steps(entries, run);
    const { prefix = '' } = wanted;
    const histories = historyEntries(source.point.reads, source.bucket.id, { prefix, place });
    return historySteps(this.#deps.store, histories, { bucketId: run.target?.id, place });
  }

  /** Counts a step, done or previewed. */
  #count(run: Run, step: Step): void {
    const { tally, wanted, mayShare, locks } = run;
    tally.count(step);
    const { entry } = step;
    if (!isCopied(step) || entry.blob === null) return;
    const isHistory = wanted.versions === true;
    if (entry.acl !== null && !(isHistory && mayShare)) {
      tally.leaveOut('acl', isHistory ? ACL_NEEDS : ACL_STAYS);
    }
    if (!isHistory && !locks && isLocked(entry, this.#deps.lockTime())) tally.leaveOut('lock', NO_LOCKS);
  }

  async *#steps(entries: AsyncIterable<EntryRow> | readonly EntryRow[], run: Run): AsyncGenerator<Step> {
    const { target: bucket, wanted } = run;
    const signal = this.#signalOf(run);
    for await (const entry of entries) {
      signal.throwIfAborted();
      const { store } = this.#deps;
      const found = bucket && (await store.target(bucket.id, entry.name));
      const previous = found?.previous;
      const place = { name: entry.name, id: entry.id, met: 0, isOther: false };
      const step = { entry, freedBytes: 0, place };
      if (previous === undefined) yield { ...step, kind: 'new' };
      else if (await this.#isSame(entry, await store.version(previous.id))) yield { ...step, kind: 'same' };
      else if (wanted.existing !== 'replace') yield { ...step, kind: 'keep' };
      else {
        const isKept = found?.versioning === VERSIONING.on;
        yield {
          ...step,
          kind: 'replace',
          freedBytes: isKept ? 0 : previous.size_bytes + previous.metadata_bytes,
        };
      }
    }
  }

  async #isSame(then: VersionRow, now: VersionRow | undefined): Promise<boolean> {
    if (now === undefined || now.blob === null || !MEMBERS.every((name) => now[name] === then[name]))
      return false;
    return !(await new PointSql(this.#deps.metadata).isDamaged(now.blob));
  }

  /** Takes steps until none is left or another restore waits. */
  async #copyAll(run: Run, source: Source, target: BucketRow): Promise<void> {
    const { principal, tally, left, wanted } = run;
    await this.#assertActive(principal);
    const bucket = await this.#deps.buckets.find(principal, target.name);
    if (bucket.id !== target.id) throw bucketNotFound(bucket.name);
    const copies = new PointCopies(this.#deps, source.point);
    const copy = await copies.prepare(left.filter(isCopied).map(({ entry }) => entry));
    const failed = new AbortController();
    const signal = AbortSignal.any([failed.signal, this.#signalOf(run)]);
    const keepsAcl = run.mayShare;
    const copyOne = async (step: Step, after: string | null) => {
      const { entry } = step;
      const mayReplace = wanted.existing === 'replace';
      const how = wanted.versions === true ? { after, keepsAcl } : { mayReplace };
      try {
        const copied = { principal, source: source.bucket, entry, bucket, how, signal };
        const added = isCopied(step)
          ? await run.inFirst(({ record }) => copy({ ...copied, record }))
          : undefined;
        this.#count(run, step);
        return added ?? after;
      } catch (error) {
        if (isAppError(error, 'precondition_failed')) tally.kept++;
        else if (wanted.name === undefined && isOfOne(error)) tally.refuse(entry.name, error);
        else failed.abort(error);
        return after;
      } finally {
        run.tell(step);
      }
    };
    const isLongEnough = this.#portionEnd(run);
    const isOver = () => signal.aborted || isLongEnough();
    const work = async () => {
      do await inOrder(run.shift(), { isOver, copyOne, putBack: (rest) => left.unshift(...rest) });
      while (left.length > 0 && !isOver());
    };
    await Promise.all(Array.from({ length: COPIES_AT_ONCE }, work));
    signal.throwIfAborted();
  }

  #portionEnd({ portionMs }: Run): () => boolean {
    const { clock, points } = this.#deps;
    const end = clock.now() + portionMs;
    return () => (this.#turns.isWanted || points.isWanted) && clock.now() >= end;
  }

  /** Throws `account_suspended`, `insufficient_credits`. */
  async #assertActive({ accountId }: Principal): Promise<void> {
    const account = await new PointSql(this.#deps.metadata).account(accountId);
    if (account?.is_active !== 1) throw new AppError('account_suspended', 'This account is suspended');
    await this.#deps.billing.assertCredit(accountId);
  }

  /** Why the previewed restore would be refused; null: it would not. */
  async #refusalOf({ principal, target, tally, toBucket: name }: Run): Promise<string | null> {
    const { accountId: account_id, bucketLimits } = principal;
    const { billing, assertSpace } = this.#deps;
    try {
      await billing.assertCredit(account_id);
      if (target === undefined && bucketLimits !== null) throw bucketNotFound(name);
      if (target === undefined) await billing.bucketCreated({ id: 0, account_id, name });
      const kept = tally.bytes + tally.metadataBytes - tally.freedBytes;
      await billing.bytesKept({ id: target?.id ?? 0, account_id }, kept);
      assertSpace(tally.bytes);
      return null;
    } catch (error) {
      if (isAppError(error)) return error.message;
      throw error;
    }
  }
}

const ACL_STAYS = 'Each object belongs to the owner of the bucket alone, like a new upload: share it again';
const ACL_NEEDS = "Restoring other accounts' access requires storage:admin and the same account";
const NO_LOCKS = 'The bucket has no object lock, so its objects are not locked';

/** Columns that are equal in equal versions. */
const MEMBERS = ['size_bytes', 'etag', 'mime_type', 'metadata', 'headers', 'tags', 'checksum'] as const;

/** The error of a restore that was partly done. */
function after({ objects }: Tally, error: unknown): unknown {
  if (!isAppError(error) || objects === 0) return error;
  const detail = `${error.message}; ${plural(objects, 'object')} had been restored`;
  const again = 'Repeat the call to continue: restored objects are skipped';
  const hint = error.hint === undefined ? again : `${error.hint}. ${again}`;
  return new AppError(error.code, detail, { hint, cause: error });
}

function assertMayEnter({ bucketLimits }: Principal, bucket: string): void {
  if (bucketLimits !== null && !bucketLimits.some((limit) => limit.bucket === bucket))
    throw bucketNotFound(bucket);
}

/** Throws `bucket_not_found`, or `scope_required` if the key's limits do not cover the selection. */
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
