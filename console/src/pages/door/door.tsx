/** The frame of the pages before one is signed in. */
import { Paper, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import type { Account } from '../../../../sdk/index.ts';
import { accountQuery, session } from '../../queries.ts';
import { Logo } from '../../shell/logo.tsx';
import { uploadQueue } from '../../uploads/upload-queue.ts';
import classes from './door.module.css';

interface DoorProps {
  readonly title: string;
  readonly lead: string;
  readonly notice?: ReactNode;
  readonly children: ReactNode;
}

export function Door({ title, lead, notice, children }: DoorProps) {
  useEffect(() => {
    document.title = `${title} · Cloudlet`;
  }, [title]);
  return (
    <main className={classes.door}>
      <Stack w="100%" maw={400} gap="lg">
        <Logo />
        {notice}
        <Paper withBorder radius="lg" p="xl">
          <Title order={1}>{title}</Title>
          <Text c="dimmed" mb="lg">
            {lead}
          </Text>
          {children}
        </Paper>
      </Stack>
    </main>
  );
}

/** Goes in: to `next`, or to the overview. */
export function useEnter(next: string | undefined) {
  const queryClient = useQueryClient();
  const router = useRouter();
  return (account: Account) => {
    queryClient.clear();
    queryClient.setQueryData(accountQuery.queryKey, account);
    session.set('alive');
    uploadQueue.signedIn(account.id);
    router.history.push(next ?? '/');
  };
}
