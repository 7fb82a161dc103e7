/** Restores objects of the bucket from a recovery point, with a preview. */
import { Button, Group, List, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { BucketPoint, BucketRestore, NewBucketRestore, Operation } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { PointSelect, RecoveryPoints } from '../../../parts/forms/recovery-points.tsx';
import { Refused, Warning } from '../../../parts/forms/warning.tsx';
import { sayBytes, sayName } from '../../../parts/say.ts';
import { s3Text } from '../../../texts/s3-text.ts';
import { bucketPointsQuery, bucketsQuery } from '../queries.ts';

const words = s3Text.recovery;

export function RecoveryTab({ bucket }: { bucket: string }) {
  return (
    <RecoveryPoints query={useQuery(bucketPointsQuery(bucket))} words={words}>
      {(points) => <RestoreForm bucket={bucket} points={points} />}
    </RecoveryPoints>
  );
}

interface Wanted {
  readonly point_id: string;
  readonly prefix: string;
  readonly to_bucket: string;
  readonly replaces: boolean;
  readonly versions: boolean;
}

function RestoreForm({ bucket, points }: { bucket: string; points: readonly BucketPoint[] }) {
  const bodyOf = ({ point_id, prefix, to_bucket, replaces, versions }: Wanted): NewBucketRestore => ({
    point_id,
    ...(prefix !== '' && { prefix }),
    ...(to_bucket !== bucket && { to_bucket }),
    ...(replaces && !versions && { existing: 'replace' as const }),
    ...(versions && { versions }),
  });
  const [running, setRunning] = useState<Operation>();
  const send = (body: NewBucketRestore) =>
    cloud
      .restoreBucket(bucket, body, { takesLong: true, onOperation: setRunning })
      .finally(() => setRunning(undefined));
  const form = useCloudForm({
    values: {
      point_id: points[0]?.point_id ?? '',
      prefix: '',
      to_bucket: bucket,
      replaces: false,
      versions: false,
    },
    send: (values) => send(bodyOf(values)),
    invalidates: [bucketsQuery, { queryKey: ['files'] }],
    onDone: () => preview.reset(),
  });
  const preview = useMutation({
    mutationFn: (values: Wanted) => send({ ...bodyOf(values), preview: true }),
    meta: { shown: true },
  });
  const found = preview.data ?? form.made;
  return (
    <form onSubmit={form.submit}>
      <Stack maw={560}>
        <Text c="dimmed">{words.lead}</Text>
        <PointSelect points={points} words={words} {...form.text('point_id')} />
        <TextInput
          label={words.prefix}
          description={words.prefixHint}
          spellCheck={false}
          autoCapitalize="none"
          {...form.text('prefix')}
        />
        <TextInput
          label={words.to}
          description={words.toHint}
          required
          spellCheck={false}
          autoCapitalize="none"
          {...form.text('to_bucket')}
        />
        <Switch label={words.versions} description={words.versionsHint} {...form.check('versions')} />
        {!form.values.versions && (
          <Switch label={words.replace} description={words.replaceHint} {...form.check('replaces')} />
        )}
        <Group>
          <Button variant="default" loading={preview.isPending} onClick={() => preview.mutate(form.values)}>
            {words.preview}
          </Button>
          <Button type="submit" loading={form.isBusy}>
            {words.submit}
          </Button>
        </Group>
        {running?.progress != null && <Running operation={running} />}
        <Stack aria-live="polite" gap="xs">
          <Refused {...form.refusal} />
          <Refused error={preview.error} />
          {found !== undefined && <Counts of={found} />}
        </Stack>
        <CallSample operation="restoreBucket" args={[bucket, bodyOf(form.values)]} />
      </Stack>
    </form>
  );
}

function Running({ operation }: { operation: Operation }) {
  const { operation_id: id, progress } = operation;
  const cancel = useMutation({ mutationFn: () => cloud.cancelOperation(id), meta: { shown: true } });
  if (progress === null) return null;
  const { done, total, bytes } = progress;
  return (
    <Group>
      <Text size="sm">{words.progress(done, total, sayBytes(bytes))}</Text>
      <Button variant="default" size="xs" loading={cancel.isPending} onClick={() => cancel.mutate()}>
        {words.cancel}
      </Button>
      <Refused error={cancel.error} />
    </Group>
  );
}

function Counts({ of }: { of: BucketRestore }) {
  const { objects, preview, refusals, refusal, left_out } = of;
  const first = preview ? words.wouldRestore : words.restored;
  const others = (['markers', 'replaced', 'same', 'kept', 'refused'] as const).filter((name) => of[name] > 0);
  return (
    <>
      <Text size="sm">{first(objects, sayBytes(of.size))}</Text>
      {others.map((name) => (
        <Text key={name} size="sm">
          {words[name](of[name])}
        </Text>
      ))}
      {left_out.map(({ reason, count }) => (
        <Text key={reason} size="sm">
          {words.leftOut(count, reason)}
        </Text>
      ))}
      {refusals.length > 0 && (
        <List size="sm">
          {refusals.map(({ name, reason }) => (
            <List.Item key={name}>
              {sayName(name)}: {reason}
            </List.Item>
          ))}
        </List>
      )}
      {refusal !== null && <Warning title={words.refusal}>{refusal}</Warning>}
    </>
  );
}
