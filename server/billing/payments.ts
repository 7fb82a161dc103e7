/**
 * Who pays for use: what may be spent first, then what is held, and what is left is written off, so that no
 * balance goes below zero and every service is paid in full. What goes back ends write-offs first: nobody is
 * given what they never paid.
 */
import type { Statement } from '../metadata/metadata.ts';
import { addToWrittenOff, type BillingRow } from './accounts-store.ts';
import { type HoldRow, reduceHold } from './hold-store.ts';
import { type Transfer, transferStatements } from './ledger.ts';
import type { Service } from './meters.ts';

const CORRECTIONS = ['back', 'unwritten'];

export interface Bill {
  /** Micro-credits; below 0 goes back to the account. */
  readonly owed: ReadonlyMap<Service, bigint>;
  /** Of the account, oldest first. */
  readonly holds: readonly HoldRow[];
  /** ms since 1970. */
  readonly at: number;
}

/** The statements that pay a bill. They are refused when balance or holds have changed meanwhile. */
export function payments(account: BillingRow, { owed, holds, at }: Bill): Statement[] {
  const { account_id, settlement } = account;
  let free = BigInt(account.credits_micro);
  let held = BigInt(account.held_micro);
  const heldBefore = held;
  let writtenOff = BigInt(account.written_off_micro);
  const writtenOffBefore = writtenOff;
  const statements: Statement[] = [];
  const book = (
    service: Service,
    part: string,
    sides: Pick<Transfer, 'debit' | 'credit' | 'amountMicro'>,
  ) => {
    if (sides.amountMicro === 0n) return;
    const id = `usage-${account_id}-${settlement + 1}-${service}-${part}`;
    const code = CORRECTIONS.includes(part) ? 'usage_correction' : 'usage';
    statements.push(
      ...transferStatements({ ...sides, id, code, reference: `${service} of account:${account_id}`, at }),
    );
  };
  // What goes back first: it pays for the rest.
  const bills = [...owed].sort(([, a], [, b]) => Number(b < 0n) - Number(a < 0n));
  for (const [service, cost] of bills) {
    const revenue = `system:revenue-${service}`;
    if (cost < 0n) {
      const unpaid = -cost < writtenOff ? -cost : writtenOff;
      const paid = -cost - unpaid;
      book(service, 'unwritten', { debit: revenue, credit: 'system:write-offs', amountMicro: unpaid });
      book(service, 'back', { debit: revenue, credit: `account:${account_id}`, amountMicro: paid });
      writtenOff -= unpaid;
      free += paid;
      continue;
    }
    const fromFree = cost < free ? cost : free;
    const fromHeld = cost - fromFree < held ? cost - fromFree : held;
    const unpaid = cost - fromFree - fromHeld;
    free -= fromFree;
    held -= fromHeld;
    writtenOff += unpaid;
    book(service, 'free', { debit: `account:${account_id}`, credit: revenue, amountMicro: fromFree });
    book(service, 'held', { debit: `held:${account_id}`, credit: revenue, amountMicro: fromHeld });
    book(service, 'unpaid', { debit: 'system:write-offs', credit: revenue, amountMicro: unpaid });
  }
  const change = writtenOff - writtenOffBefore;
  const noted = change === 0n ? [] : [addToWrittenOff(account_id, change)];
  return [...statements, ...noted, ...reduceHolds(holds, heldBefore - held)];
}

function reduceHolds(holds: readonly HoldRow[], byMicro: bigint): Statement[] {
  const statements: Statement[] = [];
  let left = byMicro;
  for (const hold of holds) {
    const amount = BigInt(hold.amount_micro);
    const part = amount < left ? amount : left;
    if (part === 0n) continue;
    statements.push(reduceHold(hold, part));
    left -= part;
  }
  return statements;
}
