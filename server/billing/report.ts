/**
 * What an account used and what it paid. Everything used up to now is charged first, so that a report and
 * the ledger never differ: the items add up to the days, and both to the total.
 */
import { type Clock, formatTime } from '../clock.ts';
import { AppError } from '../errors.ts';
import { METERS, type MeterName, SERVICES, type Service } from './meters.ts';
import { creditsOf, type Figure, priceOfNano, quantityOf } from './report-figures.ts';
import { DAY_MS, type Period } from './report-period.ts';
import type { ReportStore, TotalsRow, UsedRow } from './report-store.ts';

export interface ReportsDeps {
  readonly store: ReportStore;
  readonly clock: Clock;
  /** Charges an account what it used; not at all when that was done after `notSince`, ms since 1970. */
  readonly settle: (accountId: number, notSince: number) => Promise<void>;
}

/** The use of one resource at one price. */
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

/** Reads that follow each other closer than this share a settlement. */
const FRESH_MS = 1000;
const LOW_BITS = 32n;

export class Reports {
  readonly #deps: ReportsDeps;

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
  }

  /** Throws `account_not_found`. */
  async usage(accountId: number, period: Period): Promise<UsageReport> {
    const { store, clock, settle } = this.#deps;
    await settle(accountId, clock.now() - FRESH_MS);
    const now = clock.now();
    // In one turn of the event loop, and so of one state.
    const [used, totals] = await Promise.all([store.usedOf(accountId, period), store.totalsOf(accountId)]);
    if (totals === undefined) throw new AppError('account_not_found', 'There is no such account');
    const total = used.reduce((sum, item) => sum + BigInt(item.cost_micro), 0n);
    return {
      account_id: accountId,
      plan: totals.plan,
      currency: 'credits',
      period: { from: formatTime(period.from), to: formatTime(period.to) },
      as_of: formatTime(now),
      credits: describeCredits(totals),
      total_cost: creditsOf(total),
      items: describeItems(used),
      daily: describeDays(used, { from: period.from, to: Math.min(period.to, now + 1) }),
    };
  }
}

/** `used` is what the account itself paid; what it could not is written off. */
function describeCredits(totals: TotalsRow): UsageReport['credits'] {
  const held = BigInt(totals.held_micro);
  const balance = BigInt(totals.credits_micro) + held;
  const granted = BigInt(totals.granted_micro);
  const writtenOff = BigInt(totals.written_off_micro);
  return {
    granted: creditsOf(granted),
    used: creditsOf(granted - balance),
    balance: creditsOf(balance),
    held: creditsOf(held),
    ...(writtenOff === 0n ? {} : { written_off: creditsOf(writtenOff) }),
  };
}

function describeItems(rows: readonly UsedRow[]): ReportItem[] {
  const sums = new Map<string, { row: UsedRow; id: string; quantity: bigint; cost: bigint }>();
  for (const row of rows) {
    const { resourceType } = METERS[row.meter];
    // A bucket is known by its name, also one that was deleted and made again.
    const id = resourceType === 'bucket' ? row.name : row.resource_id;
    const key = JSON.stringify([row.meter, id, String(row.price_nano)]);
    const sum = sums.get(key) ?? { row, id, quantity: 0n, cost: 0n };
    sum.quantity += (BigInt(row.high) << LOW_BITS) + BigInt(row.low);
    sum.cost += BigInt(row.cost_micro);
    sums.set(key, sum);
  }
  return [...sums.values()].map(({ row, id, quantity, cost }) => ({
    resource_type: METERS[row.meter].resourceType,
    resource_id: id,
    name: row.name,
    meter: row.meter,
    quantity: quantityOf(row.meter, quantity),
    unit: METERS[row.meter].unit,
    unit_price: priceOfNano(BigInt(row.price_nano)),
    cost: creditsOf(cost),
  }));
}

/** Every day of the period up to now, also those on which nothing was used. */
function describeDays(rows: readonly UsedRow[], { from, to }: Period): ReportDay[] {
  const days = new Map<number, Map<Service, bigint>>();
  for (let day = Math.floor(from / DAY_MS); day * DAY_MS < to; day++) days.set(day, new Map());
  for (const { day, meter, cost_micro } of rows) {
    const costs = days.get(day) ?? new Map<Service, bigint>();
    const { service } = METERS[meter];
    costs.set(service, (costs.get(service) ?? 0n) + BigInt(cost_micro));
    days.set(day, costs);
  }
  return [...days].sort(([a], [b]) => a - b).map(([day, costs]) => describeDay(day, costs));
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
  };
}

/** `YYYY-MM-DD` of a number of days since 1970. */
export function formatDay(day: number): string {
  return formatTime(day * DAY_MS).slice(0, 10);
}
