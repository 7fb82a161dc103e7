/** Queries of the administration page. Keys begin with `admin`. */

import { queryOptions, replaceEqualDeep } from '@tanstack/react-query';
import type { AdminAccount, AdminVm, Node } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { readList } from '../../parts/tables/read-list.ts';
import { periodOf } from '../billing/queries.ts';

export const TABS = [
  'status',
  'accounts',
  'invitations',
  'machines',
  'plans',
  'prices',
  'revenue',
  'images',
  'upkeep',
  'audit',
  'nodes',
] as const;
export type Tab = (typeof TABS)[number];

const BUSY_MS = 1500;
const STATUS_MS = 15_000;
const BEATS_MS = 2000;

export const adminStatusQuery = queryOptions({
  queryKey: ['admin', 'status'],
  queryFn: () => cloud.getSystemStatus(),
  refetchInterval: STATUS_MS,
});

export const accountsQuery = queryOptions({
  queryKey: ['admin', 'accounts'],
  queryFn: ({ client, queryKey }) =>
    readList(cloud.adminListAccounts(), {
      former: client.getQueryData<AdminAccount[]>(queryKey),
      keyOf: ({ id }) => String(id),
      merge: replaceEqualDeep,
    }),
  structuralSharing: false,
});

export const invitationsQuery = queryOptions({
  queryKey: ['admin', 'invitations'],
  queryFn: () => cloud.adminListInvitations().all(),
});

/** `month`: YYYY-MM. */
export const statementQuery = (id: number, month: string) =>
  queryOptions({
    queryKey: ['admin', 'accounts', id, 'statement', month],
    queryFn: () => cloud.adminGetStatement(id, { month }),
  });

export const rightsQuery = (id: number) =>
  queryOptions({
    queryKey: ['admin', 'accounts', id, 'rights'],
    queryFn: () => cloud.adminGetRights(id),
  });

/** `month`: YYYY-MM. */
export const revenueQuery = (month: string) =>
  queryOptions({
    queryKey: ['admin', 'revenue', month],
    queryFn: () => cloud.adminGetRevenue(periodOf(month)),
  });

export const allVmsQuery = queryOptions({
  queryKey: ['admin', 'vms'],
  queryFn: ({ client, queryKey }) =>
    readList(cloud.adminListVms(), {
      former: client.getQueryData<AdminVm[]>(queryKey),
      keyOf: ({ vm_id: id }) => id,
      merge: replaceEqualDeep,
    }),
  structuralSharing: false,
});

export const plansQuery = queryOptions({
  queryKey: ['admin', 'plans'],
  queryFn: () => cloud.adminListPlans(),
});

export const setPricesQuery = queryOptions({
  queryKey: ['admin', 'prices'],
  queryFn: () => cloud.adminListPrices(),
});

export const imagesQuery = queryOptions({
  queryKey: ['admin', 'images'],
  queryFn: () => cloud.adminListImages(),
  refetchInterval: ({ state: { data } }) =>
    data?.some(({ state }) => state === 'importing') ? BUSY_MS : false,
});

export const knownImagesQuery = queryOptions({
  queryKey: ['admin', 'known-images'],
  queryFn: () => cloud.adminListKnownImages(),
  refetchInterval: ({ state: { data } }) =>
    data?.some(({ image }) => image?.state === 'importing') ? BUSY_MS : false,
});

export const nodesQuery = queryOptions({
  queryKey: ['admin', 'nodes'],
  queryFn: () => cloud.adminListNodes(),
  refetchInterval: ({ state: { data } }) => (isCluster(data) ? BEATS_MS : false),
});

/** A cloud of one process lists itself, without a URL. */
export const isCluster = (nodes: readonly Node[] = []) => nodes.some(({ url }) => url !== null);

export const scrubQuery = queryOptions({
  queryKey: ['admin', 'scrub'],
  queryFn: () => cloud.getScrub(),
  refetchInterval: ({ state: { data } }) => (data?.running ? BUSY_MS : false),
});

export const ledgerCheckQuery = queryOptions({
  queryKey: ['admin', 'ledger'],
  queryFn: () => cloud.getLedgerVerification(),
  refetchInterval: ({ state: { data } }) => (data?.running ? BUSY_MS : false),
});
