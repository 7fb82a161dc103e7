import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

export const databaseRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/databases',
    component: lazyRouteComponent(() => import('./databases-page.tsx'), 'DatabasesPage'),
  }),
] as const;
