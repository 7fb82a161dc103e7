/** `/administration?tab=accounts&find=ada`. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';
import { TABS, type Tab } from './tabs.ts';

interface AdministrationSearch {
  /** Default: `status`. */
  readonly tab?: Tab;
  /** Accounts whose name or e-mail address has this. */
  readonly find?: string;
}

export const administrationRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/administration',
    validateSearch: ({ tab, find }: Record<string, unknown>): AdministrationSearch => ({
      ...(TABS.includes(tab as Tab) && tab !== 'status' ? { tab: tab as Tab } : {}),
      ...(typeof find === 'string' && find !== '' ? { find } : {}),
    }),
    component: lazyRouteComponent(() => import('./administration-page.tsx'), 'AdministrationPage'),
  }),
] as const;
