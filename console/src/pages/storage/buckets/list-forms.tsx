/** Who owns what others upload to a bucket, and its access control list. */
import { Group, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import type { BucketGrant, BucketSettings } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { Choices } from '../../../parts/forms/choices.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { settingsQuery } from '../queries.ts';
import { SettingForm } from './setting-form.tsx';
import { RuleFrame, rowsOf, rulesOf, SettingRows } from './setting-rows.tsx';

const words = s3Text.lists;
const OWNERSHIPS = ['ObjectWriter', 'BucketOwnerPreferred', 'BucketOwnerEnforced'] as const;
const PERMISSIONS = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'] as const;
const GRANTEES = ['account', 'all', 'authenticated', 'logs'] as const;

type Ownership = (typeof OWNERSHIPS)[number];

const changed = (bucket: string) => [settingsQuery(bucket), { queryKey: ['buckets', bucket, 'access'] }];

export function OwnershipForm({ bucket, ownership }: { bucket: string } & Pick<BucketSettings, 'ownership'>) {
  const present: Ownership = ownership ?? 'ObjectWriter';
  const form = useCloudForm({
    values: { ownership: present },
    send: (values) => cloud.changeBucketSettings(bucket, values),
    invalidates: changed(bucket),
    onDone: () => showDone(words.ownershipSaved(bucket)),
  });
  const { values } = form;
  return (
    <Stack component="section" gap="xs" aria-labelledby="ownership">
      <Title order={2} id="ownership">
        {words.ownership}
      </Title>
      <Text c="dimmed">{words.ownershipLead}</Text>
      <SettingForm bucket={bucket} form={form} change={values} isSame={values.ownership === present}>
        <Choices
          label={words.ownership}
          value={values.ownership}
          options={OWNERSHIPS.map((value) => {
            const [title = '', lead = ''] = words.ownerships[value];
            return { value, title, notes: [lead] };
          })}
          onChange={(value) => form.set({ ownership: value as Ownership })}
        />
      </SettingForm>
    </Stack>
  );
}

export function ListForm({ bucket, acl }: { bucket: string } & Pick<BucketSettings, 'acl'>) {
  const form = useCloudForm({
    values: { rows: rowsOf<BucketGrant>(acl ?? []) },
    send: ({ rows }) => cloud.changeBucketSettings(bucket, { acl: rulesOf(rows) }),
    invalidates: changed(bucket),
    onDone: () => showDone(words.saved(bucket)),
  });
  const { rows } = form.values;
  const grants = rulesOf(rows);
  return (
    <Stack component="section" gap="xs" aria-labelledby="list">
      <Title order={2} id="list">
        {words.title}
      </Title>
      <Text c="dimmed">{words.lead}</Text>
      <SettingForm
        bucket={bucket}
        form={form}
        change={{ acl: grants }}
        isSame={JSON.stringify(grants) === JSON.stringify(acl)}
      >
        <SettingRows
          rows={rows}
          words={words}
          newRule={{ account: '', permission: 'READ' }}
          onChange={(next) => form.set({ rows: next })}
        >
          {(editor) => <GrantRow {...editor} />}
        </SettingRows>
      </SettingForm>
    </Stack>
  );
}

interface GrantRowProps {
  readonly rule: BucketGrant;
  readonly number: number;
  readonly onChange: (grant: BucketGrant) => void;
  readonly onRemove: () => void;
}

function GrantRow({ rule, number, onChange, onRemove }: GrantRowProps) {
  const { group, account = '', account_name: name, permission } = rule;
  return (
    <RuleFrame title={words.rule(number)} remove={words.remove(number)} onRemove={onRemove}>
      <Group align="flex-start" gap="sm">
        <Select
          label={words.who}
          data={GRANTEES.map((value) => ({ value, label: words.grantees[value] }))}
          allowDeselect={false}
          value={group ?? 'account'}
          onChange={(value) => onChange(granteeOf(value ?? 'account', permission))}
        />
        <Select
          label={words.may}
          data={PERMISSIONS.map((value) => ({ value, label: words.permissions[value] }))}
          allowDeselect={false}
          value={permission}
          onChange={(value) => onChange({ ...rule, permission: value ?? permission })}
        />
      </Group>
      {group === undefined && (
        <TextInput
          label={words.account}
          description={name ?? words.accountHint}
          required
          withAsterisk={false}
          spellCheck={false}
          autoCapitalize="none"
          value={account}
          onChange={({ currentTarget }) => onChange({ account: currentTarget.value, permission })}
        />
      )}
    </RuleFrame>
  );
}

function granteeOf(value: string, permission: BucketGrant['permission']): BucketGrant {
  const group = GRANTEES.find((each) => each === value);
  return group === undefined || group === 'account' ? { account: '', permission } : { group, permission };
}
