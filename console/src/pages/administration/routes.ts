/** `/administration?tab=accounts`. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';
import { TABS, type Tab } from './tabs.ts';

interface AdministrationSearch {
  /** Default: `status`. */
  readonly tab?: Tab;
}

export const administrationRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/administration',
    validateSearch: ({ tab }: Record<string, unknown>): AdministrationSearch =>
      TABS.includes(tab as Tab) && tab !== 'status' ? { tab: tab as Tab } : {},
    component: lazyRouteComponent(() => import('./administration-page.tsx'), 'AdministrationPage'),
  }),
] as const;
