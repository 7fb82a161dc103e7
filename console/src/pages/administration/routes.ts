/** `/administration?tab=accounts&find=ada`, `/administration?tab=revenue&month=2026-01`. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';
import { isMonth } from '../billing/month.ts';
import { TABS, type Tab } from './tabs.ts';

interface AdministrationSearch {
  /** Default: `status`. */
  readonly tab?: Tab;
  /** Accounts whose name or e-mail address has this. */
  readonly find?: string;
  /** Month of the revenue, `YYYY-MM` in UTC; default: this one. */
  readonly month?: string;
}

export const administrationRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/administration',
    validateSearch: ({ tab, find, month }: Record<string, unknown>): AdministrationSearch => ({
      ...(TABS.includes(tab as Tab) && tab !== 'status' ? { tab: tab as Tab } : {}),
      ...(typeof find === 'string' && find !== '' ? { find } : {}),
      ...(isMonth(month) ? { month } : {}),
    }),
    component: lazyRouteComponent(() => import('./administration-page.tsx'), 'AdministrationPage'),
  }),
] as const;
