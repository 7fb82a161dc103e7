/** `/storage` lists buckets; `/storage/photos?prefix=2026/` is a folder in one. */

import {
  ArchiveBoxIcon,
  DocumentIcon,
  KeyIcon,
  MagnifyingGlassIcon,
  PlusIcon,
} from '@heroicons/react/24/outline';
import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router';
import type { Bucket } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { matches, type PaletteEntry, type PaletteSource } from '../../palette/entries.ts';
import { sayBytes, sayName } from '../../parts/say.ts';
import { type ListView, listSearch } from '../../parts/tables/list-view.ts';
import { queryClient, readAhead } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { text } from '../../texts/text.ts';
import { accessKeysQuery } from '../account/queries.ts';
import { estimateQuery } from '../billing/queries.ts';
import {
  bucketQuery,
  bucketsQuery,
  encryptionKeysQuery,
  type FilesSearch,
  FORMER_TABS,
  filesQuery,
  readSearch,
  s3EndpointQuery,
  settingsQuery,
  uploadsQuery,
} from './queries.ts';

interface BucketsSearch {
  /** Whether the form for a new bucket is open. */
  readonly create?: boolean;
}

export const storageRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/storage',
    validateSearch: ({ create, ...list }: Record<string, unknown>): BucketsSearch & ListView => ({
      ...listSearch(list),
      ...(create === true ? { create } : {}),
    }),
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, bucketsQuery);
      readAhead(queryClient, estimateQuery);
    },
    component: lazyRouteComponent(() => import('./buckets/buckets-page.tsx'), 'BucketsPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    // A bucket name has at least three letters.
    path: '/storage/s3',
    validateSearch: ({ create }: Record<string, unknown>): BucketsSearch =>
      create === true ? { create } : {},
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, s3EndpointQuery);
      readAhead(queryClient, accessKeysQuery);
      readAhead(queryClient, bucketsQuery);
    },
    component: lazyRouteComponent(() => import('./s3/s3-page.tsx'), 'S3Page'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/storage/s3/encryption-keys',
    loader: ({ context: { queryClient } }) => readAhead(queryClient, encryptionKeysQuery),
    component: lazyRouteComponent(() => import('./s3/encryption-keys-page.tsx'), 'EncryptionKeysPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/storage/$bucket',
    validateSearch: readSearch,
    beforeLoad: ({ search, params }) => {
      const section = FORMER_TABS.get(search.tab);
      if (section === undefined) return;
      throw redirect({
        to: '/storage/$bucket',
        params,
        search: { tab: 'settings' },
        hash: section,
        replace: true,
      });
    },
    loaderDeps: ({ search: { object: _, ...view } }): FilesSearch => view,
    loader: ({ context: { queryClient }, params: { bucket }, deps }) => {
      readAhead(queryClient, bucketQuery(bucket));
      if (deps.tab === 'uploads') return readAhead(queryClient, uploadsQuery(bucket));
      if (deps.tab === 'settings') return readAhead(queryClient, settingsQuery(bucket));
      if (deps.tab !== undefined) return;
      void queryClient.prefetchInfiniteQuery({
        ...filesQuery(bucket, deps),
        staleTime: Number.POSITIVE_INFINITY,
      });
    },
    component: lazyRouteComponent(() => import('./files/files-page.tsx'), 'FilesPage'),
  }),
] as const;

const FOUND_MAX = 8;
/** Buckets that are searched at a time; each is a call. */
const AT_ONCE = 8;
/** Maximum buckets searched for one text, the fullest first. */
const MOST_SEARCHED = 64;
/** Minimum length of a search: shorter texts occur in nearly every name. */
const OBJECT_LETTERS = 3;

export const storagePalette: PaletteSource = {
  actions: [
    {
      id: 'create-bucket',
      label: text.storage.createBucket,
      icon: PlusIcon,
      open: { to: '/storage', search: { create: true } },
    },
    {
      id: 's3-access',
      label: text.storage.openS3,
      note: text.storage.title,
      icon: KeyIcon,
      open: { to: '/storage/s3' },
    },
    {
      id: 'create-s3-key',
      label: text.storage.createS3Key,
      icon: KeyIcon,
      open: { to: '/storage/s3', search: { create: true } },
    },
  ],
  find: async (words, signal) => {
    const buckets = await queryClient.fetchQuery(bucketsQuery);
    const named = buckets
      .filter(({ name }) => matches(name, words))
      .slice(0, FOUND_MAX)
      .map(bucketEntry);
    if (words.length < OBJECT_LETTERS) return named;
    const fullest = buckets
      .filter(({ object_count }) => object_count > 0)
      .toSorted((a, b) => b.object_count - a.object_count);
    const objects: PaletteEntry[] = [];
    for (let at = 0; at < fullest.length && objects.length < FOUND_MAX; at += AT_ONCE) {
      if (at >= MOST_SEARCHED) return [...named, ...objects, notSearched(fullest.length - at)];
      const some = fullest.slice(at, at + AT_ONCE);
      const found = await Promise.all(some.map(({ name }) => objectsIn(name, words, signal)));
      objects.push(...found.flat());
    }
    return [...named, ...objects.slice(0, FOUND_MAX)];
  },
};

function bucketEntry({ name }: Bucket): PaletteEntry {
  return {
    id: `bucket-${name}`,
    label: name,
    note: text.storage.bucket,
    icon: ArchiveBoxIcon,
    open: { to: '/storage/$bucket', params: { bucket: name } },
  };
}

function notSearched(count: number): PaletteEntry {
  return {
    id: 'buckets-not-searched',
    label: text.storage.notSearched(count),
    note: text.storage.notSearchedLead,
    icon: MagnifyingGlassIcon,
    open: { to: '/storage' },
  };
}

async function objectsIn(bucket: string, search: string, signal: AbortSignal) {
  const { items } = await cloud.browseBucket(bucket, { search }, { signal }).page({ limit: FOUND_MAX });
  return items.flatMap(({ name, object }) => {
    if (object === null) return [];
    const prefix = name.slice(0, name.lastIndexOf('/') + 1);
    const entry: PaletteEntry = {
      id: `object-${object.id}`,
      label: sayName(name.slice(prefix.length) || name),
      note: `${bucket}/${prefix} · ${sayBytes(object.size)}`,
      icon: DocumentIcon,
      open: {
        to: '/storage/$bucket',
        params: { bucket },
        search: { object: object.id, ...(prefix === '' ? {} : { prefix }) },
      },
    };
    return entry;
  });
}
