/** Access to a bucket: the effect of its policy and ACL, and the public access block. */
import { Stack, Switch, Text, TextInput, Title } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { BucketPublicAccess, BucketReach } from '../../../../../sdk/index.ts';
import { Warning } from '../../../parts/forms/warning.tsx';
import { Loaded } from '../../../parts/page.tsx';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { accessQuery } from '../queries.ts';
import { type SettingProps, SettingSection, useSettingForm } from './setting-form.tsx';

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

export function WhoMay({ bucket }: { bucket: string }) {
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

export function BlockForm({ bucket, value }: SettingProps<'public_access'>) {
  const form = useSettingForm({
    bucket,
    values: value ?? NOT_BLOCKED,
    changeOf: (values) => ({ public_access: values }),
    saved: words.blockSaved,
  });
  return (
    <SettingSection id="public-access" title={words.block} lead={words.blockLead} form={form}>
      {SWITCHES.map((name) => {
        const [label = '', description = ''] = words.switches[name];
        return <Switch key={name} label={label} description={description} {...form.check(name)} />;
      })}
    </SettingSection>
  );
}
