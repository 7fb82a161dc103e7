/** The form of one setting of a bucket, which is saved as a whole. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { BucketSettings, BucketSettingsChange } from '../../../../../sdk/index.ts';
import type { SentForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Refused, Warning } from '../../../parts/forms/warning.tsx';
import { Loaded } from '../../../parts/page.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { settingsQuery } from '../queries.ts';

interface SettingsOfProps {
  readonly bucket: string;
  readonly lead?: string;
  /** The form, of the settings as they were read. */
  readonly children: (settings: BucketSettings) => ReactNode;
}

export function SettingsOf({ bucket, lead, children }: SettingsOfProps) {
  const settings = useQuery(settingsQuery(bucket));
  return (
    <Stack maw={760}>
      {lead !== undefined && <Text c="dimmed">{lead}</Text>}
      <Loaded query={settings}>{children}</Loaded>
    </Stack>
  );
}

interface SettingFormProps {
  readonly bucket: string;
  readonly form: SentForm & { readonly errorOf: (name: string) => string | undefined };
  readonly change: BucketSettingsChange;
  /** Nothing was changed. */
  readonly isSame: boolean;
  /** A field is invalid, so the form cannot be saved. */
  readonly isWrong?: boolean;
  readonly children: ReactNode;
}

export function SettingForm(props: SettingFormProps) {
  const { bucket, form, change, isSame, isWrong = false, children } = props;
  const wrong = Object.keys(change)
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
          {!isSame && (
            <Text size="sm" c="dimmed">
              {s3Text.unsaved}
            </Text>
          )}
        </Group>
        <CallSample operation="changeBucketSettings" args={[bucket, change]} />
      </Stack>
    </form>
  );
}
