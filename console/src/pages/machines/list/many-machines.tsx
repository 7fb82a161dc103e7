/** Starts, stops or deletes several machines, with the outcome of each. */
import { Button, Group, Progress, Stack, Text, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { Vm } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { OutcomeList } from '../../../parts/tables/outcome-list.tsx';
import { useMany } from '../../../parts/tables/use-many.ts';
import { listsText as lists } from '../../../texts/lists-text.ts';
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
  const queries = useQueryClient();
  const [typed, setTyped] = useState('');
  const { outcomes, isBusy, done, failed, start, stop } = useMany({
    items: machines,
    keyOf: ({ vm_id: id }) => id,
    send: (vm) => send(action, vm),
    onEnd: () => queries.invalidateQueries({ queryKey: vmsQuery.queryKey }),
  });
  const isBegun = outcomes.size > 0;
  const close = () => {
    stop();
    onClose();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy) void start(undefined);
  };
  const mustType = action === 'delete' && !isBegun;
  return (
    <Dialog opened onClose={close} title={words.titles[action](machines.length)} size="lg">
      <form onSubmit={submit}>
        <Stack>
          <Text>{words.leads[action]}</Text>
          {mustType && (
            <TextInput
              label={words.typeCount(machines.length)}
              autoComplete="off"
              value={typed}
              onChange={({ currentTarget }) => setTyped(currentTarget.value)}
            />
          )}
          {isBegun && (
            <Progress value={(outcomes.size * 100) / machines.length} aria-label={lists.progress} />
          )}
          <Text size="sm" role="status">
            {isBegun ? lists.outcome(done, failed, machines.length) : ''}
          </Text>
          <OutcomeList
            label={text.machines.title}
            items={machines}
            keyOf={({ vm_id: id }) => id}
            nameOf={({ name }) => name}
            outcomes={outcomes}
          />
          <Group justify="flex-end">
            <Button variant="default" data-autofocus onClick={close}>
              {isBegun ? lists.close : text.shell.cancel}
            </Button>
            {done < machines.length && (
              <Button
                type="submit"
                loading={isBusy}
                color={action === 'delete' ? 'red.9' : 'petrol'}
                disabled={mustType && typed.trim() !== String(machines.length)}
              >
                {isBegun ? lists.again : words.actions[action](machines.length)}
              </Button>
            )}
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
