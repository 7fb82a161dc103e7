/** Access keys with limited rights. */

import { PlusIcon } from '@heroicons/react/24/outline';
import { Badge, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { AccessKey } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { RightsDialog } from '../../parts/rights.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { NewAccessKeyForm } from './new-access-key-form.tsx';
import { accessKeysQuery, keyRightsQuery } from './queries.ts';

const COLUMNS: readonly Column<AccessKey>[] = [
  { name: text.account.keyName, cell: ({ name }) => name },
  { name: text.account.scopes, cell: (key) => <Rights accessKey={key} /> },
  { name: text.account.lastUsed, cell: ({ last_used_at }) => <When at={last_used_at} /> },
  { name: text.account.ends, cell: ({ expires_at }) => <When at={expires_at} /> },
  { name: text.account.actions, isActions: true, cell: (key) => <KeyActions accessKey={key} /> },
];

export function AccessKeys() {
  const { create } = useSearch({ from: '/shell/account' });
  const navigate = useNavigate({ from: '/account' });
  const setOpen = (isOpen: boolean) =>
    void navigate({ search: isOpen ? { create: 'key' } : {}, replace: true, resetScroll: false });
  const keys = useQuery(accessKeysQuery);
  return (
    <Stack component="section" gap="xs" aria-labelledby="access-keys">
      <Group justify="space-between">
        <Title order={2} id="access-keys">
          {text.account.accessKeys}
        </Title>
        <Button variant="default" leftSection={<PlusIcon width={16} />} onClick={() => setOpen(true)}>
          {text.account.createKey}
        </Button>
      </Group>
      <Loaded query={keys}>
        {(all) =>
          all.length === 0 ? (
            <Text c="dimmed">{text.account.noKeys}</Text>
          ) : (
            <DataTable columns={COLUMNS} rows={all} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      <NewAccessKeyForm isOpen={create === 'key'} onClose={() => setOpen(false)} />
    </Stack>
  );
}

function Rights({ accessKey: { scopes, buckets } }: { accessKey: AccessKey }) {
  return (
    <Group gap={4}>
      {scopes.map((scope) => (
        <Badge key={scope} variant="light" color="gray">
          {scope}
        </Badge>
      ))}
      {buckets?.map(({ name, prefix }) => (
        <Badge key={`${name}/${prefix}`} variant="light">
          {name}/{prefix}
        </Badge>
      ))}
    </Group>
  );
}

/** The button that ends a key, and its question. */
function KeyActions({ accessKey }: { accessKey: AccessKey }) {
  const [isShown, setShown] = useState(false);
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap">
      <Button
        size="compact-sm"
        variant="subtle"
        aria-label={text.account.rights.showOf(accessKey.name)}
        onClick={() => setShown(true)}
      >
        {text.account.rights.short}
      </Button>
      <Revoke accessKey={accessKey} />
      {isShown && <KeyRights accessKey={accessKey} onClose={() => setShown(false)} />}
    </Group>
  );
}

function KeyRights({ accessKey: { id, name }, onClose }: { accessKey: AccessKey; onClose: () => void }) {
  const rights = useQuery(keyRightsQuery(id));
  return <RightsDialog title={text.account.rights.of(name)} rights={rights} onClose={onClose} />;
}

export function Revoke({ accessKey: { id, name } }: { accessKey: AccessKey }) {
  const [isAsked, setAsked] = useState(false);
  const revoke = useMutation({
    mutationFn: () => cloud.deleteAccessKey(id),
    meta: { shown: true, invalidates: [accessKeysQuery] },
    onSuccess: () => {
      setAsked(false);
      showDone(text.account.revoked(name));
    },
  });
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={text.account.revokeOne(name)}
        onClick={() => setAsked(true)}
      >
        {text.account.revoke}
      </Button>
      <Confirm
        isOpen={isAsked}
        title={text.account.revokeAsk(name)}
        action={text.account.revoke}
        isBusy={revoke.isPending}
        error={revoke.error}
        onConfirm={() => revoke.mutate()}
        onClose={() => setAsked(false)}
      >
        {text.account.revokeLead}
      </Confirm>
    </>
  );
}
