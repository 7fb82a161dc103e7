/** Who pays what was used: what can be spent first, then what is held; what is left is written off. */
import type { Transfer } from '../ledger/ledger.ts';
import type { Service } from './meters.ts';

/** Of one account, micro-credits. */
export interface Balances {
  /** May be spent. */
  readonly free: bigint;
  readonly held: bigint;
  /** The part of its use that it could not pay. */
  readonly writtenOff: bigint;
}

interface Booking extends Pick<Transfer, 'debit' | 'credit' | 'amountMicro'> {
  readonly service: Service;
  /** `back` and `unwritten`: what was charged too much, to the account and to what was written off. */
  readonly part: 'free' | 'held' | 'unpaid' | 'back' | 'unwritten';
}

export interface Settlement {
  readonly after: Balances;
  readonly bookings: readonly Booking[];
}

/** `owed`: micro-credits by service; below 0 goes back to the account. */
export function settle(accountId: number, before: Balances, owed: ReadonlyMap<Service, bigint>): Settlement {
  let { free, held, writtenOff } = before;
  const bookings: Booking[] = [];
  const book = (booking: Booking) => {
    if (booking.amountMicro !== 0n) bookings.push(booking);
  };
  // What goes back first: it pays for the rest.
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
