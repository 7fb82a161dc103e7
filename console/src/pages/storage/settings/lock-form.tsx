/** Object lock: state and default retention. */
import { Button, Group, NumberInput, Select, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { BucketLock } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Choices } from '../../../parts/forms/choices.tsx';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { Warning } from '../../../parts/forms/warning.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { bucketQuery, bucketsQuery, settingsQuery } from '../queries.ts';
import { SettingForm, type SettingProps, useSettingForm } from './setting-form.tsx';

const words = s3Text.lock;
const MODES = ['none', 'GOVERNANCE', 'COMPLIANCE'] as const;
const UNITS = ['days', 'years'] as const;

type Mode = (typeof MODES)[number];

export function LockForm({ bucket, value }: SettingProps<'lock'>) {
  return value === null ? <EnableLock bucket={bucket} /> : <DefaultForm bucket={bucket} lock={value} />;
}

function EnableLock({ bucket }: { bucket: string }) {
  const [isAsked, setAsked] = useState(false);
  const { data } = useQuery(bucketQuery(bucket));
  const enable = useMutation({
    mutationFn: () => cloud.changeBucketSettings(bucket, { lock: { default: null } }),
    meta: { shown: true, invalidates: [settingsQuery(bucket), bucketsQuery] },
    onSuccess: () => {
      setAsked(false);
      showDone(words.enabled(bucket));
    },
  });
  const isVersioned = data?.versioning === true;
  return (
    <Stack align="flex-start">
      <Text>{words.isOff}</Text>
      {data !== undefined && !isVersioned && <Text size="sm">{words.needsVersions}</Text>}
      <Button variant="default" disabled={!isVersioned} onClick={() => setAsked(true)}>
        {words.enable}
      </Button>
      <Confirm
        isOpen={isAsked}
        title={words.enableAsk(bucket)}
        action={words.enable}
        isBusy={enable.isPending}
        error={enable.error}
        onConfirm={() => enable.mutate()}
        onClose={() => setAsked(false)}
      >
        {words.enableLead}
      </Confirm>
    </Stack>
  );
}

function DefaultForm({ bucket, lock }: { bucket: string; lock: BucketLock }) {
  const { default: present } = lock;
  const form = useSettingForm({
    bucket,
    values: {
      mode: (present?.mode ?? 'none') as Mode,
      time: present?.years ?? present?.days ?? 30,
      unit: present?.years === undefined ? 'days' : 'years',
    },
    changeOf: (values) => ({ lock: lockOf(values) }),
    saved: words.saved,
  });
  const { values } = form;
  return (
    <SettingForm form={form}>
      <Text>{words.isOn}</Text>
      <Choices
        label={words.mode}
        value={values.mode}
        options={MODES.map((value) => {
          const { title, lead } = words.modes[value];
          return { value, title, notes: [lead] };
        })}
        onChange={(mode) => form.set({ mode: mode as Mode })}
      />
      {values.mode !== 'none' && (
        <Group align="flex-end" gap="xs">
          <NumberInput
            label={words.time}
            min={1}
            allowDecimal={false}
            allowNegative={false}
            w={140}
            value={values.time}
            onChange={(time) => form.set({ time: Number(time) })}
          />
          <Select
            aria-label={words.unit}
            data={UNITS.map((value) => ({ value, label: words[value] }))}
            allowDeselect={false}
            w={120}
            {...form.of('unit')}
          />
        </Group>
      )}
      {values.mode === 'COMPLIANCE' && <Warning title={words.compliance} />}
    </SettingForm>
  );
}

interface Values {
  readonly mode: Mode;
  readonly time: number;
  readonly unit: string;
}

function lockOf({ mode, time, unit }: Values): BucketLock {
  return { default: mode === 'none' ? null : { mode, [unit]: time } };
}
