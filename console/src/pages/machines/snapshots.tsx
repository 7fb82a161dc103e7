/** Snapshots of a machine: create, restore, delete. */
import { CameraIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Vm, VmSnapshot } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Confirm, FormModal } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { vmQuery, vmSnapshotsQuery, vmsQuery } from './queries.ts';

const words = machineText.snapshots;

interface Asked {
  readonly action: 'restore' | 'remove';
  readonly snapshot: VmSnapshot;
}

export function Snapshots({ vm }: { vm: Vm }) {
  const snapshots = useQuery(vmSnapshotsQuery(vm.vm_id));
  const [isMaking, setMaking] = useState(false);
  const [asked, setAsked] = useState<Asked | null>(null);
  const isOff = vm.state === 'stopped' || vm.state === 'created';
  const columns: readonly Column<VmSnapshot>[] = [
    { name: words.name, cell: ({ name, available }) => (available ? name : `${name} (${words.gone})`) },
    { name: words.size, isNumber: true, cell: ({ size }) => sayBytes(size) },
    { name: words.created, cell: ({ created_at }) => <When at={created_at} /> },
    {
      name: words.actions,
      cell: (snapshot) => (
        <Group gap="xs" wrap="nowrap">
          <Button
            size="compact-sm"
            variant="default"
            disabled={!isOff || !snapshot.available}
            aria-label={words.restoreOne(snapshot.name)}
            onClick={() => setAsked({ action: 'restore', snapshot })}
          >
            {words.restore}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            aria-label={words.removeOne(snapshot.name)}
            onClick={() => setAsked({ action: 'remove', snapshot })}
          >
            {words.remove}
          </Button>
        </Group>
      ),
    },
  ];
  return (
    <Stack>
      <Title order={2}>{words.title}</Title>
      <Text c="dimmed">{words.lead}</Text>
      <Loaded query={snapshots}>
        {(rows) =>
          rows.length > 0 && (
            <DataTable columns={columns} rows={rows} keyOf={({ snapshot_id }) => snapshot_id} />
          )
        }
      </Loaded>
      {!isOff && <Text size="sm">{words.stopFirst}</Text>}
      <Group>
        <Button
          variant="default"
          disabled={!isOff}
          leftSection={<CameraIcon width={18} />}
          onClick={() => setMaking(true)}
        >
          {words.make}
        </Button>
      </Group>
      {isMaking && <NewSnapshot vm={vm} onClose={() => setMaking(false)} />}
      {asked !== null && <Question vm={vm} {...asked} onClose={() => setAsked(null)} />}
    </Stack>
  );
}

const invalidated = ({ vm_id }: Vm) => [vmSnapshotsQuery(vm_id), vmQuery(vm_id), vmsQuery];

function NewSnapshot({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const form = useCloudForm({
    values: { name: '' },
    send: ({ name }) => cloud.createVmSnapshot(vm.vm_id, { name }, { takesLong: true }),
    invalidates: invalidated(vm),
    onDone: ({ name }) => {
      showDone(words.made(name));
      onClose();
    },
  });
  return (
    <FormModal
      isOpen
      title={words.makeOf(vm.name)}
      action={words.make}
      form={form}
      isIncomplete={form.values.name.trim() === ''}
      onClose={onClose}
    >
      <TextInput label={words.name} data-autofocus spellCheck={false} {...form.text('name')} />
    </FormModal>
  );
}

function Question({ vm, action, snapshot, onClose }: Asked & { vm: Vm; onClose: () => void }) {
  const { snapshot_id: id, name } = snapshot;
  const send = useMutation({
    mutationFn: async () => {
      if (action === 'remove') await cloud.deleteVmSnapshot(vm.vm_id, id);
      else await cloud.restoreVmSnapshot(vm.vm_id, id, { takesLong: true });
    },
    meta: { shown: true, invalidates: invalidated(vm) },
    onSuccess: () => {
      showDone(action === 'remove' ? words.removed(name) : words.restored(vm.name, name));
      onClose();
    },
  });
  return (
    <Confirm
      isOpen
      title={action === 'remove' ? words.removeAsk(name) : words.restoreAsk(vm.name, name)}
      action={action === 'remove' ? words.remove : words.restore}
      // The disk loses everything written since.
      typed={action === 'remove' ? undefined : vm.name}
      isBusy={send.isPending}
      error={send.error}
      onConfirm={() => send.mutate()}
      onClose={onClose}
    >
      {action === 'remove' ? words.removeLead : words.restoreLead}
    </Confirm>
  );
}
