/** SQL of the account fields that administrators set, such as the end. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';
import type { AccountRow } from './store.ts';

/** The reason for suspending an account that has expired. */
export const EXPIRED = 'the account has expired';

export interface NamedAccount {
  readonly id: number;
  readonly username: string;
}

/** The standing of an account: its rights, its end, its suspension and its removal. */
export type Standing = Pick<
  AccountRow,
  'id' | 'is_admin' | 'is_auditor' | 'is_active' | 'expires_at' | 'removal_at' | 'suspended_reason'
>;

/** Refused if another request has changed any of it since it was read. */
export function expectStanding(row: Standing): Statement {
  return {
    sql: `UPDATE accounts SET id = id WHERE id = ? AND is_admin = ? AND is_auditor = ? AND is_active = ?
      AND COALESCE(expires_at, 0) = ? AND COALESCE(removal_at, 0) = ? AND COALESCE(suspended_reason, '') = ?
      AND closed_at IS NULL`,
    params: [
      ...[row.id, row.is_admin, row.is_auditor, row.is_active],
      ...[row.expires_at ?? 0, row.removal_at ?? 0, row.suspended_reason ?? ''],
    ],
    expectChanges: 1,
  };
}

/** Expired accounts that are not suspended yet. */
export function expiredAccounts(reads: Reads, now: number): Awaitable<NamedAccount[]> {
  return reads.all(
    'SELECT id, username FROM accounts WHERE expires_at <= ? AND is_active = 1 AND closed_at IS NULL ORDER BY id',
    now,
  );
}

/** Suspends an expired account. Refused if the end was moved later, or the account is not active. */
export function expireAccount(id: number, now: number, reason: string): Statement {
  return {
    sql: `UPDATE accounts SET is_active = 0, suspended_reason = ?
      WHERE id = ? AND expires_at <= ? AND is_active = 1 AND closed_at IS NULL`,
    params: [reason, id, now],
    expectChanges: 1,
  };
}

/** null: the account does not expire. */
export function setExpiry(id: number, at: number | null): Statement {
  return {
    sql: 'UPDATE accounts SET expires_at = ? WHERE id = ? AND closed_at IS NULL',
    params: [at, id],
    expectChanges: 1,
  };
}

export function setAdministrator(id: number, isAdmin: boolean): Statement {
  return {
    sql: `UPDATE accounts SET was_admin = CASE WHEN is_admin = 1 THEN 1 ELSE was_admin END, is_admin = ?
          WHERE id = ? AND closed_at IS NULL`,
    params: [isAdmin ? 1 : 0, id],
    expectChanges: 1,
  };
}

export function setAuditor(id: number, isAuditor: boolean): Statement {
  return {
    sql: 'UPDATE accounts SET is_auditor = ? WHERE id = ? AND closed_at IS NULL',
    params: [isAuditor ? 1 : 0, id],
    expectChanges: 1,
  };
}

/** Setting a new password clears it. */
export function setMustChange(id: number, must: boolean): Statement {
  return {
    sql: 'UPDATE accounts SET must_change = ? WHERE id = ? AND closed_at IS NULL',
    params: [must ? 1 : 0, id],
    expectChanges: 1,
  };
}
