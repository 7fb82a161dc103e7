/** The form of one bucket setting, which is saved as a whole. */
import { Button, Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import type { BucketSettings, BucketSettingsChange } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Refused, Warning } from '../../../parts/forms/warning.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { changedSettings } from '../queries.ts';

/** Props of the form of a setting. */
export interface SettingProps<N extends keyof BucketSettings> {
  readonly bucket: string;
  /** The stored value; null: not set. */
  readonly value: BucketSettings[N];
}

interface SettingFormOptions<Values> {
  readonly bucket: string;
  /** The stored values. */
  readonly values: Values;
  readonly changeOf: (values: Values) => BucketSettingsChange;
  /** The notice after saving. */
  readonly saved: (bucket: string) => string;
}

export function useSettingForm<Values extends object>(options: SettingFormOptions<Values>) {
  const { bucket, values, changeOf, saved } = options;
  const form = useCloudForm({
    values,
    send: (sent) => cloud.changeBucketSettings(bucket, changeOf(sent)),
    invalidates: changedSettings(bucket),
    onDone: () => showDone(saved(bucket)),
  });
  const change = changeOf(form.values);
  const isSame = JSON.stringify(change) === JSON.stringify(changeOf(values));
  return { ...form, bucket, change, isSame };
}

interface SettingFormProps {
  readonly form: Pick<
    ReturnType<typeof useSettingForm>,
    'bucket' | 'change' | 'isSame' | 'errorOf' | 'isBusy' | 'refusal' | 'submit'
  >;
  /** A field is invalid, so the form cannot be saved. */
  readonly isWrong?: boolean;
  readonly children: ReactNode;
}

export function SettingForm({ form, isWrong = false, children }: SettingFormProps) {
  const wrong = Object.keys(form.change)
    .map(form.errorOf)
    .find((message) => message !== undefined);
  return (
    <form onSubmit={form.submit}>
      <Stack>
        {children}
        {wrong !== undefined && <Warning isError role="alert" title={wrong} />}
        <Refused {...form.refusal} />
        <Group>
          <Button type="submit" loading={form.isBusy} disabled={isWrong}>
            {s3Text.save}
          </Button>
          {!form.isSame && (
            <Text size="sm" c="dimmed">
              {s3Text.unsaved}
            </Text>
          )}
        </Group>
        <CallSample operation="changeBucketSettings" args={[form.bucket, form.change]} />
      </Stack>
    </form>
  );
}

interface SettingSectionProps {
  /** Id of the title in the page. */
  readonly id: string;
  readonly title: string;
  readonly lead: string;
  readonly form: SettingFormProps['form'];
  readonly children: ReactNode;
}

/** A form with its own title, on a page of several. */
export function SettingSection({ id, title, lead, form, children }: SettingSectionProps) {
  return (
    <Stack component="section" gap="xs" aria-labelledby={id}>
      <Title order={2} id={id}>
        {title}
      </Title>
      <Text c="dimmed">{lead}</Text>
      <SettingForm form={form}>{children}</SettingForm>
    </Stack>
  );
}
