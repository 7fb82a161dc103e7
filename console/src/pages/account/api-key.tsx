/** The account's main key: show, copy, and replace with an overlap. */

import { Button, Code, Group, Select, Stack, Text, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { CopyIcon } from '../../parts/commands/copy.tsx';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { givePassword } from '../../parts/forms/password-question.ts';
import { showDone } from '../../parts/notices.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';

const OVERLAPS = [
  { value: '0', label: text.account.noOverlap },
  { value: '3600', label: text.account.hour },
  { value: '86400', label: text.account.day },
  { value: '604800', label: text.account.week },
];

/** null: no password was given. The cloud omits the key if the password was given too long ago. */
async function readKey(): Promise<string | null> {
  const { api_key: key } = await cloud.getAccount();
  if (key !== null) return key;
  return (await givePassword()) ? (await cloud.getAccount()).api_key : null;
}

export function ApiKey() {
  const [isAsked, setAsked] = useState(false);
  const [overlap, setOverlap] = useState('86400');
  const reveal = useMutation({ mutationFn: readKey });
  const body = { overlap_seconds: Number(overlap) };
  const rotate = useMutation({
    mutationFn: () => cloud.rotateApiKey(body),
    meta: { shown: true, invalidates: [accountQuery] },
    onSuccess: () => {
      if (isShown) reveal.mutate();
      setAsked(false);
      showDone(text.account.rotated);
    },
  });
  const key = reveal.data ?? '';
  const isShown = key !== '';
  return (
    <Stack component="section" gap="xs" aria-labelledby="api-key">
      <Title order={2} id="api-key">
        {text.account.apiKey}
      </Title>
      <Text c="dimmed">{text.account.apiKeyLead}</Text>
      <Group gap="xs">
        <Code fz="sm">{isShown ? key : '•'.repeat(28)}</Code>
        {isShown && <CopyIcon value={key} label={text.account.copyKey} />}
        <Button
          size="compact-sm"
          variant="default"
          loading={reveal.isPending}
          onClick={() => (isShown ? reveal.reset() : reveal.mutate())}
        >
          {isShown ? text.account.hide : text.account.show}
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => setAsked(true)}>
          {text.account.rotate}
        </Button>
      </Group>
      <Confirm
        isOpen={isAsked}
        title={text.account.rotate}
        action={text.account.rotate}
        isBusy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate()}
        onClose={() => setAsked(false)}
      >
        <Stack gap="sm">
          {text.account.rotateLead}
          <Select
            label={text.account.overlap}
            data={OVERLAPS}
            value={overlap}
            allowDeselect={false}
            onChange={(value) => setOverlap(value ?? overlap)}
          />
          <CallSample operation="rotateApiKey" args={[body]} />
        </Stack>
      </Confirm>
    </Stack>
  );
}
