/** Whether an account may begin what costs something. */
import { toCredits } from '../accounts/credits.ts';
import { formatTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import type { CreditStore } from './credit-store.ts';

const HINT = 'Reading, exporting, stopping and deleting still work; ask your administrator for credits';

export class Credit {
  readonly #store: CreditStore;

  constructor(deps: { readonly store: CreditStore }) {
    this.#store = deps.store;
  }

  /**
   * Throws `insufficient_credits` unless something is left; also while the account is in grace or suspended,
   * until it gets credits. The refusal tells of `neededMicro`, which is not demanded. One read.
   */
  async assertCredit(accountId: number, neededMicro = 1n): Promise<void> {
    const row = await this.#store.find(accountId);
    const free = BigInt(row?.micro ?? 0);
    const isOut = row?.state === 'grace' || row?.state === 'suspended';
    if (!isOut && free > 0n) return;
    const available = toCredits(free > 0n ? free : 0n);
    const needed = toCredits(neededMicro);
    throw new AppError('insufficient_credits', detail(isOut, row?.exhausted_at ?? null), {
      hint: HINT,
      extra: { needed, available },
    });
  }
}

function detail(isOut: boolean, exhaustedAt: number | null): string {
  if (isOut) {
    const since = exhaustedAt === null ? '' : ` since ${formatTime(exhaustedAt)}`;
    return `Your account is out of credits${since}: nothing new can be created, started or stored`;
  }
  return 'Your account has no credits left: nothing new can be created, started or stored';
}
