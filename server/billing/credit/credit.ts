/**
 * Whether an account has credits, how long they last, and which state follows: pure rules, but for the
 * question itself.
 */

import { toCredits } from '../../accounts/credits.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { PriceQuestion } from '../catalog/prices.ts';
import type { Checks } from '../ledger/checks.ts';
import { METERS, type MeterName } from '../metering/meters.ts';
import { ticksOf } from '../metering/steady-clock.ts';
import type { BillingAccountStore, BillingState } from './billing-account-store.ts';

/** How somebody without credits goes on. */
export function moreCredits(accountId: number): string {
  const call = `POST /api/admin/accounts/${accountId}/credits`;
  return `ask your administrator for credits (Administration in the console, or ${call})`;
}

interface CreditDeps {
  readonly accounts: BillingAccountStore;
  readonly checks: Pick<Checks, 'assertSound'>;
}

export class Credit {
  readonly #deps: CreditDeps;

  constructor(deps: CreditDeps) {
    this.#deps = deps;
  }

  /**
   * Throws `insufficient_credits` unless something is left; also while the account is in grace or suspended,
   * until it gets credits. The refusal tells of `neededMicro`, which is not demanded. One read.
   */
  async assertCredit(accountId: number, neededMicro = 1n): Promise<void> {
    const { accounts, checks } = this.#deps;
    checks.assertSound();
    const row = await accounts.find(accountId);
    const free = BigInt(row?.credits_micro ?? 0);
    const isOut = row?.state === 'grace' || row?.state === 'suspended';
    if (!isOut && free > 0n) return;
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
  /** What may be spent, micro-credits. */
  readonly freeMicro: bigint;
  /** What runs and is charged, nano-credits an hour. */
  readonly burnNano: bigint;
  /** Credits were added since the state began; only what was held and came back does not count. */
  readonly isToppedUp: boolean;
  readonly isGraceOver: boolean;
}

const NANO_PER_MICRO = 1000n;
const LOW_HOURS = 7n * 24n;
const CRITICAL_HOURS = 24n;

/**
 * The state that follows. Grace ends with new credits, with enough for another hour, or when nothing charged
 * runs: else what is held for one machine and comes back when it stops would give the others another grace.
 * Only credits that are added end a suspension.
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

/** What a change of state tells the account's webhooks; null: nothing. */
export function eventOf(before: BillingState, after: BillingState, freeMicro: bigint): CreditEvent | null {
  if (RANK[after] > RANK[before]) return RANK[after] >= RANK.grace ? 'credits.exhausted' : 'credits.low';
  // Without credits nothing is restored: what ran was stopped by its owner.
  const wasOut = RANK[before] >= RANK.grace && RANK[after] < RANK.grace;
  return wasOut && freeMicro > 0n ? 'credits.restored' : null;
}

/** Hours that credits last; null: nothing uses them. */
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

/** Nano-credits an hour, while the level stays. */
export function burnNanoOf({ meter, level }: Pick<UsedLine, 'meter' | 'level'>, priceNano: bigint): bigint {
  const { tickMs, perUnit } = METERS[meter];
  return (BigInt(level) * BigInt(HOUR_MS / tickMs) * priceNano) / perUnit;
}

/** About what is owed for what was used up to `steadyMs`, micro-credits; a rating is exact. */
export function unratedMicroOf(
  line: UsedLine,
  { priceNano, steadyMs }: { readonly priceNano: bigint; readonly steadyMs: number },
): bigint {
  const meter = METERS[line.meter];
  const openTicks = BigInt(ticksOf(meter, steadyMs)) - BigInt(line.level_since);
  const quantity = BigInt(line.pending) + BigInt(line.level) * openTicks;
  return (quantity * priceNano) / (meter.perUnit * NANO_PER_MICRO);
}

/** Asks for each price once. */
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
