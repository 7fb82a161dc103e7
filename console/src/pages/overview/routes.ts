import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { readAhead, readsAllIn, statusQuery } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { accessKeysQuery } from '../account/queries.ts';
import { estimateQuery, reportQuery, thisMonth } from '../billing/queries.ts';
import { databasesQuery } from '../databases/queries/queries.ts';
import { vmsQuery } from '../machines/queries.ts';
import { pointsQuery } from '../recovery/queries.ts';
import { bucketsQuery } from '../storage/queries.ts';

export const overviewRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/',
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, bucketsQuery);
      readAhead(queryClient, vmsQuery);
      readAhead(queryClient, databasesQuery);
      readAhead(queryClient, accessKeysQuery);
      readAhead(queryClient, estimateQuery);
      readAhead(queryClient, reportQuery(thisMonth()));
      readAhead(queryClient, statusQuery);
      if (readsAllIn(queryClient)) readAhead(queryClient, pointsQuery);
    },
    component: lazyRouteComponent(() => import('./overview-page.tsx'), 'OverviewPage'),
  }),
] as const;
