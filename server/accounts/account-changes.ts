/** Changes of another account by an administrator: its address, rights and end. */
import type { Call } from '../calls/principal.ts';
import type { Change } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import { type Clock, readTime } from '../platform/clock.ts';
import { invalidField } from '../platform/errors.ts';
import { accountNotFound, assertMayOpen, changedByOthers, lastAdministrator } from './account-errors.ts';
import { assertAccountFields, foldEmail } from './account-fields.ts';
import type { AccountsDeps } from './accounts.ts';
import { expectOtherAdministrator } from './closings-store.ts';
import { claimOf } from './email-claims.ts';
import { setEmail } from './emails-store.ts';
import {
  EXPIRED,
  expectStanding,
  setAdministrator,
  setAuditor,
  setExpiry,
  setMustChange,
} from './expiries-store.ts';
import { deleteResetLinks } from './links/links-store.ts';
import type { PasswordChecks } from './sign-in/password-checks.ts';
import type { AccountRow, AccountStore } from './store.ts';

/** Missing members do not change. */
export interface WantedChange {
  readonly email?: string | undefined;
  readonly is_admin?: boolean | undefined;
  readonly is_auditor?: boolean | undefined;
  readonly must_change_password?: boolean | undefined;
  /** null: the account does not expire. */
  readonly expires_at?: string | null | undefined;
}

export interface AccountChangesDeps {
  readonly store: AccountStore;
  readonly clock: Clock;
  readonly checks: PasswordChecks;
  /** See AdministrationDeps. */
  readonly reactivation: (accountId: number) => readonly Statement[];
  readonly accountChanged?: (accountId: number) => void;
  /** See AccountsDeps. */
  readonly sendsMail: boolean;
  readonly askToConfirm: AccountsDeps['askToConfirm'];
}

export class AccountChanges {
  readonly #deps: AccountChangesDeps;

  constructor(deps: AccountChangesDeps) {
    this.#deps = deps;
  }

  /**
   * Adds the change to a commit. Throws `account_not_found`, `invalid_request`, `email_taken`,
   * `password_required` (for another address or other rights), `operator_required`; the commit is
   * refused with `last_administrator` if no administrator would be left.
   */
  async apply(change: Change, call: Call, target: WantedChange & { readonly id: number }): Promise<void> {
    const { store, checks } = this.#deps;
    const { id, email, is_admin: isAdmin, is_auditor: isAuditor } = target;
    const { must_change_password: must, expires_at: end } = target;
    if ([email, isAdmin, isAuditor, must, end].every((wanted) => wanted === undefined)) return;
    const row = await store.account(id);
    if (row === undefined) throw accountNotFound();
    change.add(expectStanding(row), 'retry');
    if ([email, isAdmin, isAuditor].some((wanted) => wanted !== undefined))
      await checks.assertFresh(call.principal);
    // Someone who reads another administrator's mail could set a new password with it.
    if (email !== undefined && id !== call.principal.accountId) assertMayOpen(call.principal, row);
    if (email !== undefined) await this.#setEmail(change, row, email);
    if (isAdmin !== undefined && isAdmin !== (row.is_admin === 1)) {
      if (!isAdmin) change.addAll(expectOtherAdministrator(id), lastAdministrator);
      change.expect(setAdministrator(id, isAdmin), accountNotFound);
      // Another administrator may have one, who may not open the account of an administrator.
      change.add(deleteResetLinks(id));
    }
    const willBeAdmin = isAdmin ?? row.is_admin === 1;
    if (willBeAdmin && (isAuditor ?? row.is_auditor === 1))
      throw invalidField('is_auditor', 'must be false for an administrator, who reads everything anyway');
    if (isAuditor !== undefined) change.expect(setAuditor(id, isAuditor), accountNotFound);
    if (willBeAdmin && (end === undefined ? row.expires_at : end) !== null)
      throw invalidField('expires_at', 'must be null for an administrator, whose account does not expire');
    if (end !== undefined) this.#setEnd(change, row, end);
    if (must !== undefined) {
      if (must && row.password_hash === '')
        throw invalidField('must_change_password', 'needs an account with a password');
      change.expect(setMustChange(id, must), accountNotFound);
    }
    change.forgets({ kind: 'account', id });
    change.after(() => this.#deps.accountChanged?.(id));
  }

  async #setEmail(change: Change, row: AccountRow, email: string): Promise<void> {
    assertAccountFields({ email });
    const claimed = await claimOf(this.#deps, email, row.id);
    change.expect(setEmail(row.id, { email, claimed }), (reason) =>
      reason === 'unique' ? 'retry' : changedByOthers(),
    );
    const isOther = foldEmail(email) !== foldEmail(row.email);
    if (isOther) change.add(deleteResetLinks(row.id));
    if (isOther || row.email_verified_at === null) await this.#deps.askToConfirm(change, { ...row, email });
  }

  /** An account that expired is resumed when its end is moved to a later time. */
  #setEnd(change: Change, row: AccountRow, end: string | null): void {
    const { store, clock, reactivation } = this.#deps;
    const at = end === null ? null : readTime('expires_at', end);
    if (at !== null && at <= clock.now()) throw invalidField('expires_at', 'must be in the future');
    change.expect(setExpiry(row.id, at), accountNotFound);
    if (row.suspended_reason !== EXPIRED || row.removal_at !== null) return;
    change.expect(store.setSuspended(row.id, null), accountNotFound);
    change.addAll(reactivation(row.id));
  }
}
