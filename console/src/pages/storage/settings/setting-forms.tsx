/**
 * Each setting of a bucket: its section, its form and what it says when set. A setting without an entry is a
 * type error.
 */
import { Stack } from '@mantine/core';
import type { ComponentType } from 'react';
import type { BucketSettings } from '../../../../../sdk/index.ts';
import { s3Text } from '../../../texts/s3-text.ts';
import { BlockForm } from './access-forms.tsx';
import { CorsForm } from './cors-form.tsx';
import { DataEventsForm } from './data-events-form.tsx';
import { LifecycleForm } from './lifecycle-form.tsx';
import { ListForm, OwnershipForm } from './list-forms.tsx';
import { LockForm } from './lock-form.tsx';
import { PolicyForm } from './policy-form.tsx';
import type { SettingProps } from './setting-form.tsx';
import type { SettingsSection } from './setting-sections.ts';
import { TagsForm } from './tags-form.tsx';

type Name = keyof BucketSettings;

/** A setting without a value has no summary. */
type Entry<N extends Name> = readonly [
  section: SettingsSection,
  form: ComponentType<SettingProps<N>>,
  summary: (value: NonNullable<BucketSettings[N]>) => string,
];

const words = s3Text.settings.summaries;

/** Settings in the order of the section. */
const FORMS: { readonly [N in Name]: Entry<N> } = {
  public_access: ['access', BlockForm, (block) => (Object.values(block).includes(true) ? words.blocked : '')],
  policy: ['access', PolicyForm, () => words.policy],
  ownership: ['access', OwnershipForm, (owner) => (owner === 'BucketOwnerEnforced' ? words.owned : '')],
  acl: ['access', ListForm, (grants) => words.grants(grants.length)],
  lifecycle: ['lifecycle', LifecycleForm, (rules) => words.rules(rules.length, rules.filter(isOn).length)],
  lock: ['lock', LockForm, ({ default: lock }) => words.lock(lock?.mode, lock?.days, lock?.years)],
  cors: ['cors', CorsForm, (rules) => words.rules(rules.length, rules.length)],
  tags: ['tags', TagsForm, (tags) => words.tags(Object.keys(tags))],
  data_events: ['audit', DataEventsForm, (logged) => s3Text.dataEvents.options[logged][0] ?? ''],
};

const NAMES = Object.keys(FORMS) as Name[];

function isOn({ enabled }: { readonly enabled: boolean }): boolean {
  return enabled;
}

/** The settings of a section that are set, in a word or two each. */
export function summariesOf(section: SettingsSection, settings: BucketSettings): string[] {
  const summary = <N extends Name>(name: N): string => {
    const value = settings[name];
    return value === null ? '' : FORMS[name][2](value as NonNullable<BucketSettings[N]>);
  };
  return NAMES.filter((name) => FORMS[name][0] === section)
    .map((name) => summary(name))
    .filter((said) => said !== '');
}

interface SettingFormsProps {
  readonly section: SettingsSection;
  readonly bucket: string;
  readonly settings: BucketSettings;
}

export function SettingForms({ section, bucket, settings }: SettingFormsProps) {
  const names = NAMES.filter((name) => FORMS[name][0] === section);
  return (
    <Stack gap={36}>
      {names.map((name) => {
        const Form = FORMS[name][1] as ComponentType<SettingProps<Name>>;
        return <Form key={name} bucket={bucket} value={settings[name]} />;
      })}
    </Stack>
  );
}
