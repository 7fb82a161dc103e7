/** Starts, stops or deletes several machines, with the outcome of each. */
import type { Vm } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { ManyDialog } from '../../../parts/many/many-dialog.tsx';
import { machineText } from '../../../texts/machine-text.ts';
import { text } from '../../../texts/text.ts';
import { isDeletable, isOff } from '../power.ts';
import { vmsQuery } from '../queries.ts';

export const MACHINES_ACTIONS = ['start', 'stop', 'delete'] as const;
export type MachinesAction = (typeof MACHINES_ACTIONS)[number];

const words = machineText.many;

/** A machine that is already on or off is skipped. */
async function send(action: MachinesAction, vm: Vm): Promise<unknown> {
  if (action === 'start') return vm.state === 'running' ? vm : await cloud.startVm(vm.vm_id);
  if (action === 'stop') return isOff(vm) ? vm : await cloud.stopVm(vm.vm_id);
  if (!isDeletable(vm)) await cloud.stopVm(vm.vm_id, { force: true });
  return await cloud.deleteVm(vm.vm_id);
}

interface ManyMachinesProps {
  readonly action: MachinesAction;
  readonly machines: readonly Vm[];
  readonly onClose: () => void;
}

export function ManyMachines({ action, machines, onClose }: ManyMachinesProps) {
  return (
    <ManyDialog
      title={words.titles[action](machines.length)}
      lead={words.leads[action]}
      action={words.actions[action](machines.length)}
      label={text.machines.title}
      items={machines}
      keyOf={({ vm_id: id }) => id}
      nameOf={({ name }) => name}
      send={(vm) => send(action, vm)}
      queryKey={vmsQuery.queryKey}
      isDangerous={action === 'delete'}
      onClose={onClose}
    />
  );
}
