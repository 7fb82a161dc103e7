/** `/account?create=key` has the form for a new access key open. */

import { KeyIcon } from '@heroicons/react/24/outline';
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import type { PaletteSource } from '../../palette/entries.ts';
import { type ListView, listSearch } from '../../parts/tables/list-view.ts';
import { readAhead } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { text } from '../../texts/text.ts';
import { accessKeysQuery, sessionsQuery } from './queries.ts';

interface AccountSearch extends ListView {
  readonly create?: 'key';
}

export const accountRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/account',
    validateSearch: ({ create, ...list }: Record<string, unknown>): AccountSearch => ({
      ...listSearch(list),
      ...(create === 'key' ? { create } : {}),
    }),
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, accessKeysQuery);
      readAhead(queryClient, sessionsQuery);
    },
    component: lazyRouteComponent(() => import('./account-page.tsx'), 'AccountPage'),
  }),
] as const;

export const accountPalette: PaletteSource = {
  actions: [
    {
      id: 'create-key',
      label: text.account.createKey,
      icon: KeyIcon,
      open: { to: '/account', search: { create: 'key' } },
    },
  ],
};
