/** Queries of the webhooks page. Keys begin with `webhooks`. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

const BUSY_MS = 1500;

export const webhooksQuery = queryOptions({
  queryKey: ['webhooks'],
  queryFn: () => cloud.listWebhooks().all(),
});

export const STATES = ['failed', 'pending', 'delivered'] as const;
export type StateFilter = 'all' | (typeof STATES)[number];

export const deliveriesQuery = (id: string, state: StateFilter) =>
  infiniteQueryOptions({
    queryKey: ['webhooks', id, 'deliveries', state],
    queryFn: ({ pageParam }) =>
      cloud
        .listWebhookDeliveries(id, state === 'all' ? {} : { state })
        .page(pageParam === '' ? {} : { cursor: pageParam }),
    initialPageParam: '',
    getNextPageParam: ({ cursor }) => cursor,
    refetchInterval: ({ state: { data } }) =>
      data?.pages.some(({ items }) => items.some((one) => one.state === 'pending')) ? BUSY_MS : false,
  });

export const secretQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhooks', id, 'secret'],
    queryFn: () => cloud.getWebhookSecret(id),
    // The secret is cached only while shown.
    gcTime: 0,
  });
