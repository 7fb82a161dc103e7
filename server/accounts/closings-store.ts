/** SQL of the end of accounts: closed, reopened, removed. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';
import type { NamedAccount } from './expiries-store.ts';

/** Accounts that were closed long enough ago. */
export function removableAccounts(reads: Reads, now: number): Awaitable<NamedAccount[]> {
  return reads.all(
    'SELECT id, username FROM accounts WHERE removal_at <= ? AND closed_at IS NULL ORDER BY id',
    now,
  );
}

/** Disables the account; it is removed at `removalAt` unless it is reopened before. */
export function closeAccount(id: number, removalAt: number): Statement[] {
  return [
    {
      sql: `UPDATE accounts SET removal_at = ?, is_active = 0
        WHERE id = ? AND removal_at IS NULL AND closed_at IS NULL`,
      params: [removalAt, id],
      expectChanges: 1,
    },
    ...endCredentials(id),
  ];
}

/** The beginning of the reason stored for an account that an administrator removes. */
const REMOVED = 'removed by an administrator: ';

/** The reason of an account after its removal is scheduled: an earlier suspension keeps its own. */
export function reasonOfRemoval(earlier: string | null, reason: string): string {
  return earlier ?? `${REMOVED}${reason}`;
}

/** The reason after the removal is undone; null: the account is not suspended. */
export function reasonWhenKept(reason: string | null): string | null {
  return reason?.startsWith(REMOVED) === true ? null : reason;
}

/**
 * An administrator removes the account: its keys are refused, but kept, and a login does not reopen
 * it. Refused if its removal is scheduled already, or it was suspended meanwhile.
 */
export function condemnAccount(id: number, to: { readonly at: number; readonly reason: string }): Statement {
  return {
    sql: `UPDATE accounts SET removal_at = ?, is_active = 0, suspended_reason = COALESCE(suspended_reason, ?)
      WHERE id = ? AND removal_at IS NULL AND closed_at IS NULL`,
    params: [to.at, to.reason, id],
    expectChanges: 1,
  };
}

/**
 * Keeps the account; what was suspended before its removal stays suspended. Refused unless the
 * removal is scheduled and not yet done, with this reason.
 */
export function keepAccount(id: number, reason: string | null): Statement {
  const left = reasonWhenKept(reason);
  return {
    sql: `UPDATE accounts SET removal_at = NULL, is_active = ?, suspended_reason = ?
      WHERE id = ? AND removal_at IS NOT NULL AND closed_at IS NULL AND COALESCE(suspended_reason, '') = ?`,
    params: [left === null ? 1 : 0, left, id, reason ?? ''],
    expectChanges: 1,
  };
}

/**
 * Reopens a closed account by a login. Refused under the same conditions as recordLogin, and after
 * its grace period.
 */
export function reopenAccount(
  id: number,
  login: { readonly passwordHash: string; readonly at: number },
): Statement {
  return {
    sql: `UPDATE accounts SET removal_at = NULL, is_active = 1, last_login = ? WHERE id = ?
      AND password_hash = ? AND removal_at > ? AND suspended_reason IS NULL AND closed_at IS NULL`,
    params: [login.at, id, login.passwordHash, login.at],
    expectChanges: 1,
  };
}

/** Releases the name and the address of a closed account; the row stays for the ledger. */
export function removeAccount(id: number, at: number): Statement[] {
  return [
    {
      sql: `UPDATE accounts SET closed_at = ?, is_active = 0, is_admin = 0, username_folded = NULL,
        email_folded = NULL, password_hash = '' WHERE id = ? AND removal_at <= ? AND closed_at IS NULL`,
      params: [at, id, at],
      expectChanges: 1,
    },
    ...endCredentials(id),
  ];
}

/**
 * Refused unless another administrator can act. The first statement makes concurrent commits with
 * this check wait for each other, also on PostgreSQL, where each of two would still see the other's
 * account.
 */
export function expectOtherAdministrator(id: number): Statement[] {
  return [
    {
      sql: `UPDATE accounts SET id = id
        WHERE id = (SELECT min(id) FROM accounts WHERE is_admin = 1 AND closed_at IS NULL)`,
      params: [],
    },
    {
      sql: `UPDATE accounts SET id = id WHERE id = ? AND (is_admin = 0 OR EXISTS (SELECT 1 FROM accounts a
        WHERE a.id <> accounts.id AND a.is_admin = 1 AND a.is_active = 1 AND a.closed_at IS NULL))`,
      params: [id],
      expectChanges: 1,
    },
  ];
}

function endCredentials(accountId: number): Statement[] {
  return ['api_keys', 'sessions', 'setup_links'].map((table) => ({
    sql: `DELETE FROM ${table} WHERE account_id = ?`,
    params: [accountId],
  }));
}
