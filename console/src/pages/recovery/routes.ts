/** `/recovery?point=drp-1` has the details of that point open. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

interface RecoverySearch {
  readonly point?: string;
}

export const recoveryRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/recovery',
    validateSearch: ({ point }: Record<string, unknown>): RecoverySearch =>
      typeof point === 'string' ? { point } : {},
    component: lazyRouteComponent(() => import('./recovery-page.tsx'), 'RecoveryPage'),
  }),
] as const;
