/**
 * Runs the lifecycle rules of all buckets. A run covers one bucket, a slice of its versions at a
 * time; each account has one slice per turn, so that a million objects of one do not delay the
 * others. The position is stored with the bucket: after a crash the last slice is repeated. Every
 * expiry is checked again in the commit that removes the version, and counted there; one event for
 * each slice reports the count.
 */
import { NOBODY, type Principal } from '../../calls/principal.ts';
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { settingsOf } from '../buckets/bucket-settings.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import { isSoundBucket } from '../buckets/bucket-sql.ts';
import { isLocked, type LockTime } from '../objects/object-lock.ts';
import type { Expired, Removals } from '../objects/removals.ts';
import type { PartUploadSql } from '../uploads/part-upload-sql.ts';
import type { PartUploads } from '../uploads/part-uploads.ts';
import {
  coveredPrefixes,
  currentExpiry,
  DAY_MS,
  type DayLength,
  type Expiry,
  type Filtered,
  type Lifecycle,
  markerExpiry,
  noncurrentExpiry,
  uploadExpiry,
} from './lifecycle-rules.ts';
import type { AgedRow, DueRow, LifecycleSql } from './lifecycle-sql.ts';

/** Number of removals in a batch, reported to the account's webhooks. */
export interface LifecycleEvent {
  readonly accountId: number;
  readonly type: 'bucket.objects_expired';
  readonly data: Readonly<Record<string, unknown>>;
  readonly at: number;
}

export interface LifecycleRunsDeps extends DayLength {
  readonly changes: Changes;
  readonly store: LifecycleSql;
  readonly removals: Removals;
  readonly partUploads: PartUploads;
  readonly uploadStore: PartUploadSql;
  readonly clock: Clock;
  readonly lockTime: () => LockTime;
  readonly announce: (event: LifecycleEvent) => readonly Statement[];
}

/** The last version inspected, and the facts needed for the next one of the same name. */
interface Position {
  readonly phase: 'uploads' | 'versions';
  readonly name: string;
  /** Row id of the last version, or upload. */
  readonly id: number;
  /** Row id of the object; 0: none yet. */
  readonly object: number;
  /** Number of older versions of the name seen so far. */
  readonly newer: number;
  /** When the next older version was replaced, ms. */
  readonly since: number;
}

/** A version with its index among the older versions of its name. */
type Placed = AgedRow & Pick<Position, 'newer' | 'since'>;

/** Versions of one name to remove. */
interface Removal {
  readonly name: string;
  readonly kind: Expired['kind'];
  readonly versions: Placed[];
}

const START: Position = { phase: 'uploads', name: '', id: 0, object: 0, newer: 0, since: 0 };
const NEWEST = Number.MAX_SAFE_INTEGER;
/** Versions inspected in a turn of an account. */
const SLICE = 500;
const UPLOADS = 100;
/** Maximum accounts whose buckets are read at a time. */
const ACCOUNTS = 64;
/** Maximum names processed at a time. */
const AT_ONCE = 64;
/** Versions of one name removed in one commit: more would delay others. */
const REMOVED_AT_ONCE = 64;

export class LifecycleRuns {
  readonly #deps: LifecycleRunsDeps;
  #isStopped = false;

  constructor(deps: LifecycleRunsDeps) {
    this.#deps = deps;
  }

  /** Runs all rules that are due. Resolves early after stop(). */
  async run(): Promise<void> {
    const failed = new Map<number, unknown>();
    while (!this.#isStopped && (await this.#turn(failed))) {
      // Every account has had a slice.
    }
    const [error] = failed.values();
    if (error !== undefined) throw error;
  }

  /**
   * Processes a slice for every account. If a bucket fails, only its account stops. False: no
   * bucket is due.
   */
  async #turn(failed: Map<number, unknown>): Promise<boolean> {
    const { store, clock } = this.#deps;
    let hasWorked = false;
    for (let after = 0; !this.#isStopped; ) {
      const due = await store.due(clock.now(), after, ACCOUNTS);
      for (const bucket of due) {
        if (this.#isStopped || failed.has(bucket.id)) continue;
        hasWorked = true;
        await this.#slice(bucket).catch((error) => failed.set(bucket.id, error));
        // Reads are synchronous: other requests run between slices.
        await new Promise(setImmediate);
      }
      const last = due.at(-1);
      if (last === undefined) break;
      after = last.account_id;
    }
    return hasWorked;
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #slice(bucket: DueRow): Promise<void> {
    const { store, changes } = this.#deps;
    // The rules of a damaged row remove nothing; the scrub reports the damage.
    const isSound = isSoundBucket(bucket);
    const lifecycle = isSound ? settingsOf(bucket).lifecycle : undefined;
    const from = bucket.lifecycle_cursor === null ? START : (JSON.parse(bucket.lifecycle_cursor) as Position);
    const slice = lifecycle && (await this.#work(bucket, lifecycle, from));
    const next = slice?.next ?? null;
    const whenDone = isSound && lifecycle === undefined ? null : this.#nextDue();
    const due = next === null ? whenDone : bucket.lifecycle_due;
    const advance = store.advance(bucket, due, next === null ? null : JSON.stringify(next));
    const event = await this.#event(bucket, slice);
    if (await changes.store([advance, ...event], 'skip')) return;
    // The rules were changed in the meantime.
    if (event.length > 0) await changes.store(event, 'skip');
  }

  /** Reports all removals since the last event; those before a crash have no names. */
  async #event(
    { id, name: bucket, account_id: accountId }: DueRow,
    names?: { readonly first: string | undefined; readonly last: string | undefined },
  ): Promise<readonly Statement[]> {
    const { store, clock, announce } = this.#deps;
    const removed = await store.untold(id);
    if (removed === 0) return [];
    const data = { bucket, removed, first: names?.first, last: names?.last };
    const type = 'bucket.objects_expired';
    return [store.noteTold(id, removed), ...announce({ accountId, type, data, at: clock.now() })];
  }

  /** The next midnight: all rules are due at midnight. */
  #nextDue(): number {
    const { clock, dayMs } = this.#deps;
    const now = clock.now();
    return dayMs === DAY_MS ? (Math.floor(now / DAY_MS) + 1) * DAY_MS : now + Math.ceil(dayMs / 5);
  }

  async #work(bucket: DueRow, lifecycle: Lifecycle, from: Position) {
    if (from.phase === 'uploads') return this.#abortUploads(bucket, lifecycle, from);
    const { rows, next } = await this.#read(bucket, lifecycle, from);
    const removals = this.#due(lifecycle, rows, from);
    for (let at = 0; at < removals.length; at += AT_ONCE) {
      const lot = removals.slice(at, at + AT_ONCE);
      await Promise.all(lot.map((each) => this.#remove(bucket, each)));
    }
    return { next, first: removals[0]?.name, last: removals.at(-1)?.name };
  }

  async #abortUploads(bucket: DueRow, lifecycle: Lifecycle, from: Position) {
    const { store, uploadStore, partUploads, clock, dayMs } = this.#deps;
    const open = await uploadStore.openPage(bucket.id, from, UPLOADS);
    const now = clock.now();
    const due = open.filter((upload) => (uploadExpiry(lifecycle, upload, { dayMs })?.at ?? NEWEST) <= now);
    for (const { name, upload_id: uploadId } of due) {
      const call = { ...BACKGROUND, principal: ownerOf(bucket) };
      const also = store.noteRemoved(bucket.id, 1);
      await partUploads.abort(call, bucket, { name, uploadId, also }).catch(ignore('upload_not_found'));
    }
    const last = open.at(-1);
    const isDone = last === undefined || open.length < UPLOADS;
    const next: Position = isDone
      ? { ...START, phase: 'versions', id: NEWEST }
      : { ...START, ...placeOf(last) };
    return { next, first: due[0]?.name, last: due.at(-1)?.name };
  }

  /**
   * Versions under the prefixes of the rules, one more than the slice has, which shows whether the
   * last one is alone; and where the next slice begins, null at the end.
   */
  async #read(bucket: DueRow, lifecycle: Lifecycle, from: Position) {
    const rows: AgedRow[] = [];
    for (const prefix of coveredPrefixes(lifecycle)) {
      if (isBefore(prefix, from.name) && !from.name.startsWith(prefix)) continue;
      const start = isBefore(from.name, prefix) ? { name: prefix, id: NEWEST } : from;
      const page = await this.#deps.store.versions(bucket.id, start, SLICE + 1 - rows.length);
      const covered = page.filter(({ name }) => name.startsWith(prefix));
      rows.push(...covered);
      if (rows.length > SLICE) return { rows, next: this.#after(rows.slice(0, SLICE), from) };
    }
    return { rows, next: null };
  }

  #after(rows: readonly AgedRow[], from: Position): Position {
    return rows.reduce(pass, from);
  }

  /** The versions in the batch that expire; the one after the batch is only inspected. */
  #due(lifecycle: Lifecycle, rows: readonly AgedRow[], from: Position): Removal[] {
    const { clock, dayMs, lockTime } = this.#deps;
    const [now, time] = [clock.now(), lockTime()];
    const isDue = (kind: Removal['kind'], row: Placed) =>
      (expiryOf(kind, { lifecycle, row, dayMs })?.at ?? NEWEST) <= now;
    const removals: Removal[] = [];
    const add = (kind: Removal['kind'], row: Placed) => {
      const last = removals.at(-1);
      const isSame = last?.kind === 'noncurrent' && last.name === row.name && kind === 'noncurrent';
      if (isSame && last.versions.length < REMOVED_AT_ONCE) last.versions.push(row);
      else removals.push({ name: row.name, kind, versions: [row] });
    };
    let at = from;
    for (const [i, row] of rows.slice(0, SLICE).entries()) {
      const isNewest = row.object !== at.object;
      const isAlone = isNewest && rows[i + 1]?.object !== row.object;
      const placed = { ...row, since: at.since, newer: at.newer };
      at = pass(at, row);
      const kind = isNewest ? (row.blob === null ? 'marker' : 'current') : 'noncurrent';
      if (kind === 'marker' && !isAlone) continue;
      if (kind === 'noncurrent' && isLocked(row, time)) continue;
      if (isDue(kind, placed)) add(kind, placed);
    }
    return removals;
  }

  async #remove(bucket: BucketRow, { name, kind, versions }: Removal): Promise<void> {
    const { store, removals, clock, dayMs } = this.#deps;
    const places = new Map(versions.map(({ version_id, newer, since }) => [version_id, { newer, since }]));
    // Its tags and the rules may have changed since they were read.
    const isDue: Expired['isDue'] = (now, version) => {
      const { lifecycle } = settingsOf(now);
      const place = places.get(version.version_id);
      if (lifecycle === undefined || place === undefined) return false;
      const row = { ...version, ...place };
      return (expiryOf(kind, { lifecycle, row, dayMs })?.at ?? NEWEST) <= clock.now();
    };
    const note = (count: number) => store.noteRemoved(bucket.id, count);
    const expired = { kind, ids: [...places.keys()], isDue, note };
    await removals
      .expire(ownerOf(bucket), { bucketName: bucket.name, name }, expired)
      .catch(ignore('object_locked', 'bucket_not_found', 'object_not_found'));
  }
}

function expiryOf(
  kind: Removal['kind'],
  {
    lifecycle,
    row,
    dayMs,
  }: DayLength & {
    readonly lifecycle: Lifecycle;
    readonly row: Filtered & Pick<Position, 'newer' | 'since'>;
  },
): Expiry | undefined {
  if (kind === 'current') return currentExpiry(lifecycle, row, { dayMs });
  if (kind === 'marker') return markerExpiry(lifecycle, row, { dayMs });
  return noncurrentExpiry(lifecycle, row, { dayMs });
}

/** The position after a version. */
function pass(before: Position, row: AgedRow): Position {
  const isNewest = row.object !== before.object;
  const newer = isNewest ? 0 : before.newer + 1;
  const { name, id, object, created_at: since } = row;
  return { phase: 'versions', name, id, object, newer, since };
}

const placeOf = ({ name, id }: { readonly name: string; readonly id: number }) => ({ name, id });

/** In the database's order: UTF-8 bytes. */
function isBefore(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0;
}

/** The owner, even if suspended or closed: its rules still run. */
function ownerOf({ account_id }: BucketRow): Principal {
  return { ...NOBODY, accountId: account_id, scopes: ['*'] };
}

type Code = Parameters<typeof isAppError>[1];

/** Another request was first, or object lock protects the version: nothing was removed. */
function ignore(...codes: Code[]) {
  return (error: unknown): void => {
    if (!codes.some((code) => isAppError(error, code))) throw error;
  };
}
