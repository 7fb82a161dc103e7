/** Charges for quantities, and the hours they were used in. All of it is exact: nothing is rounded away. */
import type { Meter } from './meters.ts';

const NANO_PER_MICRO = 1000n;
const HOUR_MS = 3_600_000;

export interface Charge {
  /** Whole micro-credits; below 0 for a quantity below 0. */
  readonly costMicro: bigint;
  /** Remainder for the next charge of the same line: 0 to less than a micro-credit. */
  readonly carry: bigint;
}

/**
 * The charge for `quantity` (the meter's, see Meter.perUnit) at `priceNano` per unit. The remainder is
 * carried, so that any split of a quantity into charges adds up to the same.
 */
export function charge(
  meter: Meter,
  { quantity, priceNano, carry }: { quantity: bigint; priceNano: bigint; carry: bigint },
): Charge {
  const divisor = meter.perUnit * NANO_PER_MICRO;
  const total = quantity * priceNano + carry;
  const costMicro = floorDivide(total, divisor);
  return { costMicro, carry: total - costMicro * divisor };
}

function floorDivide(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend < 0n && quotient * divisor !== dividend ? quotient - 1n : quotient;
}

export interface HourPart {
  /** ms since 1970, a whole hour. */
  readonly windowStart: number;
  readonly quantity: bigint;
}

/**
 * Spreads a quantity used evenly from `fromMs` to `toMs` (wall time) over the hours between. The parts add up
 * to the whole; the remainder of the division goes to the later ones.
 */
export function spreadOverHours(quantity: bigint, fromMs: number, toMs: number): HourPart[] {
  const last = hourOf(toMs);
  if (quantity === 0n) return [];
  if (hourOf(fromMs) >= last || fromMs >= toMs) return [{ windowStart: last, quantity }];
  const parts: HourPart[] = [];
  const length = BigInt(toMs - fromMs);
  let given = 0n;
  for (let hour = hourOf(fromMs); hour <= last; hour += HOUR_MS) {
    const end = Math.min(hour + HOUR_MS, toMs);
    const upTo = (quantity * BigInt(end - fromMs)) / length;
    if (upTo !== given) parts.push({ windowStart: hour, quantity: upTo - given });
    given = upTo;
  }
  return parts;
}

/** The whole hour that contains a moment, ms since 1970, UTC. */
export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS) * HOUR_MS;
}
