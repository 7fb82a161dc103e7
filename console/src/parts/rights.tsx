/** The rights of an account or a key: every operation of the API, with the error of refused ones. */
import { Badge, SegmentedControl, Stack, Text, TextInput } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import { useState } from 'react';
import type { OperationRight, Rights } from '../../../sdk/index.ts';
import { text } from '../texts/text.ts';
import { Dialog } from './forms/dialog.tsx';
import { Loaded } from './page.tsx';
import { type Column, DataTable } from './tables/data-table.tsx';

const words = text.account.rights;

interface RightsDialogProps {
  readonly title: string;
  readonly rights: UseQueryResult<Rights>;
  readonly onClose: () => void;
}

export function RightsDialog({ title, rights, onClose }: RightsDialogProps) {
  return (
    <Dialog opened onClose={onClose} title={title} size="xl">
      <Loaded query={rights}>{(shown) => <Operations rights={shown} />}</Loaded>
    </Dialog>
  );
}

const COLUMNS: readonly Column<OperationRight>[] = [
  { name: words.operation, cell: (right) => <Operation right={right} /> },
  {
    name: words.may,
    cell: ({ allowed, code }) => (
      <Badge variant="light" color={allowed ? 'petrol' : 'gray'} title={code ?? ''}>
        {allowed ? words.yes : words.no}
      </Badge>
    ),
  },
];

function Operation({ right: { summary, method, path } }: { right: OperationRight }) {
  return (
    <>
      {summary}
      <Text size="sm" c="dimmed">
        {method} {path}
      </Text>
    </>
  );
}

function Operations({ rights }: { rights: Rights }) {
  const { operations, refused, buckets } = rights;
  const [find, setFind] = useState('');
  const [which, setWhich] = useState<string>('all');
  const rows = operations.filter(({ summary, path, allowed }) => {
    const isMeant = which === 'all' || allowed === (which === 'yes');
    return isMeant && `${summary} ${path}`.toLowerCase().includes(find.toLowerCase());
  });
  const allowed = operations.filter((one) => one.allowed).length;
  return (
    <Stack>
      <Text size="sm">{refused === null ? words.count(allowed, operations.length) : words.refused}</Text>
      {buckets !== null && <Text size="sm">{words.buckets(buckets.map(({ name }) => name))}</Text>}
      <TextInput
        aria-label={words.find}
        placeholder={words.find}
        value={find}
        onChange={({ currentTarget }) => setFind(currentTarget.value)}
      />
      <SegmentedControl
        aria-label={words.which}
        value={which}
        onChange={setWhich}
        data={[
          { value: 'all', label: words.all },
          { value: 'yes', label: words.yes },
          { value: 'no', label: words.no },
        ]}
      />
      <DataTable columns={COLUMNS} rows={rows} keyOf={({ operation }) => operation} />
    </Stack>
  );
}
