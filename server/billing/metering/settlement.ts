/** How a charge is paid: first from the available balance, then from holds; the rest is written off. */
import type { Transfer } from '../ledger/ledger.ts';
import type { Service } from './meters.ts';

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
