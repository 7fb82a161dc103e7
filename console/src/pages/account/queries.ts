import { queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: () => cloud.account.sessions.list().all(),
});

export const accessKeysQuery = queryOptions({
  queryKey: ['access-keys'],
  queryFn: () => cloud.account.accessKeys.list().all(),
});
