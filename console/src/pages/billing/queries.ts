/** Queries of the billing page. Keys begin with `billing`. */

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { LedgerEntry, Page } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { daysOf } from './ledger-days.ts';

export const TABS = ['now', 'report', 'ledger', 'prices'] as const;
/** Parts of the report's bars. */
export const BYS = ['service', 'resource'] as const;
export type Tab = (typeof TABS)[number];

export const estimateQuery = queryOptions({
  queryKey: ['billing', 'estimate'],
  queryFn: () => cloud.getEstimate(),
  // It has a line for each of perhaps ten thousand resources, which would be compared at once.
  structuralSharing: false,
});

export const quotasQuery = queryOptions({
  queryKey: ['billing', 'quotas'],
  queryFn: () => cloud.getQuotas(),
});

export const pricesQuery = queryOptions({
  queryKey: ['billing', 'prices'],
  queryFn: () => cloud.listPrices(),
});

const LEDGER_PAGE_ENTRIES = 1000;

/**
 * Entries of the ledger, newest first, including some of the previous day: so at least one day is
 * complete.
 */
async function wholeDays(from: string): Promise<Page<LedgerEntry>> {
  const items: LedgerEntry[] = [];
  let cursor: string | null = from;
  do {
    const page: Page<LedgerEntry> = await cloud
      .listLedger()
      .page({ limit: LEDGER_PAGE_ENTRIES, cursor: cursor === '' ? undefined : cursor });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== null && daysOf(items).length < 2);
  return { items, cursor };
}

export const ledgerQuery = infiniteQueryOptions({
  queryKey: ['billing', 'ledger'],
  queryFn: ({ pageParam }) => wholeDays(pageParam),
  initialPageParam: '',
  getNextPageParam: ({ cursor }) => cursor,
});

/** `month`: YYYY-MM. */
export const reportQuery = (month: string) =>
  queryOptions({
    queryKey: ['billing', 'report', month],
    queryFn: () => cloud.getUsage(periodOf(month)),
  });

/** `month`: YYYY-MM. The eight that cost most, as many as there are colours. */
export const resourcesQuery = (month: string) =>
  queryOptions({
    queryKey: ['billing', 'resources', month],
    queryFn: () => cloud.getUsageByResource({ ...periodOf(month), top: 8 }),
  });

/** Months in URLs and the API: `YYYY-MM`, in UTC. */

export const thisMonth = (): string => new Date().toISOString().slice(0, 7);

export function isMonth(value: unknown): value is string {
  return typeof value === 'string' && /^\d{4}-(?:0[1-9]|1[0-2])$/.test(value);
}

/** The API's period: the first day of the month and of the next. */
export function periodOf(month: string): { readonly from: string; readonly to: string } {
  const next = new Date(`${month}-01T00:00:00Z`);
  next.setUTCMonth(next.getUTCMonth() + 1);
  return { from: `${month}-01`, to: next.toISOString().slice(0, 10) };
}
