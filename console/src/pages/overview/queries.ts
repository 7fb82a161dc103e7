/** How many there are of what the first steps make: the first of each is enough. */
import { queryOptions } from '@tanstack/react-query';
import type { Pages } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';

const atLeast = <T>(key: string, list: () => Pages<T>) =>
  queryOptions({
    queryKey: ['first', key],
    queryFn: async () => (await list().page({ limit: 1 })).items.length,
  });

export const machinesCountQuery = atLeast('vms', () => cloud.vms.list());
export const databasesCountQuery = atLeast('databases', () => cloud.databases.list());
export const keysCountQuery = atLeast('keys', () => cloud.account.accessKeys.list());
export const pointsCountQuery = atLeast('points', () => cloud.recovery.points.list());

const STATUS_EVERY_MS = 15_000;

export const statusQuery = queryOptions({
  queryKey: ['status'],
  queryFn: () => cloud.system.status(),
  refetchInterval: STATUS_EVERY_MS,
});
