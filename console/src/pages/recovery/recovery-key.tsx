/** The recovery key: whether somebody keeps it, and how it is taken. */

import { Button, Group, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/code.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Refused } from '../../parts/warning.tsx';
import { text } from '../../texts/text.ts';
import { RECOVERY } from './queries.ts';

/** `isTaken`: null while there is no key. */
export function RecoveryKey({ isTaken }: { isTaken: boolean | null }) {
  const [proof, setProof] = useState('');
  const show = useMutation({ mutationFn: () => cloud.showRecoveryKey() });
  const close = () => {
    show.reset();
    setProof('');
  };
  const confirm = useMutation({
    mutationFn: () => cloud.confirmRecoveryKey({ recovery_key: proof.trim() }),
    meta: { shown: true, invalidates: [RECOVERY] },
    onSuccess: () => {
      close();
      showDone(text.recovery.proved);
    },
  });
  const { keyNone, keyTaken, keyNotTaken } = text.recovery;
  return (
    <section>
      <Title order={2}>{text.recovery.key}</Title>
      <Text c="dimmed" mb="sm">
        {isTaken === null ? keyNone : isTaken ? keyTaken : keyNotTaken}
      </Text>
      {isTaken === false && (
        // Not disabled meanwhile: it must keep the focus, to have it back from the window.
        <Button variant="default" onClick={() => show.mutate()}>
          {text.recovery.showKey}
        </Button>
      )}
      <Dialog opened={show.isSuccess} onClose={close} title={text.recovery.key}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            confirm.mutate();
          }}
        >
          <Stack>
            <Text size="sm">{text.recovery.keyLead}</Text>
            <CodeLine value={show.data?.recovery_key ?? ''} label={text.recovery.copyKey} />
            <TextInput
              label={text.recovery.proof}
              value={proof}
              spellCheck={false}
              autoComplete="off"
              onChange={({ currentTarget }) => setProof(currentTarget.value)}
            />
            <Refused error={confirm.error} />
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                {text.shell.cancel}
              </Button>
              <Button type="submit" disabled={proof === ''} loading={confirm.isPending}>
                {text.recovery.prove}
              </Button>
            </Group>
          </Stack>
        </form>
      </Dialog>
    </section>
  );
}
