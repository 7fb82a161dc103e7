/** What the billing pages read. Keys begin with `billing`. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';
import { periodOf } from './month.ts';

export const estimateQuery = queryOptions({
  queryKey: ['billing', 'estimate'],
  queryFn: () => cloud.billing.estimate(),
});

export const quotasQuery = queryOptions({
  queryKey: ['billing', 'quotas'],
  queryFn: () => cloud.billing.quotas(),
});

export const pricesQuery = queryOptions({
  queryKey: ['billing', 'prices'],
  queryFn: () => cloud.billing.prices(),
});

export const ledgerQuery = infiniteQueryOptions({
  queryKey: ['billing', 'ledger'],
  queryFn: ({ pageParam }) => cloud.billing.ledger().page(pageParam === '' ? {} : { cursor: pageParam }),
  initialPageParam: '',
  getNextPageParam: ({ cursor }) => cursor,
});

/** `month`: YYYY-MM. */
export const reportQuery = (month: string) =>
  queryOptions({
    queryKey: ['billing', 'report', month],
    queryFn: () => cloud.billing.usage(periodOf(month)),
  });
