/** Queries of the storage pages. Keys begin with `buckets`, or with `files` and the bucket. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';
import type { FilesSearch } from './files-search.ts';

/** Enough for every window; who goes on below has a long way. */
const FIRST_ENTRIES = 200;
const NEXT_ENTRIES = 1000;

export const bucketsQuery = queryOptions({
  queryKey: ['buckets'],
  queryFn: () => cloud.listBuckets().all(),
});

export const bucketQuery = (name: string) =>
  queryOptions({ queryKey: ['buckets', name], queryFn: () => cloud.getBucket(name) });

/** A folder, or what is found in it, page by page. */
export const filesQuery = (bucket: string, search: FilesSearch) => {
  const { object: _, find, ...view } = search;
  const query = find === undefined ? view : { ...view, search: find };
  return infiniteQueryOptions({
    queryKey: ['files', bucket, query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const limit = pageParam === undefined ? FIRST_ENTRIES : NEXT_ENTRIES;
      return cloud.browseBucket(bucket, query, { signal }).page({ cursor: pageParam, limit });
    },
    getNextPageParam: ({ cursor }) => cursor ?? undefined,
    // Pages are compared member by member otherwise, all of them for each that is added.
    structuralSharing: false,
  });
};

export const objectQuery = (bucket: string, id: string) =>
  queryOptions({
    queryKey: ['files', bucket, 'object', id],
    queryFn: ({ signal }) => cloud.getObject(id, {}, { signal }),
  });
