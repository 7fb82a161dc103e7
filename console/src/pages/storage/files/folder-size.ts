/** The size of a folder, which the cloud counts on request. */
import { queryOptions, useQueries, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback } from 'react';
import type { BucketEntry } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { patiently } from './many.ts';

export interface FolderSum {
  readonly files: number;
  readonly bytes: number;
  /** False: the cloud is still counting. */
  readonly isWhole: boolean;
  /** The count took one call, so it is repeated when something in the bucket changes. */
  readonly isQuick: boolean;
}

/** Counts call by call, and reports the intermediate result after each. */
const folderSizeQuery = (bucket: string, prefix: string) =>
  queryOptions({
    queryKey: ['files', bucket, 'size', prefix],
    queryFn: async ({ signal, client, queryKey }): Promise<FolderSum> => {
      let [files, bytes, cursor, isQuick]: [number, number, string | null, boolean] = [0, 0, null, true];
      for (;;) {
        const asked: { prefix: string; cursor?: string } = cursor === null ? { prefix } : { prefix, cursor };
        const part = await patiently(() => cloud.getFolderSize(bucket, asked, { signal }));
        [files, bytes, cursor] = [files + part.object_count, bytes + part.size, part.next_cursor];
        if (cursor === null) return { files, bytes, isWhole: true, isQuick };
        isQuick = false;
        client.setQueryData(queryKey, { files, bytes, isWhole: false, isQuick });
      }
    },
    staleTime: Number.POSITIVE_INFINITY,
    enabled: ({ state }) => state.data?.isQuick === true,
  });

/** Undefined: nobody has asked for it. */
export function useFolderSize(bucket: string, prefix: string) {
  const { data, isFetching } = useQuery(folderSizeQuery(bucket, prefix));
  return { sum: data, isCounting: isFetching };
}

/** Counts the folders among the entries, one after the other. */
export function useCountFolders(bucket: string): (entries: readonly BucketEntry[]) => Promise<void> {
  const client = useQueryClient();
  return useCallback(
    async (entries) => {
      for (const { name, object } of entries) {
        if (object === null) await client.fetchQuery({ ...folderSizeQuery(bucket, name), staleTime: 0 });
      }
    },
    [client, bucket],
  );
}

/** Files and bytes of a selection; undefined: one of its folders is not counted yet. */
export function useSelectionSize(bucket: string, entries: readonly BucketEntry[]): FolderSum | undefined {
  const folders = entries.filter(({ object }) => object === null);
  const sums = useQueries({ queries: folders.map(({ name }) => folderSizeQuery(bucket, name)) });
  let [files, bytes] = [entries.length - folders.length, 0];
  for (const { object } of entries) bytes += object?.size ?? 0;
  for (const { data } of sums) {
    if (data?.isWhole !== true) return undefined;
    files += data.files;
    bytes += data.bytes;
  }
  return { files, bytes, isWhole: true, isQuick: false };
}
