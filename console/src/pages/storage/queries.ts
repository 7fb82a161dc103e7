/** Queries of the storage pages. Keys begin with `buckets`, or with `files` and the bucket. */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';
import { figuresEvery } from '../../queries.ts';

/** Enough for every screen; more are loaded while scrolling. */
const FIRST_ENTRIES = 200;
const NEXT_ENTRIES = 1000;

export const bucketsQuery = queryOptions({
  queryKey: ['buckets'],
  queryFn: () => cloud.listBuckets().all(),
});

export const bucketQuery = (name: string) =>
  queryOptions({ queryKey: ['buckets', name], queryFn: () => cloud.getBucket(name) });

/** The bucket's S3 settings. */
export const settingsQuery = (bucket: string) =>
  queryOptions({
    queryKey: ['buckets', bucket, 'settings'],
    queryFn: () => cloud.getBucketSettings(bucket),
  });

/** Queries invalidated by a changed setting. */
export const changedSettings = (bucket: string) => [
  settingsQuery(bucket),
  { queryKey: ['buckets', bucket, 'access'] },
];

/** Callers with access to an object of the bucket. */
export const accessQuery = (bucket: string, object: string) =>
  queryOptions({
    queryKey: ['buckets', bucket, 'access', object],
    queryFn: () => cloud.getBucketAccess(bucket, object === '' ? {} : { object }),
    placeholderData: keepPreviousData,
  });

/** Multipart uploads in progress. */
export const uploadsQuery = (bucket: string) =>
  queryOptions({
    queryKey: ['buckets', bucket, 'uploads'],
    queryFn: () => cloud.listUploads(bucket).all(),
    refetchInterval: () => figuresEvery(false),
  });

/** All shared links of the account. */
export const sharesQuery = queryOptions({ queryKey: ['shares'], queryFn: () => cloud.listShares() });

export const bucketPointsQuery = (bucket: string) =>
  queryOptions({
    queryKey: ['buckets', bucket, 'points'],
    queryFn: () => cloud.listBucketPoints(bucket),
  });

export const s3EndpointQuery = queryOptions({
  queryKey: ['s3'],
  queryFn: () => cloud.getS3Endpoint(),
});

export const encryptionKeysQuery = queryOptions({
  queryKey: ['encryption-keys'],
  queryFn: () => cloud.listEncryptionKeys(),
});

/** A folder or a search in it, by page. */
export const filesQuery = (bucket: string, search: FilesSearch) => {
  const { object: _, tab: __, find, ...view } = search;
  const query = find === undefined ? view : { ...view, search: find };
  return infiniteQueryOptions({
    queryKey: ['files', bucket, query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const limit = pageParam === undefined ? FIRST_ENTRIES : NEXT_ENTRIES;
      return cloud.browseBucket(bucket, query, { signal }).page({ cursor: pageParam, limit });
    },
    getNextPageParam: ({ cursor }) => cursor ?? undefined,
    // Otherwise, all pages would be compared deeply for each new one.
    structuralSharing: false,
  });
};

export const objectQuery = (bucket: string, id: string) =>
  queryOptions({
    queryKey: ['files', bucket, 'object', id],
    queryFn: ({ signal }) => cloud.getObject(id, {}, { signal }),
  });

/** Tabs of a bucket's page besides its objects. */
export const BUCKET_TABS = ['links', 'uploads', 'recovery', 'settings'] as const;

/** Former tabs, which bookmarks may still name, and the settings sections that replaced them. */
export const FORMER_TABS: ReadonlyMap<unknown, string> = new Map([
  ['permissions', 'access'],
  ...['lifecycle', 'lock', 'cors', 'tags'].map((name) => [name, name] as const),
]);

export type BucketTab = (typeof BUCKET_TABS)[number];

/** Search params of a folder's URL: a link restores the view. */
export interface FilesSearch {
  /** The folder: ends with `/`; absent: the top. */
  readonly prefix?: string;
  /** Names that contain this. */
  readonly find?: string;
  /** Absent: by name. */
  readonly sort?: 'size' | 'created_at';
  /** Absent: ascending. */
  readonly order?: 'desc';
  /** Only deleted files. */
  readonly deleted?: true;
  /** Id of the object whose details are open. */
  readonly object?: string;
  /** Absent: the objects. */
  readonly tab?: BucketTab;
}

const TAKEN: { readonly [M in keyof Required<FilesSearch>]: (value: unknown) => boolean } = {
  prefix: isText,
  find: isText,
  sort: (value) => value === 'size' || value === 'created_at',
  order: (value) => value === 'desc',
  deleted: (value) => value === true,
  object: isText,
  // The route leads away from a former tab, before anything reads it.
  tab: (value) => BUCKET_TABS.some((tab) => tab === value) || FORMER_TABS.has(value),
};

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Known params with valid values; others are dropped. */
export function readSearch(search: Record<string, unknown>): FilesSearch {
  return Object.fromEntries(
    Object.entries(TAKEN).flatMap(([name, isTaken]) => {
      const value = search[name];
      return isTaken(value) ? [[name, value]] : [];
    }),
  );
}

/** Search parameters of a folder. */
export type FolderSearch = Omit<FilesSearch, 'tab'>;

/** Another folder with the same sort order. */
export function inFolder(search: FolderSearch, prefix: string): FilesSearch {
  const { find: _find, object: _object, prefix: _prefix, tab: _tab, ...view } = search as FilesSearch;
  return prefix === '' ? view : { ...view, prefix };
}
