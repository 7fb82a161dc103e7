/** What the administration pages read. Keys begin with `admin`. */
import { queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';
import { periodOf } from '../billing/month.ts';

const BUSY_MS = 1500;
const STATUS_MS = 15_000;

export const adminStatusQuery = queryOptions({
  queryKey: ['admin', 'status'],
  queryFn: () => cloud.system.status(),
  refetchInterval: STATUS_MS,
});

export const accountsQuery = queryOptions({
  queryKey: ['admin', 'accounts'],
  queryFn: () => cloud.admin.accounts.list().all(),
});

/** `month`: YYYY-MM. */
export const statementQuery = (id: number, month: string) =>
  queryOptions({
    queryKey: ['admin', 'accounts', id, 'statement', month],
    queryFn: () => cloud.admin.accounts.statement(id, { month }),
  });

/** `month`: YYYY-MM. */
export const revenueQuery = (month: string) =>
  queryOptions({
    queryKey: ['admin', 'revenue', month],
    queryFn: () => cloud.admin.revenue(periodOf(month)),
  });

export const allVmsQuery = queryOptions({
  queryKey: ['admin', 'vms'],
  queryFn: () => cloud.admin.vms.list().all(),
});

export const plansQuery = queryOptions({
  queryKey: ['admin', 'plans'],
  queryFn: () => cloud.admin.plans.list(),
});

export const setPricesQuery = queryOptions({
  queryKey: ['admin', 'prices'],
  queryFn: () => cloud.admin.prices.list(),
});

export const imagesQuery = queryOptions({
  queryKey: ['admin', 'images'],
  queryFn: () => cloud.admin.images.list(),
  refetchInterval: ({ state: { data } }) =>
    data?.some(({ state }) => state === 'importing') ? BUSY_MS : false,
});

export const scrubQuery = queryOptions({
  queryKey: ['admin', 'scrub'],
  queryFn: () => cloud.admin.scrub.get(),
  refetchInterval: ({ state: { data } }) => (data?.running ? BUSY_MS : false),
});

export const ledgerCheckQuery = queryOptions({
  queryKey: ['admin', 'ledger'],
  queryFn: () => cloud.admin.ledger.verification(),
  refetchInterval: ({ state: { data } }) => (data?.running ? BUSY_MS : false),
});
