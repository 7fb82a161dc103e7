/**
 * Turns use into charges: what was used since the last rating becomes hourly records and transfers of the
 * ledger, those of each line in one commit. Rating twice charges once, and rating more often charges the
 * same. Between ratings nothing is owed that is not in the lines.
 */
import { type Changes, UNASKED } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/keyed-mutex.ts';
import type { Prices } from '../catalog/prices.ts';
import {
  addToWrittenOff,
  type BillingAccountStore,
  type BillingRow,
} from '../credit/billing-account-store.ts';
import { type Transfer, transferStatements } from '../ledger/ledger.ts';
import { charge, hourOf, spreadOverHours } from './charge.ts';
import { METERS, type Service, ticksOf } from './meters.ts';
import type { SteadyClock } from './steady-clock.ts';
import {
  FIRST_LINE,
  type HoldRow,
  type LineKey,
  type LineRow,
  PAGE_LINES,
  reduceHold,
  type UsageStore,
} from './usage-store.ts';

const CORRECTIONS = ['back', 'unwritten'];

export interface Bill {
  /** Micro-credits; below 0 goes back to the account. */
  readonly owed: ReadonlyMap<Service, bigint>;
  /** The account's holds, oldest first. */
  readonly holds: readonly HoldRow[];
  /** ms since 1970. */
  readonly at: number;
}

/** The statements that pay a bill. They are refused when balance or holds have changed meanwhile. */
function payments(account: BillingRow, { owed, holds, at }: Bill): Statement[] {
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

export interface RatingDeps {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  readonly prices: Prices;
  readonly usage: UsageStore;
  readonly accounts: BillingAccountStore;
}

/** One moment on both clocks, the same for all lines that were read together. */
interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}

const PAGE_ACCOUNTS = 200;
/** Splits a large rating so that other commits can run in between. */
const STATEMENTS_PER_COMMIT = 1000;

export class Rating {
  readonly #deps: RatingDeps;
  readonly #locks = new KeyedMutex();
  /** In which everybody was rated last, ms since 1970. */
  #hour: number | null = null;

  constructor(deps: RatingDeps) {
    this.#deps = deps;
  }

  /**
   * Charges an account all it used up to now. `notSince`: not at all when that was done after this moment
   * (ms since 1970). Does nothing for an account that does not exist.
   */
  rateUsage(accountId: number, notSince = Number.POSITIVE_INFINITY): Promise<void> {
    return this.#locks.run(String(accountId), async () => {
      const { accounts, clock } = this.#deps;
      const account = await accounts.find(accountId);
      if (account === undefined) return;
      // Nothing was rated at a time to come: then the wall clock was set back.
      if (account.settled_at > notSince && account.settled_at <= clock.now()) return;
      for (let after: LineKey | undefined = FIRST_LINE; after !== undefined; ) {
        after = await this.#rateSome(accountId, after);
      }
    });
  }

  /** Every account that uses something. Returns how many. Throws when some failed, at the end. */
  async rateAll(): Promise<number> {
    let count = 0;
    const failures: unknown[] = [];
    for (let after = 0; ; ) {
      const ids = await this.#deps.usage.accountsInUse(after, PAGE_ACCOUNTS);
      // Together, so that they share commits. One that fails keeps nobody else from being charged.
      for (const outcome of await Promise.allSettled(ids.map((id) => this.rateUsage(id)))) {
        if (outcome.status === 'rejected') failures.push(outcome.reason);
      }
      count += ids.length;
      after = ids.at(-1) ?? after;
      if (ids.length < PAGE_ACCOUNTS) break;
    }
    if (failures.length === 0) return count;
    throw new AggregateError(failures, `${failures.length} of ${count} accounts could not be charged`);
  }

  /**
   * As rateAll(), once in each hour that it is called in: soon after an hour began, so that what was used
   * before is not taken for used by the prices of the next.
   */
  async rateHour(): Promise<void> {
    const hour = hourOf(this.#deps.clock.now());
    if (hour === this.#hour) return;
    this.#hour = hour;
    await this.rateAll();
  }

  /**
   * Rates as many lines behind `after` as one commit should hold. Returns the last of them; undefined when
   * none are left.
   */
  #rateSome(accountId: number, after: LineKey): Promise<LineKey | undefined> {
    const { accounts, usage, changes, clock, steady } = this.#deps;
    return changes.run(UNASKED, async (change) => {
      const account = await accounts.find(accountId);
      if (account === undefined) return undefined;
      const lines = await usage.linesAfter(accountId, after);
      const moment = { wallMs: clock.now(), steadyMs: steady.now() };
      const statements: Statement[] = [];
      const owed = new Map<Service, bigint>();
      let last: LineRow | undefined;
      let hasClosed = false;
      for (const line of lines) {
        if (statements.length >= STATEMENTS_PER_COMMIT) break;
        const { service } = METERS[line.meter];
        const cost = this.#rateLine(account, line, { moment, statements });
        owed.set(service, (owed.get(service) ?? 0n) + cost);
        hasClosed ||= line.is_closed === 1;
        last = line;
      }
      if (hasClosed) statements.push(usage.forgetClosed(accountId));
      const isEnd = last === lines.at(-1) && lines.length < PAGE_LINES;
      if (statements.length > 0) {
        const bill = { owed, holds: await usage.holdsOf(accountId), at: moment.wallMs };
        // Somebody else rated, or spent the credits, since they were looked at.
        change.expect(accounts.countRating(accountId, account.settlement, moment.wallMs), 'retry');
        change.addAll([...statements, ...payments(account, bill)], 'retry');
      }
      return isEnd ? undefined : last;
    });
  }

  /** Adds the statements that rate a line; returns what it costs, micro-credits. */
  #rateLine(
    account: BillingRow,
    line: LineRow,
    { moment, statements }: { moment: Moment; statements: Statement[] },
  ): bigint {
    const meter = METERS[line.meter];
    const now = ticksOf(meter, moment.steadyMs);
    const openTicks = BigInt(now) - BigInt(line.level_since);
    const open = BigInt(line.level) * openTicks;
    const quantity = BigInt(line.pending) + open;
    if (quantity === 0n) return 0n;
    const openSince = moment.wallMs - Number(openTicks) * meter.tickMs;
    const settledTo = moment.wallMs - (now - Number(line.settled_to)) * meter.tickMs;
    // After an end that was earlier than what is charged, it goes back to the hours it was charged in.
    const [from, to] = settledTo <= openSince ? [settledTo, openSince] : [openSince, settledTo];
    const parts = [
      ...spreadOverHours(BigInt(line.pending), from, to),
      ...spreadOverHours(open, openSince, moment.wallMs),
    ];
    let carry = BigInt(line.carry);
    let cost = 0n;
    for (const part of parts) {
      const { meter: name, resource_id, variant } = line;
      const question = { meter: name, variant, plan: account.plan, at: part.windowStart };
      const priceNano = this.#deps.prices.priceNano(question);
      const charged = charge(meter, { quantity: part.quantity, priceNano, carry });
      carry = charged.carry;
      cost += charged.costMicro;
      statements.push(
        this.#deps.usage.addToWindow({
          account_id: account.account_id,
          window_start: part.windowStart,
          meter: name,
          resource_id,
          name: line.name,
          variant,
          price_nano: priceNano,
          quantity: part.quantity,
          cost_micro: charged.costMicro,
        }),
      );
    }
    statements.push(
      this.#deps.usage.storeRated({ meter: line.meter, resourceId: line.resource_id, now, quantity, carry }),
    );
    return cost;
  }
}
