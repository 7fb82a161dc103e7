/** `/machines` lists them, `/machines/new` makes one, `/machines/vm-1?tab=console` is one of them. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../../shell/base-routes.ts';
import { MACHINE_TABS, type MachineTab } from './tabs.ts';

const SPANS = ['hour', 'day', 'month'] as const;

interface MachineSearch {
  readonly tab?: MachineTab;
  /** For the charts. */
  readonly span?: (typeof SPANS)[number];
}

function machineSearch(search: Record<string, unknown>): MachineSearch {
  const tab = MACHINE_TABS.find((one) => one === search.tab);
  const span = SPANS.find((one) => one === search.span);
  return { ...(tab === undefined ? {} : { tab }), ...(span === undefined ? {} : { span }) };
}

export const machineRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/machines',
    component: lazyRouteComponent(() => import('./machines-page.tsx'), 'MachinesPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/machines/new',
    component: lazyRouteComponent(() => import('./new-machine-page.tsx'), 'NewMachinePage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/machines/$vm',
    validateSearch: machineSearch,
    component: lazyRouteComponent(() => import('./machine-page.tsx'), 'MachinePage'),
  }),
] as const;
