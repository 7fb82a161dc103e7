/** Account operations for administrators. */
import { type AuditTrail, entryOfCloud } from '../calls/audit.ts';
import type { Call, Principal } from '../calls/principal.ts';
import { BACKGROUND, type Change, type Changes, type Recorder } from '../metadata/change.ts';
import { listRows } from '../metadata/list.ts';
import type { Reads, Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { KeyedMutex } from '../platform/concurrency.ts';
import { AppError, invalidField } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { accountNotFound, assertMayOpen, lastAdministrator } from './account-errors.ts';
import { describeAccount, describeForAdmin, nameOf } from './account-view.ts';
import type { Accounts, AccountsDeps, NewAccount, Transfer } from './accounts.ts';
import { expectOtherAdministrator } from './closings-store.ts';
import { MAX_CREDITS, toCredits, toMicro } from './credits.ts';
import { EXPIRED, expectStanding, expireAccount, expiredAccounts, setExpiry } from './expiries-store.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { Account, AdminAccount } from './schema.ts';
import type { Authenticator } from './sign-in/authenticator.ts';
import type { PasswordChecks } from './sign-in/password-checks.ts';
import type { AccountRow, AccountStore } from './store.ts';

export interface AdministrationDeps {
  readonly store: AccountStore;
  readonly reads: Reads;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly audit: Pick<AuditTrail, 'statements'>;
  readonly accounts: Accounts;
  readonly apiKeys: ApiKeys;
  readonly authenticator: Authenticator;
  readonly checks: PasswordChecks;
  readonly transfer: Transfer;
  /**
   * Statements that let the machines of a resumed account start again (billing); part of the commit that
   * resumes it.
   */
  readonly reactivation: (accountId: number) => readonly Statement[];
  /** Called after the commit. */
  readonly creditsAdded?: (accountId: number) => void;
  readonly accountChanged?: (accountId: number) => void;
  /** Charges the account for its usage up to now. */
  readonly settle?: (accountId: number) => Promise<void>;
  readonly balance?: AccountsDeps['balance'];
}

export interface Adjustment {
  /** Credits; negative amounts are deducted. */
  readonly amount: number;
  readonly reason: string;
  /** Chosen by the caller, so that a repeated request books only once. */
  readonly transferId?: string | undefined;
}

interface AccountsPage {
  readonly afterId: number;
  readonly limit: number;
}

export class Administration {
  readonly #deps: AdministrationDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: AdministrationDeps) {
    this.#deps = deps;
  }

  /** Accounts by id, after `afterId`, at most `limit`, with bounded memory. Closed ones are omitted. */
  async *list({ afterId: after, limit }: AccountsPage): AsyncGenerator<AdminAccount> {
    const { store } = this.#deps;
    const rows = listRows({ after, limit }, (last, size) => store.accountsAfter(last, size));
    for await (const row of rows) yield await this.#present(await this.#shown(row));
  }

  /** Throws `account_not_found`. */
  async get(accountId: number): Promise<AdminAccount> {
    return this.#present(await this.#shown(await this.#find(accountId)));
  }

  /** Throws `password_required` for an administrator, and the errors of Accounts.create. */
  async create(
    recorder: Recorder & { readonly principal?: Principal },
    fields: NewAccount & { readonly isAdmin?: boolean | undefined },
  ): Promise<Account> {
    if (fields.isAdmin === true && recorder.principal !== undefined)
      await this.#deps.checks.assertFresh(recorder.principal);
    return this.#deps.accounts.create(recorder, fields, { isAdmin: fields.isAdmin ?? false });
  }

  /**
   * Grants credits, or deducts them if `amount` is negative. Changes nothing if an equal adjustment
   * with this id exists. Throws `invalid_request`, `account_not_found`, `insufficient_credits` (the
   * balance would fall below zero), `transfer_exists` (another adjustment has the id),
   * `write_conflict`.
   */
  async credit(call: Call, accountId: number, adjustment: Adjustment): Promise<AdminAccount> {
    const micro = toMicro(adjustment.amount, 'amount');
    if (micro === 0) throw invalidField('amount', 'must not be 0');
    assertPlainText('reason', adjustment.reason);
    const { changes, clock } = this.#deps;
    const { transferId } = adjustment;
    const id =
      transferId === undefined ? `adjustment:${newId('op', clock)}` : `adjustment:given:${transferId}`;
    const booking = adjustmentTransfer(id, {
      accountId,
      micro,
      reason: adjustment.reason,
      by: call.principal,
    });
    // The displayed balance limits what may be deducted.
    await this.#deps.settle?.(accountId);
    // Serialized: each change expects the balance after the previous one.
    return this.#locks.run(String(accountId), () =>
      changes.run(call, async (change) => {
        const row = await this.#find(accountId);
        if (transferId !== undefined && (await this.#isBooked(booking))) return this.#present(row);
        return this.#book(change, { row, micro, booking });
      }),
    );
  }

  /** The row with the balance as shown to its owner: usage that is not charged yet counts as spent. */
  async #shown(row: AccountRow): Promise<AccountRow> {
    const left = await this.#deps.balance?.(row.id);
    return left === undefined ? row : { ...row, credits_micro: left.free, held_micro: left.held };
  }

  async #present(row: AccountRow): Promise<AdminAccount> {
    return describeForAdmin(row, await this.#deps.store.lastSeenAt(row.id));
  }

  #book(
    change: Change,
    { row, micro, booking }: { readonly row: AccountRow; readonly micro: number; readonly booking: Booking },
  ): Promise<AdminAccount> {
    const { store, clock, transfer, creditsAdded } = this.#deps;
    const before = Number(row.credits_micro);
    const after = before + micro;
    assertBalance(row, after);
    change.expect(store.expectBalance(row.id, before), 'retry');
    change.addAll(transfer({ ...booking, at: clock.now() }), 'retry');
    if (micro > 0) change.after(() => creditsAdded?.(row.id));
    return this.#present({ ...row, credits_micro: after });
  }

  /**
   * Rejects every key and session of the account from now on, and stops its machines. Throws
   * `invalid_request` for the caller's own account, `last_administrator`.
   */
  async suspend(
    call: Call,
    target: { readonly accountId: number; readonly reason: string },
  ): Promise<AdminAccount> {
    if (call.principal.accountId === target.accountId) {
      throw new AppError('invalid_request', 'An administrator cannot suspend their own account');
    }
    assertPlainText('reason', target.reason);
    return this.#setSuspended(call, target.accountId, target.reason);
  }

  /**
   * Restarts the machines that the suspension stopped, if the account has credits. Throws
   * `account_not_found`, and `write_conflict` if an administrator has removed the account.
   */
  resume(recorder: Recorder, accountId: number): Promise<AdminAccount> {
    return this.#setSuspended(recorder, accountId, null);
  }

  /**
   * Suspends expired accounts, except the last administrator; each has an entry in the audit log. Called
   * periodically.
   */
  async expire(): Promise<void> {
    const { reads, changes, clock, audit, accountChanged } = this.#deps;
    const now = clock.now();
    for (const { id, username } of await expiredAccounts(reads, now)) {
      await changes.run(BACKGROUND, (change) => {
        change.addAll(expectOtherAdministrator(id), 'skip');
        change.expect(expireAccount(id, now, EXPIRED), 'skip');
        change.addAll(audit.statements(entryOfCloud('suspendExpiredAccount', { accountId: id, username })));
        change.forgets({ kind: 'account', id });
        change.after(() => accountChanged?.(id));
      });
    }
  }

  /**
   * The account with its current key, which is created if there is none. Throws
   * `account_not_found`, `password_required`, `operator_required`.
   */
  async showKey(call: Call, accountId: number): Promise<Account> {
    const { apiKeys, changes, checks } = this.#deps;
    await checks.assertFresh(call.principal);
    return changes.run(call, async (change) => {
      const row = await this.#find(accountId);
      if (call.principal.accountId !== accountId) assertMayOpen(call.principal, row);
      const key = (await apiKeys.current(accountId)) ?? apiKeys.replaceAll(change, accountId);
      return describeAccount(row, key);
    });
  }

  /**
   * At start: makes `key` (any text) the key of the administrator `admin`, who is created if
   * missing. If a user without administrator rights has that name, the next free name of `admin-2`,
   * `admin-3`, … is used.
   */
  async ensureAdminKey(key: string): Promise<void> {
    const { store, accounts, apiKeys, authenticator, changes } = this.#deps;
    authenticator.allowPresetKey(key);
    for (let number = 1; ; number++) {
      const username = number === 1 ? 'admin' : `admin-${number}`;
      const row = await store.accountByUsername(username);
      if (row === undefined) {
        const fields = { username, email: `${username}@localhost` };
        await accounts.create(BACKGROUND, fields, { isAdmin: true, apiKey: key, claimEmail: false });
        return;
      }
      if (row.is_admin === 0) continue;
      if ((await apiKeys.current(row.id)) !== key) {
        await changes.run(BACKGROUND, (change) => apiKeys.replaceAll(change, row.id, key));
      }
      return;
    }
  }

  /** Throws `transfer_exists` if another transfer has the id. */
  async #isBooked(booking: Booking): Promise<boolean> {
    const row = await this.#deps.store.transfer(booking.id);
    if (row === undefined) return false;
    const isSame =
      row.debit === booking.debit &&
      row.credit === booking.credit &&
      BigInt(row.amount_micro) === booking.amountMicro &&
      row.reference === booking.reference;
    if (isSame) return true;
    throw new AppError('transfer_exists', 'The transfer_id was used for another adjustment', {
      hint: 'Use a new transfer_id for each adjustment',
    });
  }

  async #find(accountId: number): Promise<AccountRow> {
    const row = await this.#deps.store.account(accountId);
    if (row === undefined) throw accountNotFound();
    return row;
  }

  /** By an administrator: a closing by the owner ends the keys as well. */
  async #isRemoved({ id, removal_at }: AccountRow): Promise<boolean> {
    return removal_at !== null && (await this.#deps.store.mainKeys(id)).length > 0;
  }

  #setSuspended(recorder: Recorder, accountId: number, reason: string | null): Promise<AdminAccount> {
    const { store, changes, clock, reactivation, accountChanged } = this.#deps;
    return changes.run(recorder, async (change) => {
      const row = await this.#find(accountId);
      change.add(expectStanding(row), 'retry');
      // Its owner could then undo the removal by signing in.
      if (reason === null && (await this.#isRemoved(row))) throw toBeRemoved();
      if (reason !== null && row.is_admin === 1)
        change.addAll(expectOtherAdministrator(accountId), lastAdministrator);
      change.expect(store.setSuspended(accountId, reason), accountNotFound);
      const isOver = reason === null && row.expires_at !== null && row.expires_at <= clock.now();
      if (reason === null) {
        change.addAll(reactivation(accountId));
        // Otherwise it would be suspended again within a minute.
        if (isOver) change.expect(setExpiry(accountId, null), accountNotFound);
      }
      change.forgets({ kind: 'account', id: accountId });
      change.after(() => accountChanged?.(accountId));
      const isActive = reason === null && row.removal_at === null;
      const expires_at = isOver ? null : row.expires_at;
      const after = { ...row, expires_at, is_active: isActive ? 1 : 0, suspended_reason: reason };
      return this.#present(await this.#shown(after));
    });
  }
}

function toBeRemoved(): AppError {
  return new AppError('write_conflict', 'This account is to be removed', {
    hint: 'Cancel the removal first: POST /api/admin/accounts/{id}/keep, or "Keep the account" in the console',
  });
}

type Booking = Omit<Parameters<Transfer>[0], 'at'>;

function adjustmentTransfer(
  id: string,
  made: {
    readonly accountId: number;
    readonly micro: number;
    readonly reason: string;
    readonly by: Principal;
  },
): Booking {
  const { accountId, micro, reason, by } = made;
  const user = `account:${accountId}`;
  return {
    id,
    debit: micro > 0 ? 'system:grants' : user,
    credit: micro > 0 ? user : 'system:grants',
    amountMicro: BigInt(Math.abs(micro)),
    code: micro > 0 ? 'admin_grant' : 'admin_withdrawal',
    reference: `by ${nameOf(by)}: ${reason}`,
  };
}

function assertBalance(row: AccountRow, after: number): void {
  if (after < 0) {
    const available = toCredits(row.credits_micro);
    const held = toCredits(row.held_micro);
    const what = held === 0 ? '' : `; ${held} more are on hold for running machines`;
    throw new AppError('insufficient_credits', `The account has only ${available} credits available${what}`, {
      extra: { available, held },
    });
  }
  if (toCredits(after) > MAX_CREDITS) {
    throw invalidField('amount', `would raise the balance above ${MAX_CREDITS} credits`);
  }
}

/**
 * Reasons are shown in the ledger and in logs: no line breaks that forge another entry, no control
 * characters.
 */
export function assertPlainText(field: string, text: string): void {
  if (text.trim() === '' || !text.isWellFormed() || /\p{Cc}/u.test(text)) {
    throw invalidField(field, 'must not be empty or contain control characters');
  }
}
