/** Usage and charges of an account in a period, by resource; and the revenue from all accounts. */

import type { Metadata } from '../../metadata/metadata.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { endOfTick } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import { LedgerStore, type TotalsRow, type UsedRow } from '../ledger/ledger-store.ts';
import { METERS, type MeterName, resourceTypeOf, SERVICES, type Service } from '../metering/meters.ts';
import type { Rating, Unrated } from '../metering/rating.ts';
import { type Balances, balancesOf, settle } from '../metering/settlement.ts';
import type { LineRow, WindowRow } from '../metering/usage-store.ts';
import type { UsageByResource } from '../spend-schema.ts';
import { ResourceSums } from './by-resource.ts';
import { creditsOf, DAY_MS, type Figure, type Period, priceOfNano, quantityOf } from './report-period.ts';

export interface ReportsDeps {
  readonly metadata: Pick<Metadata, 'snapshot'>;
  readonly clock: Clock;
  readonly rating: Pick<Rating, 'unratedIn'>;
}

/** Usage of one resource at one price. */
export interface ReportItem {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly name: string;
  readonly meter: MeterName;
  readonly quantity: Figure;
  readonly unit: string;
  readonly unit_price: Figure;
  readonly cost: Figure;
}

export type ReportDay = Readonly<Record<Service, Figure>> & { readonly date: string; readonly cost: Figure };

export interface UsageReport {
  readonly account_id: number;
  readonly plan: string;
  readonly currency: 'credits';
  readonly period: { readonly from: string; readonly to: string };
  readonly as_of: string;
  readonly credits: {
    readonly granted: Figure;
    readonly used: Figure;
    readonly balance: Figure;
    readonly held: Figure;
    readonly written_off?: Figure;
  };
  readonly total_cost: Figure;
  readonly items: ReportItem[];
  readonly daily: ReportDay[];
}

interface UsageQuestion {
  readonly accountId: number;
  readonly period: Period;
  readonly unrated: Unrated;
}

const LOW_BITS = 32n;

export class Reports {
  readonly #deps: ReportsDeps;

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
  }

  /** Includes usage that is not charged yet; reading charges nothing. Throws `account_not_found`. */
  usage(accountId: number, period: Period): Promise<UsageReport> {
    const { metadata, rating } = this.#deps;
    // Without a snapshot, usage charged in between would be counted twice or not at all.
    return metadata.snapshot(async (reads) => {
      const unrated = await rating.unratedIn(reads, accountId);
      return this.#usage(new LedgerStore(reads), { accountId, period, unrated });
    });
  }

  /** Costs by resource and day: the `top` most expensive, and the rest. Throws like usage(). */
  byResource(accountId: number, period: Period, top: number): Promise<UsageByResource> {
    const { metadata, rating, clock } = this.#deps;
    return metadata.snapshot(async (reads) => {
      const unrated = await rating.unratedIn(reads, accountId);
      const store = new LedgerStore(reads);
      const now = clock.now();
      const sums = new ResourceSums(period, now);
      for await (const rows of usedRows(store, { accountId, period, unrated }, now)) sums.add(rows);
      if ((await store.totalsOf(accountId)) === undefined) throw noAccount();
      const present = new Set(unrated.lines.filter(({ is_closed }) => is_closed === 0).map(keyOfLine));
      return {
        account_id: accountId,
        period: { from: formatTime(period.from), to: formatTime(period.to) },
        as_of: formatTime(now),
        total_cost: creditsOf(sums.total),
        dates: sums.dates.map((at) => formatDay(at / DAY_MS)),
        resources: sums.first(top).map((one) => {
          const isDeleted = !present.has(`${one.resource_type} ${one.resource_id}`);
          return { ...one, is_deleted: isDeleted };
        }),
        others: sums.others(top),
      };
    });
  }

  async #usage(store: LedgerStore, question: UsageQuestion): Promise<UsageReport> {
    const { accountId, period, unrated } = question;
    const now = this.#deps.clock.now();
    const usage = new UsageSums(period, now);
    for await (const rows of usedRows(store, question, now)) usage.add(rows);
    const totals = await store.totalsOf(accountId);
    if (totals === undefined) throw noAccount();
    return {
      account_id: accountId,
      plan: totals.plan,
      currency: 'credits',
      period: { from: formatTime(period.from), to: formatTime(period.to) },
      as_of: formatTime(now),
      credits: describeCredits(totals, settle(accountId, balancesOf(totals), unrated.owed).after),
      total_cost: creditsOf(usage.total),
      items: usage.items(),
      daily: usage.daily(),
    };
  }
}

function noAccount(): AppError {
  return new AppError('account_not_found', 'There is no such account');
}

/** The usage of the period, oldest day first, with what is not rated yet. */
async function* usedRows(
  store: LedgerStore,
  { accountId, period, unrated: { windows } }: UsageQuestion,
  now: number,
): AsyncGenerator<readonly UsedRow[]> {
  // Many buckets have many rows: past days are read one by one, and other requests run in between.
  const today = Math.max(period.from, Math.min(period.to, dayOf(now)));
  for (let from = period.from; from < today; from = dayOf(from) + DAY_MS) {
    yield await store.usedOf(accountId, { from, to: Math.min(dayOf(from) + DAY_MS, today) });
    await endOfTick();
  }
  yield await store.usedOf(accountId, { from: today, to: period.to });
  yield windows.filter(({ window_start: at }) => at >= period.from && at < period.to).map(usedRow);
}

/** Names a resource like the report: buckets by their name. */
function keyOfLine({ meter, resource_id: id, name }: LineRow): string {
  const type = resourceTypeOf(meter, id);
  return `${type} ${type === 'bucket' ? name : id}`;
}

/** A window as a row of LedgerStore.usedOf(). */
function usedRow({ window_start, meter, resource_id, name, price_nano, ...row }: WindowRow): UsedRow {
  const quantity = BigInt(row.quantity);
  const high = quantity >> LOW_BITS;
  const low = quantity - (high << LOW_BITS);
  const day = Math.floor(window_start / DAY_MS);
  return { day, meter, resource_id, name, price_nano, high, low, cost_micro: row.cost_micro };
}

/** `used` is what the account itself paid; the unpaid part is written off. */
function describeCredits(
  totals: Pick<TotalsRow, 'granted_micro'>,
  { free, held, writtenOff }: Balances,
): UsageReport['credits'] {
  const balance = free + held;
  const granted = BigInt(totals.granted_micro);
  return {
    granted: creditsOf(granted),
    used: creditsOf(granted - balance),
    balance: creditsOf(balance),
    held: creditsOf(held),
    ...(writtenOff === 0n ? {} : { written_off: creditsOf(writtenOff) }),
  };
}

interface ItemSum {
  row: UsedRow;
  readonly id: string;
  quantity: bigint;
  cost: bigint;
}

/** Usage summed by resource and by day. */
class UsageSums {
  total = 0n;
  readonly #items = new Map<string, ItemSum>();
  readonly #days = new Map<number, Map<Service, bigint>>();

  /** Includes every day of the period up to now, even without usage. */
  constructor({ from, to }: Period, now: number) {
    const end = Math.min(to, now + 1);
    for (let day = Math.floor(from / DAY_MS); day * DAY_MS < end; day++) this.#days.set(day, new Map());
  }

  add(rows: readonly UsedRow[]): void {
    for (const row of rows) {
      const cost = BigInt(row.cost_micro);
      this.total += cost;
      this.#addItem(row, cost);
      const { service } = METERS[row.meter];
      const costs = this.#days.get(row.day) ?? new Map<Service, bigint>();
      costs.set(service, (costs.get(service) ?? 0n) + cost);
      this.#days.set(row.day, costs);
    }
  }

  items(): ReportItem[] {
    return [...this.#items.values()].map(({ row, id, quantity, cost }) => ({
      resource_type: resourceTypeOf(row.meter, row.resource_id),
      resource_id: id,
      name: row.name,
      meter: row.meter,
      quantity: quantityOf(row.meter, quantity),
      unit: METERS[row.meter].unit,
      unit_price: priceOfNano(BigInt(row.price_nano)),
      cost: creditsOf(cost),
    }));
  }

  daily(): ReportDay[] {
    return [...this.#days].sort(([a], [b]) => a - b).map(([day, costs]) => describeDay(day, costs));
  }

  #addItem(row: UsedRow, cost: bigint): void {
    // A bucket is identified by its name, even after it was deleted and created again.
    const isBucket = resourceTypeOf(row.meter, row.resource_id) === 'bucket';
    const id = isBucket ? row.name : row.resource_id;
    const key = JSON.stringify([row.meter, id, String(row.price_nano)]);
    const sum = this.#items.get(key) ?? { row, id, quantity: 0n, cost: 0n };
    sum.quantity += (BigInt(row.high) << LOW_BITS) + BigInt(row.low);
    sum.cost += cost;
    // Days come oldest first, so the latest name wins.
    sum.row = row;
    this.#items.set(key, sum);
  }
}

/** When the day of `ms` began, UTC. */
function dayOf(ms: number): number {
  return ms - (ms % DAY_MS);
}

function describeDay(day: number, costs: ReadonlyMap<Service, bigint>): ReportDay {
  const costOf = (service: Service) => costs.get(service) ?? 0n;
  const total = SERVICES.reduce((sum, service) => sum + costOf(service), 0n);
  return {
    date: formatDay(day),
    cost: creditsOf(total),
    compute: creditsOf(costOf('compute')),
    storage: creditsOf(costOf('storage')),
    egress: creditsOf(costOf('egress')),
    databases: creditsOf(costOf('databases')),
  };
}

/** `YYYY-MM-DD` of a number of days since 1970. */
function formatDay(day: number): string {
  return formatTime(day * DAY_MS).slice(0, 10);
}

type Amounts = Readonly<Record<Service | 'total' | 'written_off', Figure>>;

export interface RevenueReport {
  readonly period: { readonly from: string; readonly to: string };
  /** `written_off` is the part of `total` that no account could pay. */
  readonly total: Amounts;
  readonly daily: (Amounts & { readonly date: string })[];
}

const HOUR_MS = 3_600_000;
const WRITE_OFFS = 'system:write-offs';

type Sums = Map<string, bigint>;

/** By the times of the transfers; days without transfers are omitted. */
export async function revenueReport(store: LedgerStore, period: Period): Promise<RevenueReport> {
  const days = new Map<number, Sums>();
  const all: Sums = new Map();
  for (let from = period.from; from < period.to; from += HOUR_MS) {
    for (const { day, side, amount_micro } of await store.revenueOf({ from, to: from + HOUR_MS })) {
      const sums = days.get(day) ?? new Map<string, bigint>();
      days.set(day, sums);
      for (const each of [sums, all]) each.set(side, (each.get(side) ?? 0n) + BigInt(amount_micro));
    }
    // An hour of a large cloud has thousands of transfers, so the loop yields to other work.
    if (from % DAY_MS === 0 || days.size > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return {
    period: { from: formatTime(period.from), to: formatTime(period.to) },
    total: describe(all),
    daily: [...days]
      .sort(([a], [b]) => a - b)
      .map(([day, sums]) => ({ date: formatDay(day), ...describe(sums) })),
  };
}

function describe(sums: Sums): Amounts {
  const of = (service: Service) => sums.get(`system:revenue-${service}`) ?? 0n;
  return {
    compute: creditsOf(of('compute')),
    storage: creditsOf(of('storage')),
    egress: creditsOf(of('egress')),
    databases: creditsOf(of('databases')),
    total: creditsOf(SERVICES.reduce((sum, service) => sum + of(service), 0n)),
    written_off: creditsOf(-(sums.get(WRITE_OFFS) ?? 0n)),
  };
}
