/** For those who are not signed in. */

import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../../shell/base-routes.ts';

interface SignInSearch {
  /** Where to go afterwards. */
  readonly next?: string | undefined;
}

function readSearch(search: Record<string, unknown>): SignInSearch {
  const { next } = search;
  // A path of this console, and no `//elsewhere`.
  const isOwn = typeof next === 'string' && /^\/(?![/\\])/.test(next);
  return isOwn ? { next } : {};
}

export const signInRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/sign-in',
    validateSearch: readSearch,
    component: lazyRouteComponent(() => import('./sign-in-pages.tsx'), 'SignInPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/sign-up',
    validateSearch: readSearch,
    component: lazyRouteComponent(() => import('./sign-in-pages.tsx'), 'SignUpPage'),
  }),
] as const;
