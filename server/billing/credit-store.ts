/** SQL of what decides whether an account may begin something. */
import type { Awaitable, Reads } from '../metadata/metadata.ts';
import type { BillingState } from './accounts-store.ts';

export interface CreditRow {
  /** May be spent, micro-credits. */
  readonly micro: number | bigint;
  readonly state: BillingState;
  /** ms since 1970. */
  readonly exhausted_at: number | null;
}

export class CreditStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(accountId: number): Awaitable<CreditRow | undefined> {
    return this.#reads.get(
      `SELECT credits_micro AS micro, state, exhausted_at
       FROM accounts JOIN billing_accounts ON account_id = id WHERE id = ?`,
      accountId,
    );
  }
}
