/** What administrators do with accounts. */
import type { Clock } from '../clock.ts';
import { AppError, invalidField } from '../errors.ts';
import { newId } from '../ids.ts';
import { CommitRejected, type Metadata } from '../metadata/metadata.ts';
import { noReceipt, type Receipt } from '../metadata/receipt.ts';
import { describeAccount, describeForAdmin } from './account-answer.ts';
import { type Accounts, accountNotFound, type NewAccount, type Transfer } from './accounts.ts';
import type { ApiKeys } from './api-keys.ts';
import type { Authenticator } from './authenticator.ts';
import { MAX_CREDITS, toCredits, toMicro } from './credits.ts';
import type { Principal } from './principal.ts';
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
}

export class Administration {
  readonly #deps: AdministrationDeps;

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
   * Grants credits, or takes them away when `amount` is negative. Throws `invalid_request`,
   * `account_not_found`, `insufficient_credits` (it would fall below zero), `write_conflict`.
   */
  async credit(
    accountId: number,
    grant: { readonly amount: number; readonly reason: string },
    receipt: Receipt,
  ): Promise<AdminAccount> {
    const micro = toMicro(grant.amount, 'amount');
    if (micro === 0) throw invalidField('amount', 'must not be 0');
    demandPlainText('reason', grant.reason);
    const { store, metadata, transfer, clock } = this.#deps;
    const user = `account:${accountId}`;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const row = await this.#find(accountId);
      const before = Number(row.credits_micro);
      const after = before + micro;
      demandBalance(before, after);
      const answer = describeForAdmin({ ...row, credits_micro: after });
      const ours = [
        store.expectBalance(accountId, before),
        ...transfer({
          id: `adjustment:${newId('op', clock)}`,
          debit: micro > 0 ? 'system:grants' : user,
          credit: micro > 0 ? user : 'system:grants',
          amountMicro: BigInt(Math.abs(micro)),
          code: micro > 0 ? 'admin_grant' : 'admin_withdrawal',
          reference: grant.reason,
          at: clock.now(),
        }),
      ];
      try {
        await metadata.commit([...ours, ...receipt(answer)]);
        return answer;
      } catch (error) {
        // The balance moved meanwhile: count anew.
        if (error instanceof CommitRejected && error.index < ours.length) continue;
        throw error;
      }
    }
    throw new AppError('write_conflict', 'The balance keeps changing; try again');
  }

  /** Every key and session of the account is refused from now on. Throws `invalid_request` for oneself. */
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
      const statements = receipt(answer);
      if (statements.length > 0) await metadata.commit(statements);
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

  async #find(accountId: number): Promise<AccountRow> {
    const row = await this.#deps.store.account(accountId);
    if (row === undefined) throw accountNotFound();
    return row;
  }

  async #setSuspended(accountId: number, reason: string | null, receipt: Receipt): Promise<AdminAccount> {
    const { store, metadata, authenticator } = this.#deps;
    const row = await this.#find(accountId);
    const answer = describeForAdmin({
      ...row,
      is_active: reason === null ? 1 : 0,
      suspended_reason: reason,
    });
    try {
      await metadata.commit([store.setSuspended(accountId, reason), ...receipt(answer)]);
    } catch (error) {
      if (error instanceof CommitRejected && error.index === 0) throw accountNotFound();
      throw error;
    }
    authenticator.forgetAccount(accountId);
    return answer;
  }
}

function demandBalance(before: number, after: number): void {
  if (after < 0) {
    throw new AppError('insufficient_credits', `The account has only ${toCredits(before)} credits`);
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
