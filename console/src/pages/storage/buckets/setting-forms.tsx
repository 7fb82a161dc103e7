/** The form of each setting of a bucket, and its tab. A setting of the API that has none is a type error. */
import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ComponentType } from 'react';
import type { BucketSettings } from '../../../../../sdk/index.ts';
import { Loaded } from '../../../parts/page.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { type BucketTab, settingsQuery } from '../queries.ts';
import { CorsForm } from './cors-form.tsx';
import { DataEventsForm } from './data-events-form.tsx';
import { LifecycleForm } from './lifecycle-form.tsx';
import { ListForm, OwnershipForm } from './list-forms.tsx';
import { LockForm } from './lock-form.tsx';
import { BlockForm } from './permissions-tab.tsx';
import { PolicyForm } from './policy-form.tsx';
import type { SettingProps } from './setting-form.tsx';
import { TagsForm } from './tags-form.tsx';

type Name = keyof BucketSettings;

/** In the order of the tab. */
const FORMS: { readonly [N in Name]: readonly [tab: BucketTab, form: ComponentType<SettingProps<N>>] } = {
  public_access: ['permissions', BlockForm],
  policy: ['permissions', PolicyForm],
  ownership: ['permissions', OwnershipForm],
  acl: ['permissions', ListForm],
  data_events: ['permissions', DataEventsForm],
  lifecycle: ['lifecycle', LifecycleForm],
  lock: ['lock', LockForm],
  cors: ['cors', CorsForm],
  tags: ['tags', TagsForm],
};
const LEADS: { readonly [T in BucketTab]?: string } = {
  lifecycle: s3Text.lifecycle.lead,
  lock: s3Text.lock.lead,
  cors: s3Text.cors.lead,
  tags: s3Text.tags.lead,
};

export function SettingForms({ tab, bucket }: { tab: BucketTab; bucket: string }) {
  const settings = useQuery(settingsQuery(bucket));
  const lead = LEADS[tab];
  const names = (Object.keys(FORMS) as Name[]).filter((name) => FORMS[name][0] === tab);
  return (
    <Stack maw={760}>
      {lead !== undefined && <Text c="dimmed">{lead}</Text>}
      <Loaded query={settings}>
        {(values) => (
          <Stack gap={36}>
            {names.map((name) => {
              const Form = FORMS[name][1] as ComponentType<SettingProps<Name>>;
              return <Form key={name} bucket={bucket} value={values[name]} />;
            })}
          </Stack>
        )}
      </Loaded>
    </Stack>
  );
}
