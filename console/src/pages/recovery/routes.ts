import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

export const recoveryRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/recovery',
    component: lazyRouteComponent(() => import('./recovery-page.tsx'), 'RecoveryPage'),
  }),
] as const;
