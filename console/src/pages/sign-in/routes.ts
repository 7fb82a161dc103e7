/** Pages without the frame: for users who are not signed in, and for signing in programs. */

import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { assertSignedIn, rootRoute } from '../../shell/base-routes.ts';

interface SignInSearch {
  /** Where to go afterwards. */
  readonly next?: string | undefined;
}

function readSearch(search: Record<string, unknown>): SignInSearch {
  const { next } = search;
  // A path of this console, not `//elsewhere`.
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
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/reset-password',
    component: lazyRouteComponent(() => import('./reset-page.tsx'), 'ResetPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/forgot-password',
    component: lazyRouteComponent(() => import('./forgot-page.tsx'), 'ForgotPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/confirm-email',
    component: lazyRouteComponent(() => import('./confirm-email-page.tsx'), 'ConfirmEmailPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/join',
    component: lazyRouteComponent(() => import('./join-page.tsx'), 'JoinPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/connect',
    beforeLoad: assertSignedIn,
    component: lazyRouteComponent(() => import('./connect-pages.tsx'), 'ConnectPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/device',
    beforeLoad: assertSignedIn,
    component: lazyRouteComponent(() => import('./connect-pages.tsx'), 'DevicePage'),
  }),
] as const;
