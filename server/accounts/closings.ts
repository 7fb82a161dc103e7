/**
 * The end of an account. Its owner closes it: from then on its credentials are refused and its
 * machines are stopped, but nothing is removed, and signing in reopens it. Some days later it is
 * removed.
 */
import { type AuditTrail, entryOfCloud } from '../calls/audit.ts';
import type { Call } from '../calls/principal.ts';
import { BACKGROUND, type Change, type Changes } from '../metadata/change.ts';
import type { Reads, Statement } from '../metadata/metadata.ts';
import { type Clock, formatTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { accountNotFound, changedByOthers, lastAdministrator } from './account-errors.ts';
import { describeForAdmin } from './account-view.ts';
import { assertPlainText } from './administration.ts';
import {
  closeAccount,
  condemnAccount,
  expectOtherAdministrator,
  keepAccount,
  reasonOfRemoval,
  reasonWhenKept,
  removableAccounts,
  removeAccount,
} from './closings-store.ts';
import { expectStanding } from './expiries-store.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { AdminAccount, ClosedAccount } from './schema.ts';
import type { PasswordChecks } from './sign-in/password-checks.ts';
import type { AccountStore } from './store.ts';

const DAY_MS = 24 * 3600_000;

export interface ClosingsDeps {
  readonly store: AccountStore;
  readonly reads: Reads;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly audit: Pick<AuditTrail, 'statements'>;
  readonly apiKeys: ApiKeys;
  readonly checks: PasswordChecks;
  /** Days until a closed account is removed; 0: immediately. */
  readonly keptDays: number;
  /** See AdministrationDeps. */
  readonly reactivation: (accountId: number) => readonly Statement[];
  /** Called after the commit that closed or removed an account. */
  readonly accountChanged?: (accountId: number) => void;
}

export class Closings {
  readonly #deps: ClosingsDeps;

  constructor(deps: ClosingsDeps) {
    this.#deps = deps;
  }

  /**
   * Closes the caller's account: keys and sessions end, machines are stopped and databases closed;
   * name, e-mail address and data are kept until it is removed. Throws `scope_required`,
   * `password_required`, `last_administrator`.
   */
  async close(call: Call): Promise<ClosedAccount> {
    const { apiKeys, store, changes, clock, checks, keptDays } = this.#deps;
    const { accountId: id } = call.principal;
    if ((await store.account(id)) === undefined) throw accountNotFound();
    await apiKeys.assertOwner(call.principal);
    await checks.assertFresh(call.principal);
    return changes.run(call, async (change) => {
      const row = await store.account(id);
      if (row === undefined) throw accountNotFound();
      const { username } = row;
      change.add(expectStanding(row), 'retry');
      const now = clock.now();
      const removalAt = now + keptDays * DAY_MS;
      if (row.is_admin === 1) change.addAll(expectOtherAdministrator(id), lastAdministrator);
      change.addAll(closeAccount(id, removalAt), accountNotFound);
      if (keptDays === 0) change.addAll(removeAccount(id, now), accountNotFound);
      this.#announce(change, id);
      return { id, username, closed_at: formatTime(now), removed_at: formatTime(removalAt) };
    });
  }

  /**
   * An administrator removes another account: its credentials are refused from now on, its machines
   * are stopped and its databases closed, and it is removed after the same time as a closed one,
   * unless the removal is undone. Throws `account_not_found`, `invalid_request` (the caller's own),
   * `password_required`, `last_administrator`.
   */
  async remove(call: Call, accountId: number, reason: string): Promise<AdminAccount> {
    const { store, changes, clock, checks, keptDays } = this.#deps;
    if (call.principal.accountId === accountId)
      throw new AppError('invalid_request', 'An administrator cannot remove their own account', {
        hint: 'Close it: DELETE /api/account',
      });
    assertPlainText('reason', reason);
    await checks.assertFresh(call.principal);
    return changes.run(call, async (change) => {
      const row = await store.account(accountId);
      if (row === undefined) throw accountNotFound();
      const now = clock.now();
      const at = now + keptDays * DAY_MS;
      const said = reasonOfRemoval(row.suspended_reason, reason);
      change.add(expectStanding(row), 'retry');
      if (row.is_admin === 1) change.addAll(expectOtherAdministrator(accountId), lastAdministrator);
      change.add(condemnAccount(accountId, { at, reason: said }), changedByOthers);
      if (keptDays === 0) change.addAll(removeAccount(accountId, now), accountNotFound);
      this.#announce(change, accountId);
      return describeForAdmin({ ...row, is_active: 0, removal_at: at, suspended_reason: said }, null);
    });
  }

  /**
   * Undoes a scheduled removal, also one by its owner; a suspension from before it stays. Throws
   * `account_not_found`, `write_conflict`.
   */
  async keep(call: Call, accountId: number): Promise<AdminAccount> {
    const { store, changes, reactivation } = this.#deps;
    return changes.run(call, async (change) => {
      const row = await store.account(accountId);
      if (row === undefined) throw accountNotFound();
      const left = reasonWhenKept(row.suspended_reason);
      change.add(expectStanding(row), 'retry');
      change.add(keepAccount(accountId, row.suspended_reason), notCondemned);
      if (left === null) change.addAll(reactivation(accountId));
      this.#announce(change, accountId);
      const is_active = left === null ? 1 : 0;
      return describeForAdmin({ ...row, is_active, removal_at: null, suspended_reason: left }, null);
    });
  }

  /**
   * Removes accounts whose grace period is over: the name and the e-mail address become available,
   * stored data becomes unreachable, machines are deleted. The ledger keeps its entries. Each has an
   * entry in the audit log. Called periodically.
   */
  async removeDue(): Promise<void> {
    const { reads, changes, clock, audit } = this.#deps;
    for (const { id, username } of await removableAccounts(reads, clock.now())) {
      await changes.run(BACKGROUND, (change) => {
        change.addAll(removeAccount(id, clock.now()), 'skip');
        change.addAll(audit.statements(entryOfCloud('removeClosedAccount', { accountId: id, username })));
        this.#announce(change, id);
      });
    }
  }

  #announce(change: Change, id: number): void {
    const { accountChanged } = this.#deps;
    change.forgets({ kind: 'account', id });
    change.after(() => accountChanged?.(id));
  }
}

function notCondemned(): AppError {
  return new AppError('write_conflict', 'This account is not scheduled for removal');
}
