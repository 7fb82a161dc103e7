/** Access to a bucket: what its policy and lists come to, the public access block, the policy. */
import { Stack, Switch, Text, TextInput, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { BucketPublicAccess, BucketReach } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { Warning } from '../../../parts/forms/warning.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { Loaded } from '../../../parts/page.tsx';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { accessQuery, settingsQuery } from '../queries.ts';
import { ListForm, OwnershipForm } from './list-forms.tsx';
import { PolicyForm } from './policy-form.tsx';
import { SettingForm, SettingsOf } from './setting-form.tsx';

const words = s3Text.access;
const ASKED_AFTER_MS = 300;
const DEEDS = ['list', 'read', 'write', 'delete'] as const;
const SWITCHES = ['block_acls', 'ignore_acls', 'block_policy', 'restrict'] as const;
const NOT_BLOCKED: BucketPublicAccess = {
  block_acls: false,
  ignore_acls: false,
  block_policy: false,
  restrict: false,
};

export function PermissionsTab({ bucket }: { bucket: string }) {
  return (
    <Stack gap={36}>
      <WhoMay bucket={bucket} />
      <SettingsOf bucket={bucket}>
        {({ acl, ownership, policy, public_access: blocked }) => (
          <Stack gap={36}>
            <BlockForm bucket={bucket} blocked={blocked ?? NOT_BLOCKED} />
            <PolicyForm bucket={bucket} policy={policy} />
            <OwnershipForm bucket={bucket} ownership={ownership} />
            <ListForm bucket={bucket} acl={acl} />
          </Stack>
        )}
      </SettingsOf>
    </Stack>
  );
}

function WhoMay({ bucket }: { bucket: string }) {
  const [object, setObject] = useState('');
  const [asked] = useDebouncedValue(object, ASKED_AFTER_MS);
  const access = useQuery(accessQuery(bucket, asked));
  return (
    <Stack component="section" gap="xs" aria-labelledby="who-may" maw={760}>
      <Title order={2} id="who-may">
        {words.who}
      </Title>
      <Text c="dimmed">{words.whoLead}</Text>
      <TextInput
        label={words.object}
        description={words.objectHint}
        spellCheck={false}
        autoCapitalize="none"
        maw={420}
        value={object}
        onChange={({ currentTarget }) => setObject(currentTarget.value)}
      />
      <Loaded query={access}>
        {({ is_public, reach }) => (
          <>
            {is_public && <Warning title={words.isPublic} />}
            <DataTable
              columns={COLUMNS}
              rows={reach}
              keyOf={({ who, account }) => account ?? who}
              isBusy={access.isPlaceholderData}
            />
          </>
        )}
      </Loaded>
    </Stack>
  );
}

const COLUMNS: readonly Column<BucketReach>[] = [
  {
    name: words.caller,
    cell: ({ who, account, account_name: name }) =>
      who === 'account' ? <span title={account ?? ''}>{name ?? account}</span> : words[who],
  },
  ...DEEDS.map((deed) => ({
    name: words[deed],
    cell: (reach: BucketReach) => (
      <Text span size="sm" {...(reach[deed] === 'no' ? { c: 'dimmed' } : { fw: 600 })}>
        {words.answers[reach[deed]]}
      </Text>
    ),
  })),
];

function BlockForm({ bucket, blocked }: { bucket: string; blocked: BucketPublicAccess }) {
  const form = useCloudForm({
    values: { ...blocked },
    send: (values) => cloud.changeBucketSettings(bucket, { public_access: values }),
    invalidates: [settingsQuery(bucket), { queryKey: ['buckets', bucket, 'access'] }],
    onDone: () => showDone(words.blockSaved(bucket)),
  });
  const isSame = SWITCHES.every((name) => form.values[name] === blocked[name]);
  return (
    <Stack component="section" gap="xs" aria-labelledby="public-access">
      <Title order={2} id="public-access">
        {words.block}
      </Title>
      <Text c="dimmed">{words.blockLead}</Text>
      <SettingForm bucket={bucket} form={form} change={{ public_access: form.values }} isSame={isSame}>
        {SWITCHES.map((name) => {
          const [label = '', description = ''] = words.switches[name];
          return <Switch key={name} label={label} description={description} {...form.check(name)} />;
        })}
      </SettingForm>
    </Stack>
  );
}
