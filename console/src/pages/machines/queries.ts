/** Queries of the machine pages. Keys begin with `vms`. */
import { queryOptions, replaceEqualDeep } from '@tanstack/react-query';
import type { Vm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { readList } from '../../parts/tables/read-list.ts';
import { watchEvery } from '../../queries.ts';

/** Tabs of a machine's page, in this order. */
export const MACHINE_TABS = ['overview', 'console', 'log', 'charts', 'recovery'] as const;
export type MachineTab = (typeof MACHINE_TABS)[number];

/** The tags of a machine, one by one. */
export const tagsOf = (tags: string): string[] => tags.split(',').flatMap((tag) => tag.trim() || []);

/** Seconds after the start in which a guest is expected to boot. */
const BOOT_MAX_SECONDS = 300;

/** True while the state changes without user action. */
function isMoving(vm: Vm): boolean {
  const { state, ssh_command, uptime_seconds } = vm;
  if (state === 'starting' || state === 'stopping' || state === 'deleting') return true;
  const isSoon = state === 'running' && uptime_seconds < BOOT_MAX_SECONDS;
  return isBooting(vm) || (isSoon && ssh_command === null);
}

/** The guest runs and has not answered yet, which it may never do. */
export const isBooting = ({ state, ready_at, uptime_seconds }: Vm): boolean =>
  state === 'running' && ready_at === null && uptime_seconds < BOOT_MAX_SECONDS;

/** States in which the guest may produce output. */
export const WITH_CONSOLE: readonly Vm['state'][] = ['starting', 'running', 'stopping'];

export const vmsQuery = queryOptions({
  queryKey: ['vms'],
  queryFn: ({ client, queryKey }) =>
    readList(cloud.listVms(), {
      former: client.getQueryData<Vm[]>(queryKey),
      keyOf: ({ vm_id: id }) => id,
      merge: replaceEqualDeep,
    }),
  structuralSharing: false,
  refetchInterval: ({ state }) => watchEvery(state.data?.some(isMoving) === true),
});

export const vmQuery = (id: string) =>
  queryOptions({
    queryKey: ['vms', id],
    queryFn: () => cloud.getVm(id),
    refetchInterval: ({ state }) => watchEvery(state.data !== undefined && isMoving(state.data)),
  });

/** Read again when the machine starts or stops. */
export const vmPortsQuery = ({ vm_id: id, state }: Vm) =>
  queryOptions({ queryKey: ['vms', id, 'ports', state], queryFn: () => cloud.listVmPorts(id) });

export const vmLogQuery = (id: string, bytes: number) =>
  queryOptions({ queryKey: ['vms', id, 'log', bytes], queryFn: () => cloud.getVmLog(id, { bytes }) });

export const vmPointsQuery = (id: string) =>
  queryOptions({ queryKey: ['vms', id, 'points'], queryFn: () => cloud.listVmPoints(id) });

export const vmSnapshotsQuery = (id: string) =>
  queryOptions({ queryKey: ['vms', id, 'snapshots'], queryFn: () => cloud.listVmSnapshots(id) });

export const sshKeysQuery = queryOptions({ queryKey: ['ssh-keys'], queryFn: () => cloud.listSshKeys() });

export const typesQuery = queryOptions({
  queryKey: ['instance-types'],
  queryFn: () => cloud.listInstanceTypes(),
});

export const imagesQuery = queryOptions({ queryKey: ['images'], queryFn: () => cloud.listImages() });
