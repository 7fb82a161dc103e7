/** For those who are not signed in. */

import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../../shell/base-routes.ts';

interface DoorSearch {
  /** Where to go afterwards. */
  readonly next?: string | undefined;
}

function readSearch(search: Record<string, unknown>): DoorSearch {
  const { next } = search;
  // A path of this console, and no `//elsewhere`.
  const isOwn = typeof next === 'string' && /^\/(?![/\\])/.test(next);
  return isOwn ? { next } : {};
}

export const doorRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/sign-in',
    validateSearch: readSearch,
    component: lazyRouteComponent(() => import('./door-pages.tsx'), 'SignInPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/sign-up',
    validateSearch: readSearch,
    component: lazyRouteComponent(() => import('./door-pages.tsx'), 'SignUpPage'),
  }),
] as const;
