/** The machines of all accounts, so that a harmful one can be stopped. */

import { Menu, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useMemo, useState } from 'react';
import type { AdminAccount, AdminVm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayHourly } from '../../parts/say.ts';
import type { Column } from '../../parts/tables/data-table.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import { RowMenu, type RowMenuState } from '../../parts/tables/row-menu.tsx';
import { VmState } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { isDeletable } from '../machines/power.ts';
import { accountsQuery, allVmsQuery } from './queries.ts';

const { administration, machines } = text;

function columnsFor(accounts: readonly AdminAccount[]) {
  const names = new Map(accounts.map(({ id, username }) => [id, username]));
  const ownerOf = ({ account_id: id }: AdminVm) => names.get(id) ?? String(id);
  const columns: readonly Column<AdminVm>[] = [
    { name: machines.name, id: 'name', value: ({ name }) => name, cell: (vm) => <Name vm={vm} /> },
    { name: administration.account, id: 'account', value: ownerOf, cell: ownerOf },
    {
      name: machines.state,
      id: 'state',
      value: ({ state }) => machines.states[state],
      cell: (vm) => <VmState vm={vm} />,
    },
    {
      name: machines.size,
      id: 'size',
      value: ({ instance_type: type }) => type,
      cell: ({ instance_type: type }) => type,
    },
    {
      name: machines.price,
      id: 'price',
      value: ({ total_price_per_hour: price }) => Number(price),
      cell: ({ total_price_per_hour: price }) => sayHourly(price),
    },
    {
      name: machines.created,
      id: 'created',
      value: ({ created_at: at }) => at,
      cell: ({ created_at: at }) => <When at={at} />,
    },
    { name: administration.actions, isActions: true, cell: (vm) => <VmMenu vm={vm} /> },
  ];
  return { columns, ownerOf };
}

export function AllMachines() {
  const vms = useQuery(allVmsQuery);
  const { data: accounts } = useQuery(accountsQuery);
  const { columns, ownerOf } = useMemo(() => columnsFor(accounts ?? []), [accounts]);
  const { tab: _, month: __, ...view } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  return (
    <Loaded query={vms}>
      {(all) =>
        all.length === 0 ? (
          <Text c="dimmed">{administration.noMachines}</Text>
        ) : (
          <ListTable
            columns={columns}
            rows={all}
            keyOf={({ vm_id: id }) => id}
            nameOf={({ name }) => name}
            textOf={(vm) => [vm.name, vm.vm_id, ownerOf(vm), vm.instance_type, vm.state].join(' ')}
            view={view}
            onView={(next) => navigate({ search: { tab: 'machines', ...next }, replace: true })}
          />
        )
      }
    </Loaded>
  );
}

function Name({ vm }: { vm: AdminVm }) {
  return (
    <>
      {vm.name}
      <Text className="mono" size="xs" c="dimmed">
        {vm.vm_id}
      </Text>
    </>
  );
}

function VmMenu({ vm }: { vm: AdminVm }) {
  return (
    <RowMenu label={administration.actionsOf(vm.name)}>
      {(menu, target) => <VmItems vm={vm} menu={menu} target={target} />}
    </RowMenu>
  );
}

interface VmItemsProps {
  readonly vm: AdminVm;
  readonly menu: RowMenuState;
  readonly target: ReactElement;
}

function VmItems({ vm, menu, target }: VmItemsProps) {
  const { vm_id: id, name, state } = vm;
  const isOn = state === 'running' || state === 'starting' || state === 'stopping';
  const [isAsking, setAsking] = useState(false);
  const stop = useMutation({
    mutationFn: () => cloud.adminStopVm(id),
    meta: { invalidates: [allVmsQuery] },
    onSuccess: () => showDone(machines.stopped(name)),
  });
  const remove = useMutation({
    mutationFn: async () => {
      if (!isDeletable(vm)) await cloud.adminStopVm(id, { force: true });
      return cloud.adminDeleteVm(id);
    },
    meta: { shown: true, invalidates: [allVmsQuery] },
    onSuccess: () => showDone(machines.deleted(name)),
  });
  return (
    <>
      <Menu position="bottom-end" {...menu}>
        <Menu.Target>{target}</Menu.Target>
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
        typed={name}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        {isOn && machines.deleteRunning} {machines.deleteLead(vm.disk_gb, vm.ip_address ?? '')}
      </Confirm>
    </>
  );
}
