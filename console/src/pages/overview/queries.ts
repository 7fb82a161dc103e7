import { queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

const STATUS_EVERY_MS = 15_000;

export const statusQuery = queryOptions({
  queryKey: ['status'],
  queryFn: () => cloud.getSystemStatus(),
  refetchInterval: STATUS_EVERY_MS,
});
