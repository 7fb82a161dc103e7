/** What the page of webhooks reads. Keys begin with `webhooks`. */
import { queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

const BUSY_MS = 1500;

export const webhooksQuery = queryOptions({
  queryKey: ['webhooks'],
  queryFn: () => cloud.webhooks.list().all(),
});

export const deliveriesQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhooks', id, 'deliveries'],
    queryFn: async () => (await cloud.webhooks.deliveries(id).page()).items,
    refetchInterval: ({ state: { data } }) =>
      data?.some(({ state }) => state === 'pending') ? BUSY_MS : false,
  });

export const secretQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhooks', id, 'secret'],
    queryFn: () => cloud.webhooks.secret(id),
    // It is not kept longer than it is shown.
    gcTime: 0,
  });
