/** `/recovery?point=drp-1` shows the details of that point. */

import { LifebuoyIcon } from '@heroicons/react/24/outline';
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { cloud } from '../../cloud.ts';
import type { PaletteSource } from '../../palette/entries.ts';
import { showDone, showRefusal } from '../../parts/notices.tsx';
import { queryClient, readAhead, readsAllIn } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { text } from '../../texts/text.ts';
import { pointsQuery, RECOVERY, scheduleQuery, statusQuery } from './queries.ts';

interface RecoverySearch {
  readonly point?: string;
}

export const recoveryRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/recovery',
    validateSearch: ({ point }: Record<string, unknown>): RecoverySearch =>
      typeof point === 'string' ? { point } : {},
    loader: ({ context: { queryClient } }) => {
      if (!readsAllIn(queryClient)) return;
      readAhead(queryClient, pointsQuery);
      readAhead(queryClient, statusQuery);
      readAhead(queryClient, scheduleQuery);
    },
    component: lazyRouteComponent(() => import('./recovery-page.tsx'), 'RecoveryPage'),
  }),
] as const;

export const recoveryPalette: PaletteSource = {
  isForAdmins: true,
  actions: [{ id: 'take-point', label: text.recovery.create, icon: LifebuoyIcon, open: take }],
};

/** Not awaited: the list of points shows the progress. */
function take(): Promise<unknown> {
  return cloud
    .createRecoveryPoint({ wait: 0 })
    .then(() => showDone(text.recovery.taking))
    .catch(showRefusal)
    .finally(() => queryClient.invalidateQueries(RECOVERY));
}
