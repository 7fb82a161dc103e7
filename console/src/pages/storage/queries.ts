/** What the storage pages read. Keys begin with `buckets`, or with `files` and the bucket. */
import { queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

export const bucketsQuery = queryOptions({
  queryKey: ['buckets'],
  queryFn: () => cloud.buckets.list().all(),
});
