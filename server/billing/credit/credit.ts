/**
 * Whether an account has credits, how long they last, and its credit state: pure rules, except for
 * the check itself. Its credits are the balance of the ledger less usage that is not charged yet,
 * both when shown and when checked.
 */
import { toCredits } from '../../accounts/credits.ts';
import type { Clock } from '../../platform/clock.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { PriceQuestion, Prices } from '../catalog/prices.ts';
import type { Checks } from '../ledger/checks.ts';
import { METERS, type MeterName } from '../metering/meters.ts';
import type { Rating, Unrated } from '../metering/rating.ts';
import { type Balances, balancesOf, settle } from '../metering/settlement.ts';
import type { SteadyClock } from '../metering/steady-clock.ts';
import { ticksOf } from '../metering/steady-clock.ts';
import type { BillingAccountStore, BillingRow, BillingState } from './billing-account-store.ts';

/** How to get more credits, for hints. */
export function moreCredits(accountId: number): string {
  const call = `POST /api/admin/accounts/${accountId}/credits`;
  return `ask your administrator for credits (Administration in the console, or ${call})`;
}

interface CreditDeps {
  readonly accounts: BillingAccountStore;
  /** See Spendable. */
  readonly spendable: {
    of(accountId: number): Promise<{ readonly free: bigint }>;
    isAny(row: BillingRow): Promise<boolean>;
  };
  readonly checks: Pick<Checks, 'assertSound'>;
  /** Called only for accounts with a cap. */
  readonly caps: { assertBelow(row: BillingRow): Promise<void> };
}

export class Credit {
  readonly #deps: CreditDeps;

  constructor(deps: CreditDeps) {
    this.#deps = deps;
  }

  /**
   * Throws `insufficient_credits` if no credits are left; also while the account is in grace or
   * suspended, until it gets credits. The message mentions `neededMicro`, which is not required.
   * Throws `spend_cap_reached` if it has spent its cap of this month. Usually one read.
   */
  async assertCredit(accountId: number, neededMicro = 1n): Promise<void> {
    const { accounts, spendable, checks, caps } = this.#deps;
    checks.assertSound();
    const row = await accounts.find(accountId);
    const isOut = row?.state === 'grace' || row?.state === 'suspended';
    if (!isOut && row !== undefined && (await spendable.isAny(row))) {
      if (row.cap_micro !== null) await caps.assertBelow(row);
      return;
    }
    const { free } = await spendable.of(accountId);
    const available = toCredits(free > 0n ? free : 0n);
    const needed = toCredits(neededMicro);
    throw new AppError('insufficient_credits', detail(isOut, row?.exhausted_at ?? null), {
      hint: `Reading, exporting, stopping and deleting still work; ${moreCredits(accountId)}`,
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

export interface CreditFacts {
  readonly state: BillingState;
  /** Available balance, micro-credits. */
  readonly freeMicro: bigint;
  /** Cost of running resources, nano-credits per hour. */
  readonly burnNano: bigint;
  /** Whether credits were added since the state began; a released hold does not count. */
  readonly isToppedUp: boolean;
  readonly isGraceOver: boolean;
}

const NANO_PER_MICRO = 1000n;
const LOW_HOURS = 7n * 24n;
const CRITICAL_HOURS = 24n;

/**
 * The next credit state. Grace ends with new credits, with enough for another hour, or when nothing charged
 * runs: otherwise the released hold of one machine would give the others another grace. Only added credits
 * end a suspension.
 */
export function creditStateOf(facts: CreditFacts): BillingState {
  const { state, freeMicro, burnNano, isToppedUp, isGraceOver } = facts;
  const lasts = (hours: bigint) => freeMicro * NANO_PER_MICRO >= burnNano * hours;
  if (state === 'suspended' && !(isToppedUp && freeMicro > 0n)) return 'suspended';
  if (burnNano === 0n) return 'ok';
  if (state === 'grace' && !(freeMicro > 0n && (isToppedUp || lasts(1n)))) {
    return isGraceOver && freeMicro <= 0n ? 'suspended' : 'grace';
  }
  if (freeMicro <= 0n) return 'grace';
  if (!lasts(CRITICAL_HOURS)) return 'critical';
  return lasts(LOW_HOURS) ? 'ok' : 'low';
}

export type CreditEvent = 'credits.low' | 'credits.exhausted' | 'credits.restored';

const RANK: Readonly<Record<BillingState, number>> = { ok: 0, low: 1, critical: 2, grace: 3, suspended: 4 };

/** The webhook event of a change of state; null: none. */
export function eventOf(before: BillingState, after: BillingState, freeMicro: bigint): CreditEvent | null {
  if (RANK[after] > RANK[before]) return RANK[after] >= RANK.grace ? 'credits.exhausted' : 'credits.low';
  // Without credits nothing is restored: the resources were stopped by their owner.
  const wasOut = RANK[before] >= RANK.grace && RANK[after] < RANK.grace;
  return wasOut && freeMicro > 0n ? 'credits.restored' : null;
}

/** Hours that the credits last; null: nothing uses credits. */
export function hoursLeft(freeMicro: bigint, burnNano: bigint): number | null {
  if (burnNano <= 0n) return null;
  return Number((freeMicro * NANO_PER_MICRO * 100n) / burnNano) / 100;
}

const HOUR_MS = 3_600_000;
const MOST_SURE_MS = 1000;

export interface UsedLine {
  readonly meter: MeterName;
  readonly level: number | bigint;
  readonly level_since: number | bigint;
  readonly pending: number | bigint;
}

/** Nano-credits per hour, at the current level. */
export function burnNanoOf({ meter, level }: Pick<UsedLine, 'meter' | 'level'>, priceNano: bigint): bigint {
  const { tickMs, perUnit } = METERS[meter];
  return (BigInt(level) * BigInt(HOUR_MS / tickMs) * priceNano) / perUnit;
}

type PriceOf = (question: Omit<PriceQuestion, 'at'>) => bigint;

/** Nano-credits per hour of all these lines of an account, at their current levels. */
export function totalBurnNano(lines: Unrated['lines'], plan: string, priceOf: PriceOf): bigint {
  const burn = ({ meter, variant, level }: Unrated['lines'][number]) =>
    burnNanoOf({ meter, level }, priceOf({ meter, variant, plan }));
  return lines.reduce((sum, line) => sum + burn(line), 0n);
}

/** Whole ms that so many micro-credits last; null: nothing uses credits. */
export function msLeft(micro: bigint, burnNano: bigint): bigint | null {
  return burnNano > 0n ? (micro * NANO_PER_MICRO * BigInt(HOUR_MS)) / burnNano : null;
}

/** Validity of an estimate, ms: half the time that the credits last, so that new usage is noticed in time. */
export function sureMs(micro: bigint, burnNano: bigint): number {
  const lasts = msLeft(micro, burnNano);
  return lasts === null ? MOST_SURE_MS : Math.min(MOST_SURE_MS, Number(lasts) / 2);
}

/** Approximate charge for usage up to `steadyMs` that is not rated, micro-credits; a rating is exact. */
export function unratedMicroOf(
  line: UsedLine,
  { priceNano, steadyMs }: { readonly priceNano: bigint; readonly steadyMs: number },
): bigint {
  const meter = METERS[line.meter];
  const openTicks = BigInt(ticksOf(meter, steadyMs)) - BigInt(line.level_since);
  const quantity = BigInt(line.pending) + BigInt(line.level) * openTicks;
  return (quantity * priceNano) / (meter.perUnit * NANO_PER_MICRO);
}

/** Memoizes prices: each is read once. */
export function rememberedPrices(
  prices: { priceNano(question: PriceQuestion): bigint },
  at: number,
): PriceOf {
  const known = new Map<string, bigint>();
  return (question) => {
    const key = `${question.meter}\n${question.variant}\n${question.plan}`;
    const price = known.get(key) ?? prices.priceNano({ ...question, at });
    known.set(key, price);
    return price;
  };
}

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

const MOST_KNOWN = 10_000;

export class Spendable {
  readonly #deps: SpendableDeps;
  /** Accounts known to have credits for a short time, whatever they use: uploads check often. */
  readonly #sure = new Map<number, Sure>();

  constructor(deps: SpendableDeps) {
    this.#deps = deps;
  }

  /** Estimates without charging. Zero for an account that does not exist. */
  of(accountId: number): Promise<Left> {
    return this.#deps.rating.withUnrated(accountId, async ({ owed }) => {
      const row = await this.#deps.accounts.find(accountId);
      return row === undefined ? { free: 0n, held: 0n } : leftOf(row, owed);
    });
  }

  /** True while of() shows free credits for the account's row as just read. */
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

  #note(row: BillingRow, { free, burnNano }: { readonly free: bigint; readonly burnNano: bigint }): void {
    if (free <= 0n) return void this.#sure.delete(row.account_id);
    if (this.#sure.size >= MOST_KNOWN) this.#sure.clear();
    const until = this.#deps.steady.now() + sureMs(free, burnNano);
    this.#sure.set(row.account_id, { creditsMicro: BigInt(row.credits_micro), until });
  }

  #burnOf({ plan }: BillingRow, { lines }: Unrated): bigint {
    const { prices, clock } = this.#deps;
    return totalBurnNano(lines, plan, rememberedPrices(prices, clock.now()));
  }
}

function leftOf(row: BillingRow, owed: Unrated['owed']): Left {
  return settle(row.account_id, balancesOf(row), owed).after;
}
