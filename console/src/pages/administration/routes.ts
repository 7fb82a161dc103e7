/** `/administration?tab=accounts&find=ada`, `/administration?tab=revenue&month=2026-01`. */

import { Cog6ToothIcon, UserIcon } from '@heroicons/react/24/outline';
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { finder, firstOf, type PaletteSource } from '../../palette/entries.ts';
import { type ListView, listSearch } from '../../parts/tables/list-view.ts';
import { queryClient, readAhead, readsAllIn } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { text } from '../../texts/text.ts';
import { isMonth, thisMonth } from '../billing/queries.ts';
import {
  accountsQuery,
  adminStatusQuery,
  allVmsQuery,
  imagesQuery,
  invitationsQuery,
  nodesQuery,
  plansQuery,
  revenueQuery,
  setPricesQuery,
  TABS,
  type Tab,
} from './queries.ts';

/** The view is that of the accounts, or of the machines. */
interface AdministrationSearch extends ListView {
  /** Default: `status`. */
  readonly tab?: Tab;
  /** Month of the revenue, `YYYY-MM` in UTC; default: the current one. */
  readonly month?: string;
}

export const administrationRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/administration',
    validateSearch: ({ tab, month, ...view }: Record<string, unknown>): AdministrationSearch => ({
      ...listSearch(view),
      ...(TABS.includes(tab as Tab) && tab !== 'status' ? { tab: tab as Tab } : {}),
      ...(isMonth(month) ? { month } : {}),
    }),
    loaderDeps: ({ search: { tab = 'status', month = thisMonth() } }) => ({ tab, month }),
    loader: ({ context: { queryClient }, deps: { tab, month } }) => {
      if (!readsAllIn(queryClient)) return;
      readAhead(queryClient, nodesQuery);
      if (tab === 'status') readAhead(queryClient, adminStatusQuery);
      if (tab === 'accounts' || tab === 'machines') readAhead(queryClient, accountsQuery);
      if (tab === 'machines') readAhead(queryClient, allVmsQuery);
      if (tab === 'invitations') readAhead(queryClient, invitationsQuery);
      if (tab === 'plans' || tab === 'invitations') readAhead(queryClient, plansQuery);
      if (tab === 'prices') readAhead(queryClient, setPricesQuery);
      if (tab === 'revenue') readAhead(queryClient, revenueQuery(month));
      if (tab === 'images') readAhead(queryClient, imagesQuery);
    },
    component: lazyRouteComponent(() => import('./administration-page.tsx'), 'AdministrationPage'),
  }),
] as const;

const FOUND_MAX = 5;
const { title, tabs, account } = text.administration;

export const administrationPalette: PaletteSource = {
  isForAdmins: true,
  actions: TABS.filter((tab) => tab !== 'status' && tab !== 'nodes').map((tab) => ({
    id: `administration-${tab}`,
    label: `${title}: ${tabs[tab]}`,
    icon: Cog6ToothIcon,
    open: { to: '/administration', search: { tab } },
  })),
  find: async (words) => {
    const accounts = await queryClient.fetchQuery(accountsQuery);
    const isMeant = finder(words);
    const isFound = (one: AdminAccount) => isMeant(`${one.username} ${one.email}`);
    return firstOf(accounts, FOUND_MAX, (one) => (isFound(one) ? one : undefined)).map(
      ({ id, username, email }) => ({
        id: `account-${id}`,
        label: username,
        note: `${account} · ${email}`,
        icon: UserIcon,
        open: { to: '/administration', search: { tab: 'accounts', find: username } },
      }),
    );
  },
};
