/** `/machines` is the list, `/machines/new` the form, `/machines/vm-1?tab=console` a machine. */

import { CommandLineIcon, PlayIcon, PlusIcon, ServerIcon } from '@heroicons/react/24/outline';
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import type { Vm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { finder, firstOf, type PaletteEntry, type PaletteSource } from '../../palette/entries.ts';
import { showDone, showRefusal } from '../../parts/notices.tsx';
import { listSearch } from '../../parts/tables/list-view.ts';
import { queryClient, readAhead, statusQuery } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { text } from '../../texts/text.ts';
import { imagesQuery, MACHINE_TABS, type MachineTab, typesQuery, vmQuery, vmsQuery } from './queries.ts';

const SPANS = ['hour', 'day', 'month'] as const;

interface MachineSearch {
  readonly tab?: MachineTab;
  /** Time span of the charts. */
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
    validateSearch: listSearch,
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, vmsQuery);
    },
    component: lazyRouteComponent(() => import('./list/machines-page.tsx'), 'MachinesPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/machines/new',
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, imagesQuery);
      readAhead(queryClient, typesQuery);
      readAhead(queryClient, statusQuery);
    },
    component: lazyRouteComponent(() => import('./new-machine-page.tsx'), 'NewMachinePage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/machines/$vm',
    validateSearch: machineSearch,
    loader: ({ context: { queryClient }, params: { vm } }) => {
      readAhead(queryClient, vmQuery(vm));
      readAhead(queryClient, imagesQuery);
    },
    component: lazyRouteComponent(() => import('./machine-page.tsx'), 'MachinePage'),
  }),
] as const;

const FOUND_MAX = 8;
const OFF: readonly Vm['state'][] = ['created', 'stopped', 'error'];
const { machines } = text;

export const machinesPalette: PaletteSource = {
  actions: [{ id: 'create-machine', label: machines.create, icon: PlusIcon, open: { to: '/machines/new' } }],
  find: async (words) => {
    const all = await queryClient.fetchQuery(vmsQuery);
    const isMeant = finder(words);
    const named = firstOf(all, FOUND_MAX, (vm) =>
      isMeant(`${vm.name} ${vm.tags}`) ? pageOf(vm) : undefined,
    );
    const done = firstOf(all, FOUND_MAX - named.length, (vm) => {
      const entry = actionOf(vm);
      return isMeant(entry.label) ? entry : undefined;
    });
    return [...named, ...done];
  },
};

function pageOf({ vm_id: id, name, state }: Vm): PaletteEntry {
  const note = `${machines.machine} · ${machines.states[state]}`;
  return { id, label: name, note, icon: ServerIcon, open: { to: '/machines/$vm', params: { vm: id } } };
}

/** The likeliest action: start it, or open its console. */
function actionOf({ vm_id: vm, name, state }: Vm): PaletteEntry {
  if (OFF.includes(state)) {
    const open = () => start(vm, name);
    return { id: `start-${vm}`, label: machines.startOne(name), icon: PlayIcon, open };
  }
  return {
    id: `console-${vm}`,
    label: machines.consoleOf(name),
    icon: CommandLineIcon,
    open: { to: '/machines/$vm', params: { vm }, search: { tab: 'console' } },
  };
}

const start = (id: string, name: string) =>
  cloud
    .startVm(id)
    .then(() => showDone(machines.started(name)))
    .catch(showRefusal)
    .finally(() => queryClient.invalidateQueries({ queryKey: vmsQuery.queryKey }));
