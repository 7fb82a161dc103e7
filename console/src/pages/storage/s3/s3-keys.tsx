/** The keys of S3 clients: their rights, and whether they work. */
import { Badge, Button, Code, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { AccessKey } from '../../../../../sdk/index.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { Revoke } from '../../account/access-keys.tsx';
import { KeyTest } from './key-test.tsx';

const words = s3Text;

const COLUMNS: readonly Column<AccessKey>[] = [
  {
    name: words.name,
    cell: ({ name, access_key_id: id }) => (
      <Stack gap={0} align="flex-start">
        <Text span fw={550}>
          {name}
        </Text>
        <Code style={{ overflowWrap: 'anywhere' }}>{id}</Code>
      </Stack>
    ),
  },
  {
    name: words.rights,
    cell: (key) => (
      <Badge variant="light" color="gray" title={key.scopes.join(', ')}>
        {rightsOf(key)}
      </Badge>
    ),
  },
  { name: words.bucket, cell: (key) => placesOf(key) },
  { name: words.lastUsed, cell: ({ last_used_at: at }) => <When at={at} /> },
  { name: words.expires, cell: ({ expires_at: at }) => <When at={at} /> },
  {
    name: words.actions,
    isActions: true,
    cell: (key) => (
      <Group gap="xs" justify="flex-end" wrap="nowrap">
        <Test accessKey={key} />
        <Revoke accessKey={key} />
      </Group>
    ),
  },
];

export function S3Keys({ keys }: { keys: readonly AccessKey[] }) {
  return <DataTable columns={COLUMNS} rows={keys} keyOf={({ id }) => id} />;
}

/** Rights of the presets by their scopes, sorted. */
const SETS: Readonly<Record<string, string>> = {
  '*': words.sets.full,
  'storage:*': words.sets.full,
  'storage:read': words.sets.read,
  'storage:append storage:read': words.sets.append,
  'storage:append': words.sets.append,
  'storage:read storage:write': words.sets.write,
};

function rightsOf({ scopes }: AccessKey): string {
  return SETS[scopes.toSorted().join(' ')] ?? words.sets.other;
}

function placesOf({ buckets }: AccessKey): string {
  if (buckets === null) return words.allBuckets;
  return buckets.map(({ name, prefix }) => (prefix === '' ? name : `${name}/${prefix}`)).join(', ');
}

function Test({ accessKey: { id, name, buckets } }: { accessKey: AccessKey }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={words.testOne(name)}
        onClick={() => setOpen(true)}
      >
        {words.test}
      </Button>
      <Dialog opened={isOpen} onClose={() => setOpen(false)} title={words.resultOf(name)}>
        <KeyTest id={id} buckets={buckets?.map((each) => each.name) ?? null} />
      </Dialog>
    </>
  );
}
