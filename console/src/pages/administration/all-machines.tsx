/** The machines of all accounts, so that one that does harm can be stopped. */

import { EllipsisHorizontalIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Menu, Table, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminVm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayHourly } from '../../parts/say.ts';
import { VmState } from '../../parts/state-badge.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { accountsQuery, allVmsQuery } from './queries.ts';

const { administration, machines } = text;

export function AllMachines() {
  const vms = useQuery(allVmsQuery);
  const { data: accounts = [] } = useQuery(accountsQuery);
  const names = new Map(accounts.map(({ id, username }) => [id, username]));
  return (
    <Loaded query={vms}>
      {(all) =>
        all.length === 0 ? (
          <Text c="dimmed">{administration.noMachines}</Text>
        ) : (
          <ListTable
            heads={[
              { name: machines.name },
              { name: administration.account },
              { name: machines.state },
              { name: machines.size },
              { name: machines.price },
              { name: machines.created },
              { name: administration.actions, isHidden: true },
            ]}
          >
            {all.map((vm) => (
              <Row key={vm.vm_id} vm={vm} account={names.get(vm.account_id) ?? String(vm.account_id)} />
            ))}
          </ListTable>
        )
      }
    </Loaded>
  );
}

function Row({ vm, account }: { vm: AdminVm; account: string }) {
  return (
    <Table.Tr>
      <Table.Td>
        {vm.name}
        <Text className="mono" size="xs" c="dimmed">
          {vm.vm_id}
        </Text>
      </Table.Td>
      <Table.Td>{account}</Table.Td>
      <Table.Td>
        <VmState vm={vm} />
      </Table.Td>
      <Table.Td>{vm.instance_type}</Table.Td>
      <Table.Td>{sayHourly(vm.total_price_per_hour)}</Table.Td>
      <Table.Td>
        <When at={vm.created_at} />
      </Table.Td>
      <Table.Td ta="right">
        <VmMenu vm={vm} />
      </Table.Td>
    </Table.Tr>
  );
}

function VmMenu({ vm }: { vm: AdminVm }) {
  const { vm_id: id, name, state } = vm;
  const mustStop = state === 'running' || state === 'starting' || state === 'stopping';
  const [isAsking, setAsking] = useState(false);
  const stop = useMutation({
    mutationFn: () => cloud.adminStopVm(id),
    meta: { invalidates: [allVmsQuery] },
    onSuccess: () => showDone(machines.stopped(name)),
  });
  const remove = useMutation({
    mutationFn: async () => {
      if (mustStop) await cloud.adminStopVm(id, { force: true });
      return cloud.adminDeleteVm(id);
    },
    meta: { shown: true, invalidates: [allVmsQuery] },
    onSuccess: () => showDone(machines.deleted(name)),
  });
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={administration.actionsOf(name)}>
            <EllipsisHorizontalIcon width={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item disabled={state !== 'running'} onClick={() => stop.mutate()}>
            {machines.stop}
          </Menu.Item>
          <Menu.Item color="red" onClick={() => setAsking(true)}>
            {machines.delete}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Confirm
        isOpen={isAsking}
        title={machines.deleteAsk(name)}
        action={machines.delete}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        {mustStop && machines.deleteRunning} {machines.deleteLead(vm.disk_gb, vm.ip_address ?? '')}
      </Confirm>
    </>
  );
}
