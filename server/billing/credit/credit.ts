/**
 * Whether an account has credits, how long they last, and its credit state: pure rules, except for the check
 * itself.
 */

import { toCredits } from '../../accounts/credits.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { PriceQuestion } from '../catalog/prices.ts';
import type { Checks } from '../ledger/checks.ts';
import { METERS, type MeterName } from '../metering/meters.ts';
import { ticksOf } from '../metering/steady-clock.ts';
import type { BillingAccountStore, BillingRow, BillingState } from './billing-account-store.ts';

/** How to get more credits. */
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
}

export class Credit {
  readonly #deps: CreditDeps;

  constructor(deps: CreditDeps) {
    this.#deps = deps;
  }

  /**
   * Throws `insufficient_credits` if no credits are left; also while the account is in grace or suspended,
   * until it gets credits. The refusal mentions `neededMicro`, which is not required. Mostly one read.
   */
  async assertCredit(accountId: number, neededMicro = 1n): Promise<void> {
    const { accounts, spendable, checks } = this.#deps;
    checks.assertSound();
    const row = await accounts.find(accountId);
    const isOut = row?.state === 'grace' || row?.state === 'suspended';
    if (!isOut && row !== undefined && (await spendable.isAny(row))) return;
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

/** Memoizes prices: looks each up once. */
export function rememberedPrices(
  prices: { priceNano(question: PriceQuestion): bigint },
  at: number,
): (question: Omit<PriceQuestion, 'at'>) => bigint {
  const known = new Map<string, bigint>();
  return (question) => {
    const key = `${question.meter}\n${question.variant}\n${question.plan}`;
    const price = known.get(key) ?? prices.priceNano({ ...question, at });
    known.set(key, price);
    return price;
  };
}
