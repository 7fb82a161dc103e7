/** Starting, stopping, restarting and deleting a machine, with optimistic state. */
import { type QueryClient, useMutation, useQueryClient } from '@tanstack/react-query';
import type { Vm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';
import { vmQuery, vmsQuery } from './queries.ts';

/** Shows a state immediately; the next read corrects it. */
function showState(queryClient: QueryClient, id: string, state: Vm['state']): void {
  queryClient.setQueryData(vmQuery(id).queryKey, (vm) => vm && { ...vm, state });
  queryClient.setQueryData(vmsQuery.queryKey, (all) =>
    all?.map((vm) => (vm.vm_id === id ? { ...vm, state } : vm)),
  );
}

/** True when it can be started. */
export const isOff = ({ state }: Vm): boolean =>
  state === 'stopped' || state === 'created' || state === 'error';

/** False when it has to be stopped before it is deleted, as one that never started has to be. */
export const isDeletable = ({ state }: Pick<Vm, 'state'>): boolean =>
  state === 'stopped' || state === 'deleting';

/** Mutation key of a machine's starts: its page shows why the last one was refused. */
export const startKey = (id: string) => ['vms', 'start', id];

/** Starts a machine whose page is about to be shown. Resolves when that is done or refused. */
export async function startUnseen(queryClient: QueryClient, id: string): Promise<void> {
  const start = queryClient.defaultMutationOptions({
    mutationKey: startKey(id),
    mutationFn: () => cloud.startVm(id),
    meta: { shown: true, invalidates: [vmsQuery] },
  });
  await queryClient
    .getMutationCache()
    .build(queryClient, start)
    .execute(undefined)
    .catch(() => undefined);
}

/** `isOwnPage`: on the machine's page, which shows refused starts itself. */
export function usePower(vm: Vm, isOwnPage = false) {
  const { vm_id: id, name } = vm;
  const queryClient = useQueryClient();
  const shown = { meta: { shown: true, invalidates: [vmsQuery] } };
  const start = useMutation({
    mutationKey: startKey(id),
    mutationFn: () => cloud.startVm(id),
    meta: { shown: isOwnPage, invalidates: [vmsQuery] },
    onMutate: () => showState(queryClient, id, 'starting'),
  });
  const stop = useMutation({
    mutationFn: ({ force }: { force: boolean }) => cloud.stopVm(id, force ? { force } : {}),
    onMutate: () => showState(queryClient, id, 'stopping'),
    onSuccess: () => showDone(text.machines.stopped(name)),
    ...shown,
  });
  const restart = useMutation({
    mutationFn: async () => {
      await cloud.stopVm(id);
      return cloud.startVm(id);
    },
    onMutate: () => showState(queryClient, id, 'stopping'),
    ...shown,
  });
  const remove = useMutation({
    mutationFn: async () => {
      if (!isDeletable(vm)) await cloud.stopVm(id, { force: true });
      return cloud.deleteVm(id);
    },
    onSuccess: () => showDone(text.machines.deleted(name)),
    ...shown,
  });
  return { start, stop, restart, remove };
}
