/** Access keys with limited rights. */

import { PlusIcon } from '@heroicons/react/24/outline';
import { Badge, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { AccessKey } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { ManyDialog } from '../../parts/many/many-dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { RightsDialog } from '../../parts/rights.tsx';
import type { Column } from '../../parts/tables/data-table.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import type { ListView } from '../../parts/tables/list-view.ts';
import { When } from '../../parts/tables/when.tsx';
import { listsText } from '../../texts/lists-text.ts';
import { text } from '../../texts/text.ts';
import { NewAccessKeyForm } from './new-access-key-form.tsx';
import { accessKeysQuery, keyRightsQuery } from './queries.ts';

const words = listsText.keys;
const COLUMNS: readonly Column<AccessKey>[] = [
  { name: text.account.keyName, id: 'name', value: ({ name }) => name, cell: ({ name }) => name },
  {
    name: text.account.scopes,
    id: 'scopes',
    value: ({ scopes }) => scopes.join(' '),
    cell: (key) => <Rights accessKey={key} />,
  },
  {
    name: text.account.lastUsed,
    id: 'used',
    value: ({ last_used_at: at }) => at,
    cell: ({ last_used_at: at }) => <When at={at} />,
  },
  {
    name: text.account.ends,
    id: 'ends',
    value: ({ expires_at: at }) => at,
    cell: ({ expires_at: at }) => <When at={at} />,
  },
  { name: text.account.actions, isActions: true, cell: (key) => <KeyActions accessKey={key} /> },
];

export function AccessKeys() {
  const { create, ...view } = useSearch({ from: '/shell/account' });
  const navigate = useNavigate({ from: '/account' });
  const setOpen = (isOpen: boolean) =>
    void navigate({
      search: isOpen ? { ...view, create: 'key' } : view,
      replace: true,
      resetScroll: false,
    });
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
            <KeyList keys={all} view={view} />
          )
        }
      </Loaded>
      <NewAccessKeyForm isOpen={create === 'key'} onClose={() => setOpen(false)} />
    </Stack>
  );
}

function KeyList({ keys, view }: { keys: readonly AccessKey[]; view: ListView }) {
  const navigate = useNavigate({ from: '/account' });
  const [revoked, setRevoked] = useState<readonly AccessKey[]>();
  return (
    <>
      <ListTable
        columns={COLUMNS}
        rows={keys}
        keyOf={({ id }) => id}
        nameOf={({ name }) => name}
        textOf={({ name, scopes, buckets }) =>
          [name, ...scopes, ...(buckets ?? []).map((one) => `${one.name}/${one.prefix}`)].join(' ')
        }
        view={view}
        onView={(search) => navigate({ search, replace: true, resetScroll: false })}
        many={{
          say: words.say,
          actions: (selected) => (
            <Button size="compact-sm" variant="default" onClick={() => setRevoked(selected)}>
              {words.button}
            </Button>
          ),
          onDelete: setRevoked,
        }}
      />
      {revoked !== undefined && (
        <ManyDialog
          title={words.title(revoked.length)}
          lead={words.lead}
          action={words.action(revoked.length)}
          label={text.account.accessKeys}
          items={revoked}
          keyOf={({ id }) => id}
          nameOf={({ name }) => name}
          send={({ id }) => cloud.deleteAccessKey(id)}
          queryKey={accessKeysQuery.queryKey}
          isDangerous
          onClose={() => setRevoked(undefined)}
        />
      )}
    </>
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
