/**
 * The end of an account. Its owner closes it: from then on nobody gets in and its machines are stopped, but
 * nothing is removed, and signing in opens it again. Some days later it is removed.
 */
import type { Call } from '../calls/principal.ts';
import { BACKGROUND, type Change, type Changes } from '../metadata/change.ts';
import type { Reads } from '../metadata/metadata.ts';
import { type Clock, formatTime } from '../platform/clock.ts';
import { accountNotFound, lastAdministrator } from './account-errors.ts';
import {
  closeAccount,
  expectOtherAdministrator,
  removableAccounts,
  removeAccount,
} from './closings-store.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { ClosedAccount } from './schema.ts';
import type { PasswordChecks } from './sign-in/password-checks.ts';
import type { AccountStore } from './store.ts';

const DAY_MS = 24 * 3600_000;

export interface ClosingsDeps {
  readonly store: AccountStore;
  readonly reads: Reads;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly apiKeys: ApiKeys;
  readonly checks: PasswordChecks;
  /** Days until a closed account is removed; 0: immediately. */
  readonly keptDays: number;
  /** Called after the commit that closed or removed an account. */
  readonly accountChanged?: (accountId: number) => void;
}

export class Closings {
  readonly #deps: ClosingsDeps;

  constructor(deps: ClosingsDeps) {
    this.#deps = deps;
  }

  /**
   * Closes the caller's account: keys and sessions end, machines are stopped and databases shut; name, e-mail
   * address and data are kept until it is removed. Throws `scope_required`, `password_required`,
   * `last_administrator`.
   */
  async close(call: Call): Promise<ClosedAccount> {
    const { apiKeys, store, changes, clock, checks, keptDays } = this.#deps;
    const row = await store.account(call.principal.accountId);
    if (row === undefined) throw accountNotFound();
    const { id, username } = row;
    await apiKeys.assertOwner(call.principal);
    await checks.assertFresh(call.principal);
    return changes.run(call, (change) => {
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
   * Removes accounts whose time is over: the name and the e-mail address become available, stored data
   * becomes unreachable, machines are deleted. The ledger keeps its entries. Called periodically.
   */
  async removeDue(): Promise<void> {
    const { reads, changes, clock } = this.#deps;
    for (const id of await removableAccounts(reads, clock.now())) {
      await changes.run(BACKGROUND, (change) => {
        change.addAll(removeAccount(id, clock.now()), 'skip');
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
