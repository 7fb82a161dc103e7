/** `/billing?tab=report&month=2026-01`. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';
import { isMonth } from './month.ts';
import { TABS, type Tab } from './tabs.ts';

interface BillingSearch {
  /** Default: `now`. */
  readonly tab?: Tab;
  /** The report's month, `YYYY-MM` in UTC; default: this one. */
  readonly month?: string;
  /** The day of the ledger that is open, `YYYY-MM-DD` in UTC. */
  readonly day?: string;
}

export const billingRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/billing',
    validateSearch: ({ tab, month, day }: Record<string, unknown>): BillingSearch => ({
      ...(TABS.includes(tab as Tab) && tab !== 'now' ? { tab: tab as Tab } : {}),
      ...(isMonth(month) ? { month } : {}),
      ...(typeof day === 'string' ? { day } : {}),
    }),
    component: lazyRouteComponent(() => import('./billing-page.tsx'), 'BillingPage'),
  }),
] as const;
