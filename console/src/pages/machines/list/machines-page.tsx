/** The list of machines: state, address and cost; some can be started, stopped or deleted at once. */

import { PlusIcon, ServerIcon } from '@heroicons/react/24/outline';
import { Button, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Vm } from '../../../../../sdk/index.ts';
import { CopyIcon } from '../../../parts/commands/copy.tsx';
import { Empty, Loaded, Page } from '../../../parts/page.tsx';
import { sayHourly } from '../../../parts/say.ts';
import type { Column } from '../../../parts/tables/data-table.tsx';
import { AnchorLink, ButtonLink } from '../../../parts/tables/links.tsx';
import { ListTable } from '../../../parts/tables/list-table.tsx';
import { VmState } from '../../../parts/tables/state-badge.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { machineText } from '../../../texts/machine-text.ts';
import { text } from '../../../texts/text.ts';
import { ChangeMachine, MachineMenu } from '../machine-menu.tsx';
import { vmsQuery } from '../queries.ts';
import { Tags } from '../tags.tsx';
import { MACHINES_ACTIONS, type MachinesAction, ManyMachines } from './many-machines.tsx';

const words = text.machines;

export function MachinesPage() {
  const machines = useQuery(vmsQuery);
  // Stays open when the last machine is gone.
  const [acting, setActing] = useState<Acting>();
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
            <MachineList machines={all} onAct={setActing} />
          )
        }
      </Loaded>
      {acting !== undefined && <ManyMachines {...acting} onClose={() => setActing(undefined)} />}
    </Page>
  );
}

const COLUMNS: readonly Column<Vm>[] = [
  {
    name: words.name,
    id: 'name',
    value: ({ name }) => name,
    cell: ({ vm_id: vm, name, tags }) => (
      <>
        <AnchorLink to="/machines/$vm" params={{ vm }} fw={550}>
          {name}
        </AnchorLink>
        {tags !== '' && <Tags tags={tags} />}
      </>
    ),
  },
  {
    name: words.state,
    id: 'state',
    value: ({ state }) => words.states[state],
    cell: (vm) => <VmState vm={vm} />,
  },
  {
    name: words.size,
    id: 'size',
    value: ({ vcpus, memory_mb }) => memory_mb + vcpus,
    cell: ({ instance_type: type }) => type,
  },
  {
    name: words.address,
    id: 'address',
    value: ({ ip_address: address }) => address,
    cell: (vm) => <Address vm={vm} />,
  },
  {
    name: words.price,
    id: 'price',
    value: ({ total_price_per_hour: price }) => Number(price),
    cell: (vm) => <Price vm={vm} />,
  },
  {
    name: words.created,
    id: 'created',
    value: ({ created_at: at }) => at,
    cell: ({ created_at: at }) => <When at={at} />,
  },
  { name: words.actions, isActions: true, cell: (vm) => <MachineMenu vm={vm} /> },
];

interface Acting {
  readonly action: MachinesAction;
  /** The machines at the time when the window opened. */
  readonly machines: readonly Vm[];
}

interface MachineListProps {
  readonly machines: readonly Vm[];
  readonly onAct: (acting: Acting) => void;
}

function MachineList({ machines, onAct }: MachineListProps) {
  const view = useSearch({ from: '/shell/machines' });
  const navigate = useNavigate({ from: '/machines' });
  const [renamed, setRenamed] = useState<Vm>();
  return (
    <>
      {renamed !== undefined && <ChangeMachine vm={renamed} onClose={() => setRenamed(undefined)} />}
      <ListTable
        columns={COLUMNS}
        rows={machines}
        keyOf={({ vm_id: id }) => id}
        nameOf={({ name }) => name}
        textOf={(vm) =>
          [vm.name, vm.vm_id, vm.tags, vm.ip_address, vm.instance_type, words.states[vm.state]].join(' ')
        }
        view={view}
        onView={(search) => navigate({ search, replace: true })}
        many={{
          say: machineText.many.machines,
          actions: (selected) =>
            MACHINES_ACTIONS.map((action) => (
              <Button
                key={action}
                size="compact-sm"
                variant="default"
                onClick={() => onAct({ action, machines: selected })}
              >
                {machineText.many.buttons[action]}
              </Button>
            )),
          onDelete: (selected) => onAct({ action: 'delete', machines: selected }),
          onRename: setRenamed,
        }}
      />
    </>
  );
}

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
