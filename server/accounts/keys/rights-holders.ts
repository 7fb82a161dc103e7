/** Accounts and their keys as callers of the edge, without presenting their credentials. */
import type { Principal } from '../../calls/principal.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, type ErrorCode } from '../../platform/errors.ts';
import { accountNotFound } from '../account-errors.ts';
import { toPrincipal } from '../sign-in/authenticator.ts';
import type { AccountStore, CredentialRow } from '../store.ts';
import type { ApiKeys } from './api-keys.ts';

export interface RightsHoldersDeps {
  readonly apiKeys: Pick<ApiKeys, 'ownsAccount'>;
  readonly store: AccountStore;
  readonly clock: Clock;
}

/** `refusal`: the error of each of its calls; null: none. */
interface Holder {
  readonly principal: Principal;
  readonly ownsAccount: boolean;
  readonly refusal: ErrorCode | null;
}

export class RightsHolders {
  readonly #deps: RightsHoldersDeps;

  constructor(deps: RightsHoldersDeps) {
    this.#deps = deps;
  }

  async ofCaller(principal: Principal): Promise<Holder> {
    const ownsAccount = await this.#deps.apiKeys.ownsAccount(principal);
    return { principal, ownsAccount, refusal: null };
  }

  /** The account itself, or one of its keys. Throws `account_not_found`, `access_key_not_found`. */
  async of(accountId: number, keyId: string | undefined): Promise<Holder> {
    const { store, clock, apiKeys } = this.#deps;
    const account = await store.account(accountId);
    if (account === undefined) throw accountNotFound();
    const row: CredentialRow | undefined =
      keyId === undefined
        ? {
            account_id: account.id,
            username: account.username,
            canonical_id: account.canonical_id,
            is_admin: account.is_admin,
            is_auditor: account.is_auditor,
            is_active: account.is_active,
            suspended_reason: account.suspended_reason,
            credential_id: '',
            secret_hash: '',
            scopes: '["*"]',
            bucket_limits: null,
            expires_at: null,
            last_seen_at: 0,
          }
        : await store.keyHolderById(keyId);
    if (row === undefined || row.account_id !== accountId)
      throw new AppError('access_key_not_found', 'The account has no such access key');
    const principal = toPrincipal(row, keyId === undefined ? 'session' : 'key');
    const isOver = row.expires_at !== null && row.expires_at <= clock.now();
    const ownsAccount = await apiKeys.ownsAccount(principal);
    const refusal = isOver ? 'invalid_api_key' : row.is_active === 0 ? 'account_suspended' : null;
    return { principal, ownsAccount, refusal };
  }
}
