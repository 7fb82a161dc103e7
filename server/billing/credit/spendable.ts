/**
 * The credits of an account: the balance of the ledger less usage that is not charged yet. The number that is
 * shown is the number that decides.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Prices } from '../catalog/prices.ts';
import type { Rating, Unrated } from '../metering/rating.ts';
import { type Balances, balancesOf, settle } from '../metering/settlement.ts';
import type { SteadyClock } from '../metering/steady-clock.ts';
import type { BillingAccountStore, BillingRow } from './billing-account-store.ts';
import { burnNanoOf, rememberedPrices } from './credit.ts';

export interface SpendableDeps {
  readonly accounts: BillingAccountStore;
  readonly rating: Pick<Rating, 'withUnrated'>;
  readonly prices: Prices;
  readonly clock: Clock;
  readonly steady: SteadyClock;
}

/** Micro-credits. */
export type Left = Pick<Balances, 'free' | 'held'>;

interface Sure {
  readonly creditsMicro: bigint;
  /** Time of the monotonic clock, ms. */
  readonly until: number;
}

const HOUR_MS = 3_600_000n;
const NANO_PER_MICRO = 1000n;
const MOST_SURE_MS = 1000;
const MOST_KNOWN = 10_000;

export class Spendable {
  readonly #deps: SpendableDeps;
  /** Accounts that have credits for a moment, whatever they use: uploads ask again and again. */
  readonly #sure = new Map<number, Sure>();

  constructor(deps: SpendableDeps) {
    this.#deps = deps;
  }

  /** Nothing is charged. Of an account that does not exist: nothing. */
  of(accountId: number): Promise<Left> {
    return this.#deps.rating.withUnrated(accountId, async ({ owed }) => {
      const row = await this.#deps.accounts.find(accountId);
      return row === undefined ? { free: 0n, held: 0n } : leftOf(row, owed);
    });
  }

  /** True while of() shows credits that are free, as the account's row was read just now. */
  async isAny(row: BillingRow): Promise<boolean> {
    const { rating, accounts, steady } = this.#deps;
    const creditsMicro = BigInt(row.credits_micro);
    const known = this.#sure.get(row.account_id);
    if (known && creditsMicro >= known.creditsMicro && steady.now() < known.until) return true;
    return rating.withUnrated(row.account_id, async (unrated) => {
      // The account may have been charged since.
      const current = (await accounts.find(row.account_id)) ?? row;
      const { free } = leftOf(current, unrated.owed);
      this.#note(current, { free, burnNano: this.#burnOf(current, unrated) });
      return free > 0n;
    });
  }

  /** Half of the time that the credits last, so that what else begins meanwhile is seen in time. */
  #note(row: BillingRow, { free, burnNano }: { readonly free: bigint; readonly burnNano: bigint }): void {
    if (free <= 0n) return void this.#sure.delete(row.account_id);
    if (this.#sure.size >= MOST_KNOWN) this.#sure.clear();
    const lastsMs = burnNano > 0n ? Number((free * NANO_PER_MICRO * HOUR_MS) / burnNano) : MOST_SURE_MS * 2;
    const until = this.#deps.steady.now() + Math.min(MOST_SURE_MS, lastsMs / 2);
    this.#sure.set(row.account_id, { creditsMicro: BigInt(row.credits_micro), until });
  }

  #burnOf({ plan }: BillingRow, { lines }: Unrated): bigint {
    const { prices, clock } = this.#deps;
    const price = rememberedPrices(prices, clock.now());
    const burn = ({ meter, variant, level }: Unrated['lines'][number]) =>
      burnNanoOf({ meter, level }, price({ meter, variant, plan }));
    return lines.reduce((sum, line) => sum + burn(line), 0n);
  }
}

function leftOf(row: BillingRow, owed: Unrated['owed']): Left {
  return settle(row.account_id, balancesOf(row), owed).after;
}
