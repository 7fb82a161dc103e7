/** What administrators do with accounts. */
import type { Principal } from '../calls/principal.ts';
import { CommitRejected, type Metadata, type Statement } from '../metadata/metadata.ts';
import { noReceipt, type Receipt } from '../metadata/receipt.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError, invalidField } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { KeyLocks } from '../platform/keyed-mutex.ts';
import { describeAccount, describeForAdmin } from './account-answer.ts';
import { type Accounts, accountNotFound, type NewAccount, type Transfer } from './accounts.ts';
import type { ApiKeys } from './api-keys.ts';
import type { Authenticator } from './authenticator.ts';
import { MAX_CREDITS, toCredits, toMicro } from './credits.ts';
import type { Account, AdminAccount } from './schema.ts';
import type { AccountRow, AccountStore } from './store.ts';

const ATTEMPTS = 10;
const PAGE_SIZE = 500;

export interface AdministrationDeps {
  readonly store: AccountStore;
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly accounts: Accounts;
  readonly apiKeys: ApiKeys;
  readonly authenticator: Authenticator;
  readonly transfer: Transfer;
  /** What lets the machines of a resumed account start again (billing), for the commit that resumes it. */
  readonly reactivation: (accountId: number) => readonly Statement[];
  /** Told after the commit. */
  readonly creditsAdded?: (accountId: number) => void;
  readonly accountChanged?: (accountId: number) => void;
}

export interface Adjustment {
  /** Credits; negative takes them away. */
  readonly amount: number;
  readonly reason: string;
  /** Chosen by the caller: it is booked once. */
  readonly transferId?: string | undefined;
  readonly by: Pick<Principal, 'accountId' | 'username'>;
}

export class Administration {
  readonly #deps: AdministrationDeps;
  readonly #locks = new KeyLocks();

  constructor(deps: AdministrationDeps) {
    this.#deps = deps;
  }

  /** Accounts by id, those above `afterId`, at most `limit`, at constant memory. Closed ones are left out. */
  async *list(page: { readonly afterId: number; readonly limit: number }): AsyncGenerator<AdminAccount> {
    let { afterId, limit: left } = page;
    while (left > 0) {
      const asked = Math.min(left, PAGE_SIZE);
      const rows = await this.#deps.store.accountsAfter(afterId, asked);
      for (const row of rows) yield describeForAdmin(row);
      if (rows.length < asked) return;
      left -= rows.length;
      afterId = rows.at(-1)?.id ?? afterId;
    }
  }

  /** Errors as Accounts.create. */
  async create(
    fields: NewAccount & { readonly isAdmin?: boolean | undefined },
    receipt: Receipt,
  ): Promise<Account> {
    return await this.#deps.accounts.create(fields, { isAdmin: fields.isAdmin ?? false, receipt });
  }

  /**
   * Grants credits, or takes them away when `amount` is negative. With the id of an equal adjustment that was
   * made before it changes nothing. Throws `invalid_request`, `account_not_found`, `insufficient_credits` (it
   * would fall below zero), `transfer_exists` (the id is of another adjustment), `write_conflict`.
   */
  async credit(accountId: number, adjustment: Adjustment, receipt: Receipt): Promise<AdminAccount> {
    const micro = toMicro(adjustment.amount, 'amount');
    if (micro === 0) throw invalidField('amount', 'must not be 0');
    demandPlainText('reason', adjustment.reason);
    // One after the other: each expects the balance that the one before left.
    return this.#locks.run(String(accountId), () => this.#adjust(accountId, { micro, adjustment }, receipt));
  }

  async #adjust(
    accountId: number,
    { micro, adjustment }: { readonly micro: number; readonly adjustment: Adjustment },
    receipt: Receipt,
  ): Promise<AdminAccount> {
    const { store, metadata, clock } = this.#deps;
    const { transferId } = adjustment;
    const id =
      transferId === undefined ? `adjustment:${newId('op', clock)}` : `adjustment:given:${transferId}`;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const row = await this.#find(accountId);
      const before = Number(row.credits_micro);
      const booking = adjustmentTransfer(id, { accountId, micro, adjustment });
      if (transferId !== undefined && (await this.#isBooked(booking))) {
        const answer = describeForAdmin(row);
        await commitReceipt(metadata, receipt(answer));
        return answer;
      }
      const after = before + micro;
      demandBalance(row, after);
      const answer = describeForAdmin({ ...row, credits_micro: after });
      const ours = [
        store.expectBalance(accountId, before),
        ...this.#deps.transfer({ ...booking, at: clock.now() }),
      ];
      try {
        await metadata.commit([...ours, ...receipt(answer)]);
        if (micro > 0) this.#deps.creditsAdded?.(accountId);
        return answer;
      } catch (error) {
        // The balance moved meanwhile: count anew.
        if (error instanceof CommitRejected && error.index < ours.length) continue;
        throw error;
      }
    }
    throw new AppError('write_conflict', 'The balance keeps changing; try again');
  }

  /**
   * Every key and session of the account is refused from now on, and its machines are stopped. Throws
   * `invalid_request` for oneself.
   */
  async suspend(
    principal: Principal,
    target: { readonly accountId: number; readonly reason: string },
    receipt: Receipt,
  ): Promise<AdminAccount> {
    if (principal.accountId === target.accountId) {
      throw new AppError('invalid_request', 'An administrator cannot suspend the account in use');
    }
    demandPlainText('reason', target.reason);
    return await this.#setSuspended(target.accountId, target.reason, receipt);
  }

  /** Machines that its suspension stopped start again, given credits. Throws `account_not_found`. */
  async resume(accountId: number, receipt: Receipt): Promise<AdminAccount> {
    return await this.#setSuspended(accountId, null, receipt);
  }

  /** The account with its current key, which is made when there is none. Throws `account_not_found`. */
  async showKey(accountId: number, receipt: Receipt): Promise<Account> {
    const { apiKeys, metadata } = this.#deps;
    const row = await this.#find(accountId);
    const known = await apiKeys.current(accountId);
    if (known !== null) {
      const answer = describeAccount(row, known);
      await commitReceipt(metadata, receipt(answer));
      return answer;
    }
    const made = apiKeys.replaceAll(accountId);
    const answer = describeAccount(row, made.text);
    await metadata.commit([...made.statements, ...receipt(answer)]);
    this.#deps.authenticator.forgetAccount(accountId);
    return answer;
  }

  /**
   * At start: makes `key`, any text, the key of the administrator `admin`, whom it creates when missing.
   * When a user who is no administrator took that name, the next free of `admin-2`, `admin-3`, … is used.
   */
  async ensureAdminKey(key: string): Promise<void> {
    const { store, accounts, apiKeys, authenticator, metadata } = this.#deps;
    authenticator.allowPresetKey(key);
    for (let number = 1; ; number++) {
      const username = number === 1 ? 'admin' : `admin-${number}`;
      const row = await store.accountByUsername(username);
      if (row === undefined) {
        const email = `${username}@localhost`;
        await accounts.create(
          { username, email },
          { isAdmin: true, apiKey: key, claimEmail: false, receipt: noReceipt },
        );
        return;
      }
      if (row.is_admin === 0) continue;
      if ((await apiKeys.current(row.id)) !== key) {
        await metadata.commit(apiKeys.replaceAll(row.id, key).statements);
        authenticator.forgetAccount(row.id);
      }
      return;
    }
  }

  /** Throws `transfer_exists` when another transfer has the id. */
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
      hint: 'Give each adjustment an id of its own',
    });
  }

  async #find(accountId: number): Promise<AccountRow> {
    const row = await this.#deps.store.account(accountId);
    if (row === undefined) throw accountNotFound();
    return row;
  }

  async #setSuspended(accountId: number, reason: string | null, receipt: Receipt): Promise<AdminAccount> {
    const { store, metadata, authenticator, reactivation, accountChanged } = this.#deps;
    const row = await this.#find(accountId);
    const answer = describeForAdmin({
      ...row,
      is_active: reason === null ? 1 : 0,
      suspended_reason: reason,
    });
    try {
      const follows = reason === null ? reactivation(accountId) : [];
      await metadata.commit([store.setSuspended(accountId, reason), ...follows, ...receipt(answer)]);
    } catch (error) {
      if (error instanceof CommitRejected && error.index === 0) throw accountNotFound();
      throw error;
    }
    authenticator.forgetAccount(accountId);
    accountChanged?.(accountId);
    return answer;
  }
}

type Booking = Omit<Parameters<Transfer>[0], 'at'>;

function adjustmentTransfer(
  id: string,
  made: { readonly accountId: number; readonly micro: number; readonly adjustment: Adjustment },
): Booking {
  const { accountId, micro, adjustment } = made;
  const { by, reason } = adjustment;
  const user = `account:${accountId}`;
  // The operator on the machine itself has no account.
  const who = by.accountId === 0 ? 'the operator' : `${by.username} (account ${by.accountId})`;
  return {
    id,
    debit: micro > 0 ? 'system:grants' : user,
    credit: micro > 0 ? user : 'system:grants',
    amountMicro: BigInt(Math.abs(micro)),
    code: micro > 0 ? 'admin_grant' : 'admin_withdrawal',
    reference: `by ${who}: ${reason}`,
  };
}

async function commitReceipt(metadata: Metadata, statements: readonly Statement[]): Promise<void> {
  if (statements.length > 0) await metadata.commit(statements);
}

function demandBalance(row: AccountRow, after: number): void {
  if (after < 0) {
    const available = toCredits(row.credits_micro);
    const held = toCredits(row.held_micro);
    const what = held === 0 ? '' : `; ${held} more are held for what runs`;
    throw new AppError('insufficient_credits', `The account has only ${available} credits to spend${what}`, {
      extra: { available, held },
    });
  }
  if (toCredits(after) > MAX_CREDITS) {
    throw invalidField('amount', `would bring the balance above ${MAX_CREDITS} credits`);
  }
}

/** Reasons stand in the ledger and in logs: no line breaks that forge another entry, nothing unprintable. */
function demandPlainText(field: string, text: string): void {
  if (text.trim() === '' || !text.isWellFormed() || /\p{Cc}/u.test(text)) {
    throw invalidField(field, 'must be text without control characters');
  }
}
