/** The SSH keys that the account keeps by name, for new machines. */
import { PlusIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { SshKey } from '../../../../sdk/index.ts';
import { Loaded } from '../../parts/page.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { text } from '../../texts/text.ts';
import { sshKeysQuery } from '../machines/queries.ts';
import { AddKey, RemoveKey } from '../machines/saved-keys.tsx';

const words = machineText.keys;

export function SshKeys() {
  const keys = useQuery(sshKeysQuery);
  const [isAdding, setAdding] = useState(false);
  return (
    <Stack component="section" gap="xs" aria-labelledby="ssh-keys">
      <Group justify="space-between">
        <Title order={2} id="ssh-keys">
          {words.title}
        </Title>
        <Button variant="default" leftSection={<PlusIcon width={16} />} onClick={() => setAdding(true)}>
          {words.add}
        </Button>
      </Group>
      <Loaded query={keys}>
        {(all) =>
          all.length === 0 ? (
            <Text c="dimmed">{words.none}</Text>
          ) : (
            <DataTable columns={COLUMNS} rows={all} keyOf={({ name }) => name} />
          )
        }
      </Loaded>
      {isAdding && <AddKey onClose={() => setAdding(false)} />}
    </Stack>
  );
}

const COLUMNS: readonly Column<SshKey>[] = [
  { name: words.name, cell: ({ name }) => name },
  { name: words.fingerprint, isMono: true, cell: ({ fingerprint }) => fingerprint },
  { name: words.created, cell: ({ created_at: at }) => <When at={at} /> },
  { name: text.account.actions, isActions: true, cell: ({ name }) => <Remove name={name} /> },
];

function Remove({ name }: { name: string }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={words.removeOne(name)}
        onClick={() => setAsking(true)}
      >
        {words.removeShort}
      </Button>
      {isAsking && <RemoveKey name={name} onClose={() => setAsking(false)} />}
    </>
  );
}
