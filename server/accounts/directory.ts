/** Finds accounts by the names that other accounts use. Closed accounts are never found. */
import { foldUsername } from './account-fields.ts';
import type { AccountRow, AccountStore } from './store.ts';

export interface KnownAccount {
  readonly accountId: number;
  readonly canonicalId: string;
  readonly username: string;
}

export class AccountDirectory {
  readonly #store: AccountStore;

  constructor({ store }: { readonly store: AccountStore }) {
    this.#store = store;
  }

  async byCanonicalId(id: string): Promise<KnownAccount | undefined> {
    return known(await this.#store.accountByCanonicalId(id));
  }

  async byUsername(username: string): Promise<KnownAccount | undefined> {
    return known(await this.#store.accountByUsername(foldUsername(username)));
  }

  async byId(accountId: number): Promise<KnownAccount | undefined> {
    return known(await this.#store.account(accountId));
  }
}

function known(row: AccountRow | undefined): KnownAccount | undefined {
  return row && { accountId: row.id, canonicalId: row.canonical_id, username: row.username };
}
