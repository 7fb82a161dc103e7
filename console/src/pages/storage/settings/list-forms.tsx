/** Object ownership and the access control list of a bucket. */
import { Group, Select, TextInput } from '@mantine/core';
import type { BucketGrant } from '../../../../../sdk/index.ts';
import { Choices } from '../../../parts/forms/choices.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { type SettingProps, SettingSection, useSettingForm } from './setting-form.tsx';
import { RuleFrame, rowsOf, rulesOf, SettingRows } from './setting-rows.tsx';

const words = s3Text.lists;
const OWNERSHIPS = ['ObjectWriter', 'BucketOwnerPreferred', 'BucketOwnerEnforced'] as const;
const PERMISSIONS = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'] as const;
const GRANTEES = ['account', 'all', 'authenticated', 'logs'] as const;

type Ownership = (typeof OWNERSHIPS)[number];

export function OwnershipForm({ bucket, value }: SettingProps<'ownership'>) {
  const form = useSettingForm({
    bucket,
    values: { ownership: value ?? 'ObjectWriter' },
    changeOf: (values) => values,
    saved: words.ownershipSaved,
  });
  return (
    <SettingSection id="ownership" title={words.ownership} lead={words.ownershipLead} form={form}>
      <Choices
        label={words.ownership}
        value={form.values.ownership}
        options={OWNERSHIPS.map((value) => {
          const [title = '', lead = ''] = words.ownerships[value];
          return { value, title, notes: [lead] };
        })}
        onChange={(value) => form.set({ ownership: value as Ownership })}
      />
    </SettingSection>
  );
}

export function ListForm({ bucket, value }: SettingProps<'acl'>) {
  const form = useSettingForm({
    bucket,
    values: { rows: rowsOf<BucketGrant>(value ?? []) },
    changeOf: ({ rows }) => ({ acl: rulesOf(rows) }),
    saved: words.saved,
  });
  return (
    <SettingSection id="list" title={words.title} lead={words.lead} form={form}>
      <SettingRows
        rows={form.values.rows}
        words={words}
        newRule={{ account: '', permission: 'READ' }}
        onChange={(next) => form.set({ rows: next })}
      >
        {(editor) => <GrantRow {...editor} />}
      </SettingRows>
    </SettingSection>
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
