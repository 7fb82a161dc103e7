/** `/storage` lists buckets; `/storage/photos?prefix=2026/` is a folder in one. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

interface BucketsSearch {
  /** The form for a new one is open. */
  readonly create?: boolean;
}

interface FilesSearch {
  /** The folder: ends with `/`; absent: the top. */
  readonly prefix?: string;
  /** Names that have this. */
  readonly find?: string;
  readonly sort?: string;
  /** Id of the object whose details are open. */
  readonly object?: string;
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

export const storageRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/storage',
    validateSearch: ({ create }: Record<string, unknown>): BucketsSearch =>
      create === true ? { create } : {},
    component: lazyRouteComponent(() => import('./buckets-page.tsx'), 'BucketsPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/storage/$bucket',
    validateSearch: (search: Record<string, unknown>): FilesSearch => {
      const read = ['prefix', 'find', 'sort', 'object'].map((name) => [name, textOf(search[name])]);
      return Object.fromEntries(read.filter(([, value]) => value !== undefined));
    },
    component: lazyRouteComponent(() => import('./files-page.tsx'), 'FilesPage'),
  }),
] as const;
