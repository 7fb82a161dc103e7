import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

export const administrationRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/administration',
    component: lazyRouteComponent(() => import('./administration-page.tsx'), 'AdministrationPage'),
  }),
] as const;
