/** The end of the account, for good. */
import { Button, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { showDone } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';

const words = text.account.close;

export function CloseAccount() {
  const [isAsking, setAsking] = useState(false);
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const close = useMutation({
    mutationFn: () => cloud.account.close(),
    meta: { shown: true },
    onSuccess: async () => {
      await navigate({ to: '/sign-in' });
      queryClient.clear();
      showDone(words.closed);
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
        isBusy={close.isPending}
        error={close.error}
        onConfirm={() => close.mutate()}
        onClose={() => setAsking(false)}
      >
        {words.lead}
      </Confirm>
    </Stack>
  );
}
