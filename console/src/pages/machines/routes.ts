import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

export const machineRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/machines',
    component: lazyRouteComponent(() => import('./machines-page.tsx'), 'MachinesPage'),
  }),
] as const;
