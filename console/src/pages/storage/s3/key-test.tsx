/** Tests a key at the S3 endpoint and shows the result of each step. */
import { CheckCircleIcon, XCircleIcon } from '@heroicons/react/24/outline';
import { Button, Code, Group, Select, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AccessKeyTestResult, AccessKeyTestStep } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Refused, Warning } from '../../../parts/forms/warning.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { bucketsQuery } from '../queries.ts';

const words = s3Text;

interface KeyTestProps {
  readonly id: string;
  /** The buckets that the key is limited to; null: all. */
  readonly buckets: readonly string[] | null;
}

export function KeyTest({ id, buckets }: KeyTestProps) {
  const { data: all = [] } = useQuery({ ...bucketsQuery, enabled: buckets === null });
  const [bucket, setBucket] = useState<string | null>(null);
  const names = buckets === null ? all.map(({ name }) => name) : [...new Set(buckets)];
  const chosen = bucket ?? names[0];
  const test = useMutation({
    mutationFn: () => cloud.testAccessKey(id, chosen === undefined ? {} : { bucket: chosen }),
    meta: { shown: true },
  });
  return (
    <Stack>
      <Text size="sm">{words.testLead}</Text>
      <Group align="flex-end">
        {names.length > 0 && (
          <Select
            label={words.bucket}
            data={names}
            value={chosen ?? null}
            allowDeselect={false}
            searchable={names.length > 8}
            onChange={setBucket}
            style={{ flex: 1 }}
          />
        )}
        <Button data-autofocus loading={test.isPending} onClick={() => test.mutate()}>
          {words.test}
        </Button>
      </Group>
      <Refused error={test.error} />
      <div aria-live="polite">{test.data !== undefined && <Result result={test.data} />}</div>
    </Stack>
  );
}

function Result({ result: { ok, steps } }: { result: AccessKeyTestResult }) {
  return (
    <Stack gap="sm">
      {ok ? <Text fw={600}>{words.works}</Text> : <Warning isError title={words.fails} />}
      <Stack component="ul" gap="xs" m={0} p={0} style={{ listStyle: 'none' }}>
        {steps.map((step) => (
          <Step key={step.step} step={step} />
        ))}
      </Stack>
    </Stack>
  );
}

function Step({ step: { step, ok, code, message } }: { step: AccessKeyTestStep }) {
  const Icon = ok ? CheckCircleIcon : XCircleIcon;
  return (
    <Group component="li" gap="xs" wrap="nowrap" align="flex-start">
      <Icon
        width={20}
        style={{ flex: 'none' }}
        color={ok ? 'var(--accent-text)' : 'var(--wrong)'}
        aria-label={ok ? words.passed : words.failed}
      />
      <div>
        <Text size="sm" fw={550}>
          {words.steps[step]} {code !== null && !ok && <Code>{code}</Code>}
        </Text>
        <Text size="sm" c="dimmed">
          {message}
        </Text>
      </div>
    </Group>
  );
}
