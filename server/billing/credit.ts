/** Whether an account may begin what costs something. */
import { toCredits } from '../accounts/credits.ts';
import { formatTime } from '../clock.ts';
import { AppError } from '../errors.ts';
import type { CreditStore } from './credit-store.ts';

const HINT = 'Reading, exporting, stopping and deleting still work; ask your administrator for credits';

export class Credit {
  readonly #store: CreditStore;

  constructor(deps: { readonly store: CreditStore }) {
    this.#store = deps.store;
  }

  /**
   * Throws `insufficient_credits` unless something is left, and `neededMicro` when it is given; also while
   * the account is in grace or suspended, until it gets credits. One read.
   */
  async require(accountId: number, neededMicro = 1n): Promise<void> {
    const row = await this.#store.find(accountId);
    const free = BigInt(row?.micro ?? 0);
    const isOut = row?.state === 'grace' || row?.state === 'suspended';
    if (!isOut && free >= neededMicro && free > 0n) return;
    const available = toCredits(free > 0n ? free : 0n);
    const needed = toCredits(neededMicro);
    throw new AppError('insufficient_credits', detail({ isOut, available, needed, row }), {
      hint: HINT,
      extra: { needed, available },
    });
  }
}

function detail(facts: {
  readonly isOut: boolean;
  readonly available: number;
  readonly needed: number;
  readonly row: { readonly exhausted_at: number | null } | undefined;
}): string {
  const { isOut, available, needed, row } = facts;
  if (isOut) {
    const since = row?.exhausted_at == null ? '' : ` since ${formatTime(row.exhausted_at)}`;
    return `Your account is out of credits${since}: nothing new can be created, started or stored`;
  }
  if (available > 0) return `This needs ${needed} credits, ${available} can be spent`;
  return 'Your account has no credits left: nothing new can be created, started or stored';
}
