/** States of a database and their transitions. */
import { AppError } from '../../platform/errors.ts';
import type { Following } from '../../resources/row-change.ts';
import type { Turns } from '../../resources/turns.ts';
import type { Access } from '../engine.ts';
import type { DatabaseRow } from '../store.ts';

export const DATABASE_STATES = ['creating', 'ready', 'read_only', 'suspended', 'error', 'deleting'] as const;
export type DatabaseState = (typeof DATABASE_STATES)[number];

/** Allowed next states of each state. */
export const FOLLOWING: Following<DatabaseState> = {
  creating: ['ready', 'deleting'],
  ready: ['read_only', 'suspended', 'error', 'deleting'],
  read_only: ['ready', 'suspended', 'error', 'deleting'],
  suspended: ['ready', 'read_only', 'error', 'deleting'],
  error: ['ready', 'read_only', 'suspended', 'deleting'],
  // Undeleted.
  deleting: ['ready', 'read_only', 'suspended'],
};

/** Access of the tenant's sessions in each state. */
export const ACCESS: Readonly<Record<DatabaseState, Access>> = {
  creating: 'none',
  ready: 'full',
  read_only: 'read_only',
  suspended: 'none',
  error: 'none',
  deleting: 'none',
};

const OPENNESS: readonly Access[] = ['none', 'read_only', 'full'];

/** Whether sessions gain access. */
export function isOpening(
  before: { readonly state: DatabaseState },
  { state = before.state }: { readonly state?: DatabaseState },
): boolean {
  return OPENNESS.indexOf(ACCESS[state]) > OPENNESS.indexOf(ACCESS[before.state]);
}

interface Sized {
  readonly state: DatabaseState;
  readonly size_bytes: number;
  readonly size_limit_bytes: number;
  readonly reason_code?: string | null;
}

/** Share of the limit that must be free before a read-only database becomes writable again. */
const FREE_AGAIN = 0.05;

/** Whether the owner's sessions may connect. */
export function isOpen({ state }: { readonly state: DatabaseState }): boolean {
  return state === 'ready' || state === 'read_only';
}

const SHARE_TAKEN = 'disk_share_reached';

/**
 * State of an open database by its size, with the reason shown to its owner. `isOverShare`: its account uses
 * more than its share of a disk that is filling up.
 */
export function openStateOf(row: Sized, isOverShare = false) {
  const { state, size_bytes, size_limit_bytes, reason_code } = row;
  if (isOverShare)
    return {
      state: 'read_only',
      reason_code: SHARE_TAKEN,
      reason_message:
        'The disk of this cloud is filling up, and your databases and machines use more than the share of an account ' +
        'without granted credits: delete some of them, or ask an administrator to grant you credits',
    } as const;
  const wasLarge = state === 'read_only' && reason_code !== SHARE_TAKEN;
  const most = wasLarge ? size_limit_bytes * (1 - FREE_AGAIN) : size_limit_bytes;
  if (size_bytes <= most) return { state: 'ready', reason_code: null, reason_message: null } as const;
  return {
    state: 'read_only',
    reason_code: 'size_limit_reached',
    reason_message: 'The database exceeds its size limit: raise size_limit_mb or delete data',
  } as const;
}

interface Refusable {
  readonly name: string;
  readonly state: DatabaseState;
  readonly reason_code?: string | null;
}

/** Throws `database_not_ready` unless it can be read. */
export function assertReadable(row: Refusable): void {
  if (isOpen(row)) return;
  throw notReady(row);
}

/** Throws `database_not_ready` unless it is fully available. */
export function assertReady(row: Refusable): void {
  if (row.state !== 'ready') throw notReady(row);
}

/** The refusal for a database that is not open. */
export function notReady({ name, state, reason_code: reason }: Refusable): AppError {
  const why =
    reason === SHARE_TAKEN
      ? 'its account uses more than its share of a disk that is filling up'
      : 'it has reached its size limit';
  const what = {
    creating: 'is still being created',
    ready: 'is ready',
    read_only: `is read-only: ${why}`,
    suspended: 'is suspended, because its account is suspended or out of credits',
    error: 'is in state error',
    deleting: 'is being deleted',
  }[state];
  return new AppError('database_not_ready', `The database ${name} ${what}`, { extra: { state } });
}

export type DatabaseTurns = Turns<DatabaseRow>;

/** Ends long work on a database that is being deleted. */
export function deletedMeanwhile(): AppError {
  return new AppError('database_not_ready', 'The database was deleted by another request');
}
