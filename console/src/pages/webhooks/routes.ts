/** `/webhooks?log=whk-…&state=failed`: shows the deliveries of one webhook, all or in one state. */

import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { type ListView, listSearch } from '../../parts/tables/list-view.ts';
import { readAhead } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { STATES, webhooksQuery } from './queries.ts';

interface WebhooksSearch extends ListView {
  readonly log?: string;
  readonly state?: (typeof STATES)[number];
}

export const webhookRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/webhooks',
    validateSearch: ({ log, state, ...search }: Record<string, unknown>): WebhooksSearch => {
      const known = STATES.find((one) => one === state);
      const list = listSearch(search);
      if (typeof log !== 'string') return list;
      return known === undefined ? { ...list, log } : { ...list, log, state: known };
    },
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, webhooksQuery);
    },
    component: lazyRouteComponent(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
  }),
] as const;
