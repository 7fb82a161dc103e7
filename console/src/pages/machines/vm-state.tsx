/** A machine's state as a word with a colour; why, on hover and in full beside it. */
import { Badge } from '@mantine/core';
import type { Vm } from '../../../../sdk/index.ts';
import { text } from '../../texts/text.ts';

const COLORS: Readonly<Record<Vm['state'], string>> = {
  created: 'gray',
  starting: 'yellow',
  running: 'petrol',
  stopping: 'yellow',
  stopped: 'gray',
  error: 'red',
  deleting: 'gray',
};

export function VmState({ vm }: { vm: Vm }) {
  const isBooting = vm.state === 'running' && vm.ready_at === null;
  return (
    <Badge
      variant="light"
      color={isBooting ? 'yellow' : COLORS[vm.state]}
      title={vm.state_reason?.message ?? ''}
    >
      {isBooting ? text.machines.booting : text.machines.states[vm.state]}
    </Badge>
  );
}
