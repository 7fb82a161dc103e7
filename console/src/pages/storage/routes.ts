/** `/storage` lists buckets; `/storage/photos?prefix=2026/` is a folder in one. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';
import { readSearch } from './files-search.ts';

interface BucketsSearch {
  /** The form for a new one is open. */
  readonly create?: boolean;
}

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
    validateSearch: readSearch,
    component: lazyRouteComponent(() => import('./files-page.tsx'), 'FilesPage'),
  }),
] as const;
