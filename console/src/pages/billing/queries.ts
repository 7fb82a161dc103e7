/** Queries of the billing page. Keys begin with `billing`. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { LedgerEntry, Page } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { daysOf } from './ledger-days.ts';
import { periodOf } from './month.ts';

export const estimateQuery = queryOptions({
  queryKey: ['billing', 'estimate'],
  queryFn: () => cloud.getEstimate(),
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

/** Entries of the ledger, newest first, up to some of the day before: at least one day is whole. */
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
