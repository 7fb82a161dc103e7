/** What the whole cloud took, by service and day. */
import { formatTime } from '../platform/clock.ts';
import { SERVICES, type Service } from './meters.ts';
import { formatDay } from './report.ts';
import { creditsOf, type Figure } from './report-figures.ts';
import { DAY_MS, type Period } from './report-period.ts';
import type { ReportStore } from './report-store.ts';

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

/** By the times of the transfers; days on which nothing was booked are left out. */
export async function revenueReport(store: ReportStore, period: Period): Promise<RevenueReport> {
  const days = new Map<number, Sums>();
  const all: Sums = new Map();
  for (let from = period.from; from < period.to; from += HOUR_MS) {
    for (const { day, side, amount_micro } of await store.revenueOf({ from, to: from + HOUR_MS })) {
      const sums = days.get(day) ?? new Map<string, bigint>();
      days.set(day, sums);
      for (const each of [sums, all]) each.set(side, (each.get(side) ?? 0n) + BigInt(amount_micro));
    }
    // An hour of a large cloud is thousands of transfers: others get their turn.
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
