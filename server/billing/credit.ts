/** Whether an account can still pay. */
import { AppError } from '../errors.ts';
import type { CreditStore } from './credit-store.ts';

export class Credit {
  readonly #store: CreditStore;

  constructor(deps: { readonly store: CreditStore }) {
    this.#store = deps.store;
  }

  /** Throws `insufficient_credits` unless something is left. */
  async require(accountId: number): Promise<void> {
    const balance = await this.#store.balanceMicro(accountId);
    if (balance !== undefined && balance > 0) return;
    throw new AppError(
      'insufficient_credits',
      'Your account has no credits left: nothing new can be created or stored',
      {
        hint: 'Reading, exporting and deleting still work; ask your administrator for credits',
      },
    );
  }
}
