/** `/account?create=key` has the form for a new access key open. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

interface AccountSearch {
  readonly create?: 'key';
}

export const accountRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/account',
    validateSearch: ({ create }: Record<string, unknown>): AccountSearch =>
      create === 'key' ? { create } : {},
    component: lazyRouteComponent(() => import('./account-page.tsx'), 'AccountPage'),
  }),
] as const;
