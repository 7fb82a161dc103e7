/**
 * Object lock: a version that nobody may remove before a date, or while a legal hold is on it.
 *
 * A date is stored twice: as wall time, which clients set and see, and as steady time, when the same time has
 * really elapsed. A version is free when both have passed, so that setting the clock forward frees nothing,
 * and no version is removed before its displayed date. The commit that removes a version states this: see
 * ObjectSql.deleteVersion().
 *
 * Keys that may only append are for backups that must survive a stolen key. They create objects, and replace
 * or delete only where the earlier version stays: in a bucket whose versioning is on. The commit checks this
 * again: if versioning was suspended since the change was built, the change still removes no version.
 */
import { onlyAppends, type Principal } from '../../calls/principal.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import { VERSIONING } from '../schema.ts';
import type { UploadTarget } from './object-rows.ts';

export type LockMode = 'GOVERNANCE' | 'COMPLIANCE';

export interface Retention {
  readonly mode: LockMode;
  /** ms since 1970. */
  readonly until: number;
}

/** A bucket's, for new versions without their own retention. */
export interface DefaultRetention {
  readonly mode: LockMode;
  readonly days: number;
}

/** The lock requested for an upload. */
export interface WantedLock {
  readonly retention?: Retention;
  readonly legalHold?: boolean;
}

/** The lock of a version, as its columns. */
export interface LockRow {
  readonly lock_mode: LockMode | null;
  /** ms since 1970, as the client sent it. */
  readonly retain_until: number | null;
  /** The same time on the monotonic clock. */
  readonly locked_until: number | null;
  /** 1: on, 0: off, null: never set. */
  readonly legal_hold: number | null;
}

export const LOCK_COLUMNS = 'v.lock_mode, v.retain_until, v.locked_until, v.legal_hold';

export const UNLOCKED: LockRow = {
  lock_mode: null,
  retain_until: null,
  locked_until: null,
  legal_hold: null,
};

/** One moment on the wall clock and on the monotonic clock. */
export interface LockTime {
  readonly wallMs: number;
  readonly steadyMs: number;
}

const DAY_MS = 24 * 3_600_000;

/** Reads both clocks. */
export function lockClock(wall: Pick<Clock, 'now'>, steady: Pick<Clock, 'now'>): () => LockTime {
  return () => ({ wallMs: wall.now(), steadyMs: steady.now() });
}

function isRetained({ retain_until, locked_until }: LockRow, { wallMs, steadyMs }: LockTime): boolean {
  return (retain_until ?? 0) > wallMs || (locked_until ?? 0) > steadyMs;
}

/** True for a version that cannot be removed without a bypass. */
export function isLocked(row: LockRow, time: LockTime): boolean {
  return row.legal_hold === 1 || isRetained(row, time);
}

/** Throws `object_locked` for a version that may not be removed. `bypass`: despite GOVERNANCE. */
export function assertRemovable(row: LockRow, time: LockTime, bypass: boolean): void {
  if (row.legal_hold === 1) throw objectLocked('A legal hold is on the version');
  const isKept = isRetained(row, time) && !(bypass && row.lock_mode === 'GOVERNANCE');
  if (isKept) throw objectLocked(`The version is kept ${untilText(row)}`);
}

/** The lock of a new version. */
export function newLock(
  { retention, legalHold }: WantedLock,
  byDefault: DefaultRetention | undefined,
  time: LockTime,
): LockRow {
  const wanted =
    retention ?? (byDefault && { mode: byDefault.mode, until: time.wallMs + byDefault.days * DAY_MS });
  return {
    ...(wanted === undefined ? UNLOCKED : retained(wanted, time)),
    legal_hold: legalHold === undefined ? null : Number(legalHold),
  };
}

/** The lock of a version in a recovery point, not weaker by either clock. */
export function sameLock(row: LockRow, { wallMs, steadyMs }: LockTime): LockRow {
  const { lock_mode, retain_until, locked_until, legal_hold } = row;
  const left = retain_until === null ? null : Math.max(steadyMs + retain_until - wallMs, locked_until ?? 0);
  return { lock_mode, retain_until, locked_until: left, legal_hold };
}

/**
 * The lock for a copy of a version in a recovery point: as strong as the version's and as
 * `byDefault`. undefined: `byDefault` is enough.
 */
export function lockOfCopy(
  row: LockRow,
  byDefault: DefaultRetention | undefined,
  time: LockTime,
): WantedLock | undefined {
  if (!isLocked(row, time)) return undefined;
  const { wallMs, steadyMs } = time;
  const hold = row.legal_hold === 1 ? { legalHold: true } : {};
  if (!isRetained(row, time) || row.lock_mode === null) return hold;
  const left = (row.locked_until ?? 0) - steadyMs;
  const defaultUntil = byDefault === undefined ? 0 : wallMs + byDefault.days * DAY_MS;
  const until = Math.max(row.retain_until ?? 0, wallMs + left, defaultUntil);
  const isCompliance = row.lock_mode === 'COMPLIANCE' || byDefault?.mode === 'COMPLIANCE';
  return { ...hold, retention: { mode: isCompliance ? 'COMPLIANCE' : 'GOVERNANCE', until } };
}

function retained({ mode, until }: Retention, { wallMs, steadyMs }: LockTime): Omit<LockRow, 'legal_hold'> {
  return { lock_mode: mode, retain_until: until, locked_until: steadyMs + until - wallMs };
}

/**
 * The lock with another retention; null: none. Throws `object_locked` for a weaker one: nobody may
 * weaken COMPLIANCE, and only `bypass` GOVERNANCE.
 */
export function withRetention(
  row: LockRow,
  wanted: Retention | null,
  { time, bypass }: { readonly time: LockTime; readonly bypass: boolean },
): LockRow {
  const after = wanted === null ? UNLOCKED : retained(wanted, time);
  const mayWeaken = !isRetained(row, time) || (bypass && row.lock_mode === 'GOVERNANCE');
  if (mayWeaken) return { ...after, legal_hold: row.legal_hold };
  const isWeaker = wanted === null || wanted.mode !== row.lock_mode || wanted.until < (row.retain_until ?? 0);
  if (isWeaker)
    throw objectLocked(`The version is kept ${untilText(row)}; the retention can only be extended`);
  const locked_until = Math.max(after.locked_until ?? 0, row.locked_until ?? 0);
  return { ...after, locked_until, legal_hold: row.legal_hold };
}

function untilText({ lock_mode, retain_until }: LockRow): string {
  return `until ${new Date(retain_until ?? 0).toISOString()} (${lock_mode})`;
}

export function objectLocked(why: string): AppError {
  return new AppError('object_locked', why, {
    hint: 'Object lock prevents removing the version or weakening its lock',
  });
}

/**
 * For a key that may only append. `dropped`: the version or marker that the new version replaces. Throws
 * `scope_required` if an upload would replace something permanently.
 */
export function assertMayReplace(
  { versioning, previous }: Pick<UploadTarget, 'versioning' | 'previous'>,
  dropped: unknown,
): void {
  if (previous === undefined && dropped === undefined) return;
  if (versioning === VERSIONING.on) return;
  throw appendsOnly('replace an object');
}

/** Throws `scope_required` if a delete would be permanent. */
export function assertMayRemove(
  principal: Principal,
  { versioning }: Pick<BucketRow, 'versioning'>,
  versionId: string | undefined,
): void {
  if (!onlyAppends(principal)) return;
  if (versionId !== undefined) throw appendsOnly('remove a version');
  if (versioning !== VERSIONING.on) throw appendsOnly('delete an object');
}

function appendsOnly(deed: string): AppError {
  return new AppError('scope_required', `This key may only append, so it cannot ${deed} permanently`, {
    hint: 'Enable the versioning of the bucket, or use a key with the scope storage:write',
  });
}
