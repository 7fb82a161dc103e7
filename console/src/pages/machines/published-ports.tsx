/** The published ports of a machine. */
import { PlusIcon } from '@heroicons/react/24/outline';
import { Button, Group, NumberInput, SegmentedControl, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { PublishedPort, Vm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CopyIcon } from '../../parts/commands/copy.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { StateBadge } from '../../parts/tables/state-badge.tsx';
import { text } from '../../texts/text.ts';
import { vmPortsQuery } from './queries.ts';

const words = text.machines.published;

export function PublishedPorts({ vm }: { vm: Vm }) {
  const ports = useQuery(vmPortsQuery(vm));
  const [isAdding, setAdding] = useState(false);
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed">
        {words.lead}
      </Text>
      <Loaded query={ports}>{(rows) => <Rows vm={vm} rows={rows} />}</Loaded>
      <Group>
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<PlusIcon width={16} aria-hidden />}
          onClick={() => setAdding(true)}
        >
          {words.add}
        </Button>
      </Group>
      {isAdding && <NewPort vm={vm} onClose={() => setAdding(false)} />}
    </Stack>
  );
}

function Rows({ vm, rows }: { vm: Vm; rows: readonly PublishedPort[] }) {
  const columns: readonly Column<PublishedPort>[] = [
    {
      name: words.address,
      isMono: true,
      cell: ({ address }) => (
        <Group gap={4} wrap="nowrap">
          {address.startsWith('http') ? (
            <a href={address} target="_blank" rel="noreferrer">
              {address}
            </a>
          ) : (
            address
          )}
          {address.endsWith(':') ? null : <CopyIcon value={address} label={words.copy(address)} />}
        </Group>
      ),
    },
    { name: text.machines.leadsTo, isMono: true, cell: ({ port }) => port },
    {
      name: text.machines.state,
      cell: ({ open, reason }) => (
        <div>
          <StateBadge
            tone={open ? 'good' : 'quiet'}
            word={open ? text.machines.open : text.machines.closed}
          />{' '}
          <Text span size="sm" c="dimmed">
            {reason}
          </Text>
        </div>
      ),
    },
    { name: words.remove, isActions: true, cell: (port) => <Remove vm={vm} port={port} /> },
  ];
  if (rows.length === 0) return null;
  return <DataTable columns={columns} rows={rows} keyOf={({ port_id }) => port_id} />;
}

function Remove({ vm, port: { port_id, address } }: { vm: Vm; port: PublishedPort }) {
  const remove = useMutation({
    mutationFn: () => cloud.unpublishVmPort(vm.vm_id, port_id),
    meta: { invalidates: [vmPortsQuery(vm)] },
    onSuccess: () => showDone(words.removed(address)),
  });
  return (
    <Button
      size="compact-sm"
      variant="default"
      aria-label={words.removeOne(address)}
      loading={remove.isPending}
      onClick={() => remove.mutate()}
    >
      {words.remove}
    </Button>
  );
}

const WEB_PORT = 80;

function NewPort({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const form = useCloudForm({
    values: { kind: 'port', port: WEB_PORT, public_port: null as number | null, hostname: vm.name },
    send: ({ kind, port, public_port, hostname }) => {
      const where = kind === 'name' ? { hostname } : public_port === null ? {} : { public_port };
      return cloud.publishVmPort(vm.vm_id, { port, ...where });
    },
    invalidates: [vmPortsQuery(vm)],
    onDone: ({ address }) => {
      showDone(words.added(address));
      onClose();
    },
  });
  const { values, set, errorOf } = form;
  const numberOf = (value: number | string) => (typeof value === 'number' ? value : null);
  return (
    <FormModal isOpen title={words.add} action={words.action} form={form} onClose={onClose}>
      <SegmentedControl
        fullWidth
        aria-label={words.kind}
        value={values.kind}
        onChange={(kind) => set({ kind })}
        data={[
          { value: 'port', label: words.onPort },
          { value: 'name', label: words.onName },
        ]}
      />
      <NumberInput
        label={words.guestPort}
        min={1}
        max={65_535}
        allowDecimal={false}
        value={values.port}
        error={errorOf('port')}
        onChange={(value) => set({ port: numberOf(value) ?? 0 })}
      />
      {values.kind === 'port' ? (
        <NumberInput
          label={words.publicPort}
          description={words.publicPortLead}
          min={1}
          max={65_535}
          allowDecimal={false}
          value={values.public_port ?? ''}
          error={errorOf('public_port')}
          onChange={(value) => set({ public_port: numberOf(value) })}
        />
      ) : (
        <TextInput label={words.hostname} description={words.hostnameLead} {...form.text('hostname')} />
      )}
    </FormModal>
  );
}
