/** `/billing?tab=report&month=2026-01`. */

import { CreditCardIcon } from '@heroicons/react/24/outline';
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import type { PaletteSource } from '../../palette/entries.ts';
import { type ListView, listSearch } from '../../parts/tables/list-view.ts';
import { readAhead } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { text } from '../../texts/text.ts';
import {
  estimateQuery,
  isMonth,
  pricesQuery,
  quotasQuery,
  reportQuery,
  TABS,
  type Tab,
  thisMonth,
} from './queries.ts';

interface BillingSearch extends ListView {
  /** Default: `now`. */
  readonly tab?: Tab;
  /** The report's month, `YYYY-MM` in UTC; default: the current one. */
  readonly month?: string;
  /** The day of the ledger that is open, `YYYY-MM-DD` in UTC. */
  readonly day?: string;
  /** Parts of the report's bars; default: services. */
  readonly by?: 'resource';
}

export const billingRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/billing',
    validateSearch: ({ tab, month, day, by, ...list }: Record<string, unknown>): BillingSearch => ({
      ...listSearch(list),
      ...(TABS.includes(tab as Tab) && tab !== 'now' ? { tab: tab as Tab } : {}),
      ...(isMonth(month) ? { month } : {}),
      ...(typeof day === 'string' ? { day } : {}),
      ...(by === 'resource' ? { by } : {}),
    }),
    loaderDeps: ({ search: { tab = 'now', month = thisMonth() } }) => ({ tab, month }),
    loader: ({ context: { queryClient }, deps: { tab, month } }) => {
      if (tab === 'now') {
        readAhead(queryClient, estimateQuery);
        readAhead(queryClient, quotasQuery);
      }
      if (tab === 'report') readAhead(queryClient, reportQuery(month));
      if (tab === 'prices') readAhead(queryClient, pricesQuery);
    },
    component: lazyRouteComponent(() => import('./billing-page.tsx'), 'BillingPage'),
  }),
] as const;

const { title, tabs } = text.billing;

export const billingPalette: PaletteSource = {
  actions: TABS.filter((tab) => tab !== 'now').map((tab) => ({
    id: `billing-${tab}`,
    label: `${title}: ${tabs[tab]}`,
    icon: CreditCardIcon,
    open: { to: '/billing', search: { tab } },
  })),
};
