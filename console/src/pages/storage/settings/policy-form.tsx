/** The policy of a bucket, in the JSON of S3 clients. */
import { Button, Group, Stack, Text, Textarea, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { cloud } from '../../../cloud.ts';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { changedSettings } from '../queries.ts';
import { SettingForm, type SettingProps, useSettingForm } from './setting-form.tsx';

const words = s3Text.access;

type Policy = Readonly<Record<string, unknown>>;

const EXAMPLES = { openRead, oneAccount, onlyNetwork } as const;

export function PolicyForm({ bucket, value: policy }: SettingProps<'policy'>) {
  const [isAsked, setAsked] = useState(false);
  const form = useSettingForm({
    bucket,
    values: { policy: shown(policy) },
    changeOf: (values) => ({ policy: parsed(values.policy).policy }),
    saved: words.policySaved,
  });
  const remove = useMutation({
    mutationFn: () => cloud.changeBucketSettings(bucket, { policy: null }),
    meta: { shown: true, invalidates: changedSettings(bucket) },
    onSuccess: () => {
      setAsked(false);
      form.set({ policy: '' });
      showDone(words.policyRemoved(bucket));
    },
  });
  const { policy: written } = form.values;
  const { problem } = parsed(written);
  return (
    <Stack component="section" gap="xs" aria-labelledby="policy">
      <Title order={2} id="policy">
        {words.policy}
      </Title>
      <Text c="dimmed">{words.policyLead}</Text>
      <SettingForm form={form} isWrong={problem !== undefined}>
        <Group gap="xs">
          <Text size="sm">{words.examples}</Text>
          {Object.entries(EXAMPLES).map(([name, example]) => (
            <Button
              key={name}
              variant="default"
              size="compact-sm"
              onClick={() => form.set({ policy: shown(example(bucket)) })}
            >
              {words[name as keyof typeof EXAMPLES]}
            </Button>
          ))}
        </Group>
        <Textarea
          aria-label={words.policyText}
          autosize
          minRows={8}
          maxRows={30}
          spellCheck={false}
          autoCapitalize="none"
          classNames={{ input: 'mono' }}
          error={problem === undefined ? undefined : words.notJson(problem)}
          value={written}
          onChange={({ currentTarget }) => form.set({ policy: currentTarget.value })}
        />
      </SettingForm>
      {policy !== null && (
        <div>
          <Button variant="default" c="var(--wrong)" onClick={() => setAsked(true)}>
            {words.removePolicy}
          </Button>
        </div>
      )}
      <Confirm
        isOpen={isAsked}
        title={words.removePolicy}
        action={words.removePolicy}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsked(false)}
      >
        {words.removeLead}
      </Confirm>
    </Stack>
  );
}

function shown(policy: Policy | null): string {
  return policy === null ? '' : JSON.stringify(policy, null, 2);
}

/** An empty field means no policy. */
function parsed(written: string): { policy: Policy | null; problem?: string } {
  if (written.trim() === '') return { policy: null };
  try {
    const policy = JSON.parse(written) as unknown;
    if (typeof policy === 'object' && policy !== null) return { policy: policy as Policy };
    return { policy: null, problem: written.trim() };
  } catch (error) {
    return { policy: null, problem: error instanceof Error ? error.message : '' };
  }
}

function statement(more: Policy): Policy {
  return { Version: '2012-10-17', Statement: [more] };
}

const contentOf = (bucket: string) => `arn:aws:s3:::${bucket}/*`;

function openRead(bucket: string): Policy {
  const who = { Effect: 'Allow', Principal: '*' };
  return statement({ ...who, Action: 's3:GetObject', Resource: contentOf(bucket) });
}

function oneAccount(bucket: string): Policy {
  return statement({
    Effect: 'Allow',
    Principal: { AWS: words.accountId },
    Action: ['s3:ListBucket', 's3:GetObject', 's3:PutObject'],
    Resource: [`arn:aws:s3:::${bucket}`, contentOf(bucket)],
  });
}

function onlyNetwork(bucket: string): Policy {
  return statement({
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:*',
    Resource: [`arn:aws:s3:::${bucket}`, contentOf(bucket)],
    Condition: { NotIpAddress: { 'aws:SourceIp': '192.0.2.0/24' } },
  });
}
