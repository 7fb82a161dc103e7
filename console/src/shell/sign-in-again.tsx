/** Over the page whose session ended: it stays as it is, with what was typed into it. */
import { Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import type { Account } from '../../../sdk/index.ts';
import { SignInForm } from '../pages/door/door-form.tsx';
import { UploadsWait } from '../pages/door/uploads-wait.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { accountQuery, session } from '../queries.ts';
import { text } from '../texts/text.ts';
import { uploadQueue } from '../uploads/upload-queue.ts';
import { beginAnewAs } from './one-account.ts';

export function SignInAgain({ account }: { account: Account }) {
  const isOver = useSyncExternalStore(session.subscribe, session.get) === 'over';
  const queryClient = useQueryClient();
  const enter = async (entered: Account) => {
    if (entered.id !== account.id) return beginAnewAs(entered.id);
    queryClient.setQueryData(accountQuery.queryKey, entered);
    session.set('alive');
    uploadQueue.signedIn(entered.id);
    await queryClient.invalidateQueries();
  };
  return (
    <Dialog
      opened={isOver}
      onClose={() => {}}
      title={text.door.ended}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      zIndex={1000}
      size="sm"
    >
      <Stack>
        <Text size="sm">{text.door.endedLead}</Text>
        <UploadsWait />
        <SignInForm given={{ username: account.username }} onEnter={enter} />
      </Stack>
    </Dialog>
  );
}
