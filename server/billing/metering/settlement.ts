/**
 * Charges for quantities, the hours they were used in, and how they are paid: first from the available
 * balance, then from holds; the rest is written off. All of it is exact: nothing is rounded away.
 */

import type { Transfer } from '../ledger/ledger.ts';
import type { Meter, Service } from './meters.ts';

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

/** The calendar month (UTC) of a moment, ms since 1970; `to` is its exclusive end. */
export function monthOf(ms: number): { readonly from: number; readonly to: number } {
  const date = new Date(ms);
  const first = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1);
  return { from: first(0), to: first(1) };
}

/** Balances of one account, micro-credits. */
export interface Balances {
  /** Available balance. */
  readonly free: bigint;
  readonly held: bigint;
  /** Charges that the account could not pay. */
  readonly writtenOff: bigint;
}

interface Booking extends Pick<Transfer, 'debit' | 'credit' | 'amountMicro'> {
  readonly service: Service;
  /** `back` and `unwritten`: refunds, to the account and of earlier write-offs. */
  readonly part: 'free' | 'held' | 'unpaid' | 'back' | 'unwritten';
}

export interface Settlement {
  readonly after: Balances;
  readonly bookings: readonly Booking[];
}

/** `owed`: micro-credits by service; a negative amount is refunded to the account. */
export function settle(accountId: number, before: Balances, owed: ReadonlyMap<Service, bigint>): Settlement {
  let { free, held, writtenOff } = before;
  const bookings: Booking[] = [];
  const book = (booking: Booking) => {
    if (booking.amountMicro !== 0n) bookings.push(booking);
  };
  // Refunds first: they pay for the rest.
  const bills = [...owed].sort(([, a], [, b]) => Number(b < 0n) - Number(a < 0n));
  for (const [service, cost] of bills) {
    const revenue = `system:revenue-${service}`;
    const account = `account:${accountId}`;
    if (cost < 0n) {
      const unpaid = least(-cost, writtenOff);
      const paid = -cost - unpaid;
      const debit = revenue;
      book({ service, part: 'unwritten', debit, credit: 'system:write-offs', amountMicro: unpaid });
      book({ service, part: 'back', debit, credit: account, amountMicro: paid });
      writtenOff -= unpaid;
      free += paid;
      continue;
    }
    const fromFree = least(cost, free);
    const fromHeld = least(cost - fromFree, held);
    const unpaid = cost - fromFree - fromHeld;
    free -= fromFree;
    held -= fromHeld;
    writtenOff += unpaid;
    const credit = revenue;
    book({ service, part: 'free', debit: account, credit, amountMicro: fromFree });
    book({ service, part: 'held', debit: `held:${accountId}`, credit, amountMicro: fromHeld });
    book({ service, part: 'unpaid', debit: 'system:write-offs', credit, amountMicro: unpaid });
  }
  return { after: { free, held, writtenOff }, bookings };
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

interface BalancesRow {
  readonly credits_micro: number | bigint;
  readonly held_micro: number | bigint;
  readonly written_off_micro: number | bigint;
}

export function balancesOf(row: BalancesRow): Balances {
  return {
    free: BigInt(row.credits_micro),
    held: BigInt(row.held_micro),
    writtenOff: BigInt(row.written_off_micro),
  };
}
