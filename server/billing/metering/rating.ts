/**
 * Turns usage into charges: usage since the last rating becomes hourly records and transfers of the ledger,
 * those of each line in one commit. Rating is idempotent, and its frequency does not change the charge.
 * Between ratings all unpaid usage is in the lines.
 */

import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Reads, Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import type { PriceQuestion, Prices } from '../catalog/prices.ts';
import { addToWrittenOff, BillingAccountStore, type BillingRow } from '../credit/billing-account-store.ts';
import { transferStatements } from '../ledger/ledger.ts';
import { METERS, type Service } from './meters.ts';
import { balancesOf, charge, hourOf, monthOf, settle, spreadOverHours } from './settlement.ts';
import { type SteadyClock, ticksOf } from './steady-clock.ts';
import {
  FIRST_LINE,
  type HoldRow,
  type LineKey,
  type LineRow,
  PAGE_LINES,
  type RatedLine,
  reduceHold,
  UsageStore,
  type WindowRow,
} from './usage-store.ts';

const CORRECTIONS = ['back', 'unwritten'];

export interface Bill {
  /** Micro-credits; a negative amount is refunded to the account. */
  readonly owed: ReadonlyMap<Service, bigint>;
  /** The account's holds, oldest first. */
  readonly holds: readonly HoldRow[];
  /** ms since 1970. */
  readonly at: number;
}

/** The statements that pay a bill; refused if balance or holds changed. */
function payments(account: BillingRow, { owed, holds, at }: Bill): Statement[] {
  const { account_id, settlement } = account;
  const before = balancesOf(account);
  const { after, bookings } = settle(account_id, before, owed);
  const transfers = bookings.flatMap(({ service, part, ...sides }) => {
    const id = `usage-${account_id}-${settlement + 1}-${service}-${part}`;
    const code = CORRECTIONS.includes(part) ? 'usage_correction' : 'usage';
    return transferStatements({ ...sides, id, code, reference: `${service} of account:${account_id}`, at });
  });
  const change = after.writtenOff - before.writtenOff;
  const noted = change === 0n ? [] : [addToWrittenOff(account_id, change)];
  return [...transfers, ...noted, ...reduceHolds(holds, before.held - after.held)];
}

function addTo(owed: Map<Service, bigint>, line: LineRow, costMicro: bigint): void {
  const { service } = METERS[line.meter];
  owed.set(service, (owed.get(service) ?? 0n) + costMicro);
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

/** Usage at one moment that is not charged yet. */
export interface Unrated {
  /** All lines of the account. */
  readonly lines: readonly LineRow[];
  /** The windows that rating would add. */
  readonly windows: readonly WindowRow[];
  readonly owed: ReadonlyMap<Service, bigint>;
}

const PAGE_ACCOUNTS = 200;
/** Splits a large rating so that other commits can run in between. */
const STATEMENTS_PER_COMMIT = 1000;

export class Rating {
  readonly #deps: RatingDeps;
  readonly #locks = new KeyedMutex();
  /** The hour of the last rating of all accounts, ms since 1970. */
  #hour: number | null = null;

  constructor(deps: RatingDeps) {
    this.#deps = deps;
  }

  /** Charges an account for all usage up to now. Does nothing if the account does not exist. */
  rateUsage(accountId: number): Promise<void> {
    return this.#locks.run(String(accountId), async () => {
      for (let after: LineKey | undefined = FIRST_LINE; after !== undefined; ) {
        after = await this.#rateSome(accountId, after);
      }
    });
  }

  /**
   * Calls `read` with what rateUsage() would charge now. Nothing is charged, and the account is not rated
   * until `read` has ended.
   */
  withUnrated<T>(accountId: number, read: (unrated: Unrated) => Promise<T>): Promise<T> {
    const { accounts, usage } = this.#deps;
    return this.#locks.run(String(accountId), async () =>
      read(await this.#unrated(accountId, { accounts, usage })),
    );
  }

  /** Like withUnrated(), with reads of a snapshot. */
  unratedIn(reads: Reads, accountId: number): Promise<Unrated> {
    return this.#unrated(accountId, {
      accounts: new BillingAccountStore(reads),
      usage: new UsageStore(reads),
    });
  }

  async #unrated(
    accountId: number,
    { accounts, usage }: Pick<RatingDeps, 'accounts' | 'usage'>,
  ): Promise<Unrated> {
    await this.#deps.prices.load();
    const lines: LineRow[] = [];
    for await (const page of usage.linePages(accountId)) lines.push(...page);
    const plan = (await accounts.find(accountId))?.plan ?? '';
    const terms = this.#terms(plan);
    const windows: WindowRow[] = [];
    const owed = new Map<Service, bigint>();
    for (const line of lines) {
      const rating = rateLine(line, terms);
      if (rating === null) continue;
      windows.push(...rating.windows);
      addTo(owed, line, rating.costMicro);
    }
    return { lines, windows, owed };
  }

  #terms(plan: string) {
    const { clock, steady, prices } = this.#deps;
    const moment = { wallMs: clock.now(), steadyMs: steady.now() };
    return { plan, moment, priceNano: (question: PriceQuestion) => prices.priceNano(question) };
  }

  /** Rates every account with usage. Returns their number. Throws at the end if some failed. */
  async rateAll(): Promise<number> {
    let count = 0;
    const failures: unknown[] = [];
    for (let after = 0; ; ) {
      const ids = await this.#deps.usage.accountsInUse(after, PAGE_ACCOUNTS);
      // Run in parallel to share commits. A failure does not block other accounts.
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
   * Runs rateAll() once per hour: soon after an hour began, so that earlier usage is not charged at the next
   * hour's prices.
   */
  async rateHour(): Promise<void> {
    const hour = hourOf(this.#deps.clock.now());
    if (hour === this.#hour) return;
    this.#hour = hour;
    await this.rateAll();
  }

  /**
   * Rates as many lines after `after` as one commit should hold. Returns the last of them; undefined when
   * none are left.
   */
  #rateSome(accountId: number, after: LineKey): Promise<LineKey | undefined> {
    const { accounts, usage, changes, prices } = this.#deps;
    return changes.run(BACKGROUND, async (change) => {
      await prices.load();
      const account = await accounts.find(accountId);
      if (account === undefined) return undefined;
      const lines = await usage.linesAfter(accountId, after);
      const terms = this.#terms(account.plan);
      const { wallMs } = terms.moment;
      const statements: Statement[] = [];
      const owed = new Map<Service, bigint>();
      const month = monthOf(wallMs);
      let micro = 0n;
      let last: LineRow | undefined;
      let hasClosed = false;
      for (const line of lines) {
        if (statements.length >= STATEMENTS_PER_COMMIT) break;
        const rating = rateLine(line, terms);
        if (rating !== null) {
          statements.push(...rating.windows.map((window) => usage.addToWindow(window)));
          statements.push(usage.storeRated(rating.rated));
          addTo(owed, line, rating.costMicro);
          micro += costIn(month, rating.windows);
        }
        hasClosed ||= line.is_closed === 1;
        last = line;
      }
      if (hasClosed) statements.push(usage.forgetClosed(accountId));
      const isEnd = last === lines.at(-1) && lines.length < PAGE_LINES;
      if (statements.length > 0) {
        const bill = { owed, holds: await usage.holdsOf(accountId), at: wallMs };
        // Since the read, another rating ran or the credits were spent.
        change.expect(accounts.countRating(account, { at: wallMs, month, micro }), 'retry');
        change.addAll([...statements, ...payments(account, bill)], 'retry');
      }
      return isEnd ? undefined : last;
    });
  }
}

/** The cost of the windows in a period, micro-credits. */
export function costIn(
  { from, to }: { readonly from: number; readonly to: number },
  windows: readonly WindowRow[],
): bigint {
  const isIn = ({ window_start: at }: WindowRow) => at >= from && at < to;
  return windows.reduce((sum, row) => (isIn(row) ? sum + BigInt(row.cost_micro) : sum), 0n);
}

/** One moment on both clocks, shared by all lines read together. */
export interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}

export interface LineRating {
  readonly costMicro: bigint;
  readonly windows: readonly WindowRow[];
  /** Usage line after rating. */
  readonly rated: RatedLine;
}

interface RatingTerms {
  readonly plan: string;
  readonly moment: Moment;
  readonly priceNano: (question: PriceQuestion) => bigint;
}

/** null: nothing was used. */
function rateLine(line: LineRow, { plan, moment, priceNano: priceOf }: RatingTerms): LineRating | null {
  const meter = METERS[line.meter];
  const now = ticksOf(meter, moment.steadyMs);
  const openTicks = BigInt(now) - BigInt(line.level_since);
  const open = BigInt(line.level) * openTicks;
  const quantity = BigInt(line.pending) + open;
  if (quantity === 0n) return null;
  const openSince = moment.wallMs - Number(openTicks) * meter.tickMs;
  const settledTo = moment.wallMs - (now - Number(line.settled_to)) * meter.tickMs;
  // If the end is earlier than the charged time, the difference is refunded to the hours it was charged in.
  const [from, to] = settledTo <= openSince ? [settledTo, openSince] : [openSince, settledTo];
  const parts = [
    ...spreadOverHours(BigInt(line.pending), from, to),
    ...spreadOverHours(open, openSince, moment.wallMs),
  ];
  const { meter: name, resource_id, variant, account_id } = line;
  let carry = BigInt(line.carry);
  let costMicro = 0n;
  const windows = parts.map(({ windowStart, quantity: used }) => {
    const priceNano = priceOf({ meter: name, variant, plan, at: windowStart });
    const charged = charge(meter, { quantity: used, priceNano, carry });
    carry = charged.carry;
    costMicro += charged.costMicro;
    return {
      account_id,
      window_start: windowStart,
      meter: name,
      resource_id,
      name: line.name,
      variant,
      price_nano: priceNano,
      quantity: used,
      cost_micro: charged.costMicro,
    };
  });
  return { costMicro, windows, rated: { meter: name, resourceId: resource_id, now, quantity, carry } };
}
