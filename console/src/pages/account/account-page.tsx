/** The account: API keys, sessions, e-mail address and password. */

import { Button, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { TakeAlong } from '../../parts/take-along.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { AccessKeys } from './access-keys.tsx';
import { ApiKey } from './api-key.tsx';
import { OwnActivity } from './audit-log.tsx';
import { LoginForm } from './login-form.tsx';
import { AccountMail } from './mail.tsx';
import { Sessions } from './sessions.tsx';
import { SshKeys } from './ssh-keys.tsx';

export function AccountPage() {
  return (
    <Page title={text.account.title} lead={text.account.lead}>
      <Stack gap={40}>
        <ApiKey />
        <AccessKeys />
        <SshKeys />
        <Sessions />
        <LoginForm />
        <AccountMail />
        <OwnActivity />
        <TakeEverything />
        <CloseAccount />
      </Stack>
    </Page>
  );
}

function TakeEverything() {
  const { takeAlong } = text.account;
  return (
    <Stack component="section" gap="xs" align="flex-start" aria-labelledby="take-along">
      <Title order={2} id="take-along">
        {takeAlong.title}
      </Title>
      <Text c="dimmed" maw="62ch">
        {takeAlong.lead}
      </Text>
      <TakeAlong />
    </Stack>
  );
}

/** The permanent removal of the account. */
const words = text.account.close;

function CloseAccount() {
  const [isAsking, setAsking] = useState(false);
  const { data: account } = useQuery(accountQuery);
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const close = useMutation({
    mutationFn: () => cloud.closeAccount(),
    meta: { shown: true },
    onSuccess: async ({ closed_at, removed_at }) => {
      await navigate({ to: '/sign-in' });
      queryClient.clear();
      showDone(removed_at > closed_at ? words.opens(removed_at) : words.closed);
    },
  });
  return (
    <Stack component="section" gap="xs" align="flex-start" aria-labelledby="close">
      <Title order={2} id="close">
        {words.title}
      </Title>
      <Text c="dimmed" maw="62ch">
        {words.lead}
      </Text>
      <Button variant="default" c="var(--wrong)" onClick={() => setAsking(true)}>
        {words.action}
      </Button>
      <Confirm
        isOpen={isAsking}
        title={words.ask}
        action={words.action}
        typed={account?.username ?? ''}
        isBusy={close.isPending}
        error={close.error}
        onConfirm={() => close.mutate()}
        onClose={() => setAsking(false)}
      >
        <Stack gap="sm">
          {words.lead}
          <Text size="sm">{text.account.takeAlong.before}</Text>
          <TakeAlong />
        </Stack>
      </Confirm>
    </Stack>
  );
}
