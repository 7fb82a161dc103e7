/** `/reference`: the API reference within the frame of the console. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';

export const referenceRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/reference',
    component: lazyRouteComponent(() => import('./reference-page.tsx'), 'ReferencePage'),
  }),
] as const;
