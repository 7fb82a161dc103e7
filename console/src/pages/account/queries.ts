import { queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: () => cloud.listSessions().all(),
});

export const accessKeysQuery = queryOptions({
  queryKey: ['access-keys'],
  queryFn: () => cloud.listAccessKeys().all(),
});
