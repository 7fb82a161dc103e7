/** The list of machines: state, address and cost. */

import { PlusIcon, ServerIcon } from '@heroicons/react/24/outline';
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Vm } from '../../../../sdk/index.ts';
import { CopyIcon } from '../../parts/commands/copy.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { sayHourly } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { AnchorLink, ButtonLink } from '../../parts/tables/links.tsx';
import { VmState } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
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
            <DataTable columns={COLUMNS} rows={all} keyOf={({ vm_id: id }) => id} />
          )
        }
      </Loaded>
    </Page>
  );
}

const COLUMNS: readonly Column<Vm>[] = [
  {
    name: words.name,
    cell: ({ vm_id: vm, name }) => (
      <AnchorLink to="/machines/$vm" params={{ vm }} fw={550}>
        {name}
      </AnchorLink>
    ),
  },
  { name: words.state, cell: (vm) => <VmState vm={vm} /> },
  { name: words.size, cell: ({ instance_type: type }) => type },
  { name: words.address, cell: (vm) => <Address vm={vm} /> },
  { name: words.price, cell: (vm) => <Price vm={vm} /> },
  { name: words.created, cell: ({ created_at: at }) => <When at={at} /> },
  { name: words.actions, isActions: true, cell: (vm) => <MachineMenu vm={vm} /> },
];

function Address({ vm: { ip_address: address, name } }: { vm: Vm }) {
  if (address === null) return null;
  return (
    <span className="mono">
      {address}
      <CopyIcon value={address} label={words.copyAddress(name)} />
    </span>
  );
}

function Price({ vm: { state, total_price_per_hour: price } }: { vm: Vm }) {
  return (
    <Text size="sm" c={state === 'running' ? '' : 'dimmed'}>
      {sayHourly(price)}
    </Text>
  );
}
