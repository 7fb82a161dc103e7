/** The account's encryption keys, named by S3 clients: create, disable, enable, delete. */
import { KeyIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Badge, Button, Code, Group, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { EncryptionKey } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Confirm, FormModal } from '../../../parts/forms/dialog.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { Empty, Loaded, Page } from '../../../parts/page.tsx';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { AnchorLink } from '../../../parts/tables/links.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { encryptionKeysQuery } from '../queries.ts';

const words = s3Text.encryptionKeys;

const COLUMNS: readonly Column<EncryptionKey>[] = [
  { name: s3Text.name, cell: ({ id }) => <Code style={{ overflowWrap: 'anywhere' }}>{id}</Code> },
  {
    name: words.state,
    cell: ({ disabled_at: at }) => (
      <Badge variant="light" color={at === null ? 'green' : 'gray'}>
        {at === null ? words.enabled : words.disabled}
      </Badge>
    ),
  },
  { name: words.created, cell: ({ created_at: at }) => <When at={at} /> },
  {
    name: s3Text.actions,
    isActions: true,
    cell: (key) => (
      <Group gap="xs" justify="flex-end" wrap="nowrap">
        {key.disabled_at === null ? <Ask encryptionKey={key} deed="disable" /> : <Enable id={key.id} />}
        <Ask encryptionKey={key} deed="remove" />
      </Group>
    ),
  },
];

export function EncryptionKeysPage() {
  const [isOpen, setOpen] = useState(false);
  const keys = useQuery(encryptionKeysQuery);
  const createButton = (
    <Button leftSection={<PlusIcon width={18} />} onClick={() => setOpen(true)}>
      {words.create}
    </Button>
  );
  return (
    <Page
      title={words.title}
      trail={<AnchorLink to="/storage/s3">{s3Text.title}</AnchorLink>}
      lead={words.lead}
      actions={createButton}
    >
      <Loaded query={keys}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon={KeyIcon} title={words.none} action={createButton}>
              {words.noneLead}
            </Empty>
          ) : (
            <DataTable columns={COLUMNS} rows={all} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      <NewKeyForm isOpen={isOpen} onClose={() => setOpen(false)} />
    </Page>
  );
}

function NewKeyForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const form = useCloudForm({
    values: { id: '' },
    send: (key) => cloud.createEncryptionKey(key),
    invalidates: [encryptionKeysQuery],
    onDone: ({ id }) => {
      form.set({ id: '' });
      onClose();
      showDone(words.made(id));
    },
  });
  return (
    <FormModal isOpen={isOpen} title={words.create} action={words.create} form={form} onClose={onClose}>
      <TextInput
        data-autofocus
        label={s3Text.name}
        description={words.nameHint}
        required
        withAsterisk={false}
        spellCheck={false}
        autoCapitalize="none"
        {...form.text('id')}
      />
      <CallSample operation="createEncryptionKey" args={[form.values]} />
    </FormModal>
  );
}

function Enable({ id }: { id: string }) {
  const enable = useMutation({
    mutationFn: () => cloud.changeEncryptionKey(id, { enabled: true }),
    meta: { invalidates: [encryptionKeysQuery] },
    onSuccess: () => showDone(words.enabledNow(id)),
  });
  return (
    <Button
      size="compact-sm"
      variant="default"
      aria-label={words.enableOne(id)}
      loading={enable.isPending}
      onClick={() => enable.mutate()}
    >
      {words.enable}
    </Button>
  );
}

const DEEDS = {
  disable: (id: string) => cloud.changeEncryptionKey(id, { enabled: false }),
  remove: (id: string) => cloud.deleteEncryptionKey(id),
} as const;

/** A button that asks for confirmation. */
function Ask({ encryptionKey: { id }, deed }: { encryptionKey: EncryptionKey; deed: keyof typeof DEEDS }) {
  const [isAsked, setAsked] = useState(false);
  const said = words[deed];
  const change = useMutation({
    mutationFn: () => DEEDS[deed](id),
    meta: { shown: true, invalidates: [encryptionKeysQuery] },
    onSuccess: () => {
      setAsked(false);
      showDone(said.done(id));
    },
  });
  return (
    <>
      <Button size="compact-sm" variant="default" aria-label={said.one(id)} onClick={() => setAsked(true)}>
        {said.action}
      </Button>
      <Confirm
        isOpen={isAsked}
        title={said.ask(id)}
        action={said.action}
        typed={deed === 'remove' ? id : undefined}
        isBusy={change.isPending}
        error={change.error}
        onConfirm={() => change.mutate()}
        onClose={() => setAsked(false)}
      >
        {said.lead}
      </Confirm>
    </>
  );
}
