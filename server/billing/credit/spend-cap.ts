/**
 * Spend caps: how much an account may spend in a calendar month (UTC). The cost of all usage of the month
 * counts, charged or not: `total_cost` of the month's report. Pure rules, and the check itself.
 */
import { toCredits } from '../../accounts/credits.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { Prices } from '../catalog/prices.ts';
import { costIn, type Rating, type Unrated } from '../metering/rating.ts';
import { monthOf } from '../metering/settlement.ts';
import type { SteadyClock } from '../metering/steady-clock.ts';
import { formatMonth } from '../reports/report-period.ts';
import { BillingAccountStore, type BillingRow, type SpendRow } from './billing-account-store.ts';
import { msLeft, rememberedPrices, sureMs, totalBurnNano } from './credit.ts';

export interface SpendFacts {
  /** null: no cap. */
  readonly capMicro: bigint | null;
  /** Spending of this month. */
  readonly spentMicro: bigint;
  /** Ascending, below 100. */
  readonly warnPercents: readonly number[];
  /** The highest percentage with a warning in this month; 0: none. */
  readonly warnedPercent: number;
}

export interface SpendStep {
  readonly isCapped: boolean;
  /** The highest threshold that was passed since the last warning; null: none. */
  readonly warn: number | null;
}

/** Reaching the cap has its own event, so no warning is sent for the thresholds below it. */
export function spendStepOf({ capMicro, spentMicro, warnPercents, warnedPercent }: SpendFacts): SpendStep {
  if (capMicro === null) return { isCapped: false, warn: null };
  const passed = reachedPercent(capMicro, spentMicro, warnPercents);
  const isCapped = spentMicro >= capMicro;
  return { isCapped, warn: !isCapped && passed > warnedPercent ? passed : null };
}

/** The highest of the thresholds that is reached; 0: none. */
export function reachedPercent(capMicro: bigint, spentMicro: bigint, percents: readonly number[]): number {
  const reached = percents.filter((percent) => spentMicro * 100n >= capMicro * BigInt(percent));
  return Math.max(0, ...reached);
}

export function readPercents(text: string): number[] {
  return text === '' ? [] : text.split(',').map(Number);
}

/** `spentMicro`; default: the rated part. */
export function spendFactsOf(
  row: SpendRow,
  monthFrom: number,
  spentMicro = BigInt(row.spent_micro),
): SpendFacts {
  return {
    capMicro: row.cap_micro === null ? null : BigInt(row.cap_micro),
    spentMicro,
    warnPercents: readPercents(row.warn_percents),
    warnedPercent: row.warned_from === monthFrom ? row.warned_percent : 0,
  };
}

export type SpendEvent = 'billing.spend_warning' | 'billing.spend_cap_reached' | 'billing.spend_cap_lifted';

/** Data of an event. */
export function spendData(row: SpendRow, at: number, percent: number | null) {
  const { cap_micro: cap, spent_micro: spent } = row;
  return {
    month: formatMonth(at),
    cap: cap === null ? null : toCredits(cap),
    spent: toCredits(spent),
    ...(percent === null ? {} : { percent }),
    resets_at: formatTime(monthOf(at).to),
  };
}

/** An account's caps and spending at one moment. */
export interface Spend {
  readonly row: SpendRow;
  readonly plan: string;
  readonly unrated: Unrated;
  readonly spentMicro: bigint;
  /** ms since 1970. */
  readonly at: number;
}

export interface SpendCapsDeps {
  readonly metadata: Pick<Metadata, 'snapshot'>;
  readonly accounts: BillingAccountStore;
  readonly rating: Pick<Rating, 'withUnrated' | 'unratedIn'>;
  readonly prices: Prices;
  readonly clock: Clock;
  readonly steady: SteadyClock;
}

interface Sure {
  readonly capMicro: bigint;
  /** Beginning of the month. */
  readonly from: number;
  /** Time of the monotonic clock, ms. */
  readonly until: number;
}

const MOST_KNOWN = 10_000;

export class SpendCaps {
  readonly #deps: SpendCapsDeps;
  /** Accounts that stay below their cap for a short time, whatever they use: uploads check often. */
  readonly #sure = new Map<number, Sure>();

  constructor(deps: SpendCapsDeps) {
    this.#deps = deps;
  }

  /** Throws `spend_cap_reached` if the account, as just read, has a cap and has spent as much this month. */
  async assertBelow({ account_id: accountId, cap_micro, plan }: BillingRow): Promise<void> {
    const { accounts, rating, prices, clock, steady } = this.#deps;
    if (cap_micro === null) return;
    const month = monthOf(clock.now());
    const known = this.#sure.get(accountId);
    const isSame = known?.capMicro === BigInt(cap_micro) && known.from === month.from;
    if (isSame && steady.now() < known.until) return;
    await rating.withUnrated(accountId, async ({ windows, lines }) => {
      const row = await accounts.findSpend(accountId, month);
      if (row?.cap_micro == null) return;
      const capMicro = BigInt(row.cap_micro);
      const spentMicro = BigInt(row.spent_micro) + costIn(month, windows);
      if (spentMicro >= capMicro) throw capReached(row, { spentMicro, at: month.from });
      const burnNano = totalBurnNano(lines, plan, rememberedPrices(prices, clock.now()));
      if (this.#sure.size >= MOST_KNOWN) this.#sure.clear();
      const until = steady.now() + sureMs(capMicro - spentMicro, burnNano);
      this.#sure.set(accountId, { capMicro, from: month.from, until });
    });
  }

  /** Reading charges nothing. undefined: there is no such open account. */
  of(accountId: number): Promise<Spend | undefined> {
    const { metadata, rating, clock } = this.#deps;
    return metadata.snapshot(async (reads) => {
      const at = clock.now();
      const month = monthOf(at);
      const unrated = await rating.unratedIn(reads, accountId);
      const accounts = new BillingAccountStore(reads);
      const row = await accounts.findSpend(accountId, month);
      if (row === undefined) return undefined;
      const { plan = '' } = (await accounts.find(accountId)) ?? {};
      return { row, plan, unrated, at, spentMicro: BigInt(row.spent_micro) + costIn(month, unrated.windows) };
    });
  }
}

interface Course {
  readonly capMicro: bigint | null;
  readonly spentMicro: bigint;
  readonly burnNano: bigint;
  readonly at: number;
  readonly to: number;
}

/** When the cap is reached at the current usage; null: not in this month. */
export function reachedAt({ capMicro, spentMicro, burnNano, at, to }: Course): string | null {
  const left = capMicro === null ? null : msLeft(capMicro - spentMicro, burnNano);
  return left !== null && BigInt(at) + left < BigInt(to) ? formatTime(at + Number(left)) : null;
}

function capReached(row: SpendRow, { spentMicro, at }: { spentMicro: bigint; at: number }): AppError {
  const cap = toCredits(row.cap_micro ?? 0);
  const resetsAt = formatTime(monthOf(at).to);
  const isOwn = row.own_cap_micro === row.cap_micro;
  const isSet = row.admin_cap_micro === row.cap_micro;
  const raise = [
    ...(isOwn ? ['raise your cap (PATCH /api/billing/cap, or `cloudlet billing cap CREDITS`)'] : []),
    ...(isSet ? ['ask your administrator, who set it, for a higher one'] : []),
  ].join(' and ');
  return new AppError(
    'spend_cap_reached',
    `Your account has reached its spend cap of ${cap} credits for ${formatMonth(at)}: ` +
      'nothing new can be created, started or stored',
    {
      hint: `Reading, exporting, stopping and deleting still work; wait until ${resetsAt} UTC, or ${raise}`,
      extra: { cap, spent: toCredits(spentMicro), resets_at: resetsAt },
    },
  );
}
