/** How an account stands, from what it has and what it uses. A table, without a clock or a database. */
import type { BillingState } from './accounts-store.ts';

export interface StandingFacts {
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
export function standingOf(facts: StandingFacts): BillingState {
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
