/** The machines: their state as it is now, where they are, and what they cost. */

import { PlusIcon, ServerIcon } from '@heroicons/react/24/outline';
import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Vm } from '../../../../sdk/index.ts';
import { CopyIcon } from '../../parts/copy.tsx';
import { AnchorLink, ButtonLink } from '../../parts/links.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { sayHourly } from '../../parts/say.ts';
import { VmState } from '../../parts/state-badge.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { MachineMenu } from './machine-menu.tsx';
import { vmsQuery } from './queries.ts';

const words = text.machines;

export function MachinesPage() {
  const machines = useQuery(vmsQuery);
  const create = (
    <ButtonLink to="/machines/new" leftSection={<PlusIcon width={18} />}>
      {words.create}
    </ButtonLink>
  );
  return (
    <Page title={words.title} lead={words.lead} actions={create}>
      <Loaded query={machines}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon={ServerIcon} title={words.none} action={create}>
              {words.noneLead}
            </Empty>
          ) : (
            <MachineTable machines={all} />
          )
        }
      </Loaded>
    </Page>
  );
}

function MachineTable({ machines }: { machines: readonly Vm[] }) {
  return (
    <Table verticalSpacing="sm" highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{words.name}</Table.Th>
          <Table.Th>{words.state}</Table.Th>
          <Table.Th visibleFrom="sm">{words.size}</Table.Th>
          <Table.Th visibleFrom="sm">{words.address}</Table.Th>
          <Table.Th>{words.price}</Table.Th>
          <Table.Th visibleFrom="sm">{words.created}</Table.Th>
          <Table.Th aria-label={words.actions} />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {machines.map((vm) => (
          <MachineRow key={vm.vm_id} vm={vm} />
        ))}
      </Table.Tbody>
    </Table>
  );
}

function MachineRow({ vm }: { vm: Vm }) {
  return (
    <Table.Tr>
      <Table.Td>
        <AnchorLink to="/machines/$vm" params={{ vm: vm.vm_id }} fw={550}>
          {vm.name}
        </AnchorLink>
      </Table.Td>
      <Table.Td>
        <VmState vm={vm} />
      </Table.Td>
      <Table.Td visibleFrom="sm">{vm.instance_type}</Table.Td>
      <Table.Td className="mono" visibleFrom="sm">
        {vm.ip_address}
        {vm.ip_address !== null && <CopyIcon value={vm.ip_address} label={words.copyAddress(vm.name)} />}
      </Table.Td>
      <Table.Td>
        <Text size="sm" c={vm.state === 'running' ? '' : 'dimmed'}>
          {sayHourly(vm.total_price_per_hour)}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <When at={vm.created_at} />
      </Table.Td>
      <Table.Td ta="right">
        <MachineMenu vm={vm} />
      </Table.Td>
    </Table.Tr>
  );
}
