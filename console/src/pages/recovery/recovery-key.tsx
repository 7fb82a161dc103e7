/** The recovery key: whether it is confirmed, and showing it. */

import { Button, Text, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { recoveryText } from '../../texts/pages/recovery-text.ts';
import { RECOVERY } from './queries.ts';

interface RecoveryKeyProps {
  /** null while there is no key. */
  readonly isTaken: boolean | null;
  /** Without a heading, as part of a list that has one. */
  readonly isPart?: boolean;
}

export function RecoveryKey({ isTaken, isPart = false }: RecoveryKeyProps) {
  const show = useMutation({ mutationFn: () => cloud.showRecoveryKey() });
  const form = useCloudForm({
    values: { recovery_key: '' },
    send: ({ recovery_key }) => cloud.confirmRecoveryKey({ recovery_key: recovery_key.trim() }),
    invalidates: [RECOVERY],
    onDone: () => {
      close();
      showDone(recoveryText.proved);
    },
  });
  const close = () => {
    show.reset();
    form.set({ recovery_key: '' });
  };
  const { keyNone, keyTaken, keyNotTaken } = recoveryText;
  return (
    <section>
      {!isPart && <Title order={2}>{recoveryText.key}</Title>}
      {(!isPart || isTaken === null) && (
        <Text c="dimmed" mb="sm" size={isPart ? 'sm' : 'md'}>
          {isTaken === null ? keyNone : isTaken ? keyTaken : keyNotTaken}
        </Text>
      )}
      {isTaken === false && (
        // Not disabled, because focus must return to it after the dialog.
        <Button variant="default" onClick={() => show.mutate()}>
          {recoveryText.showKey}
        </Button>
      )}
      <FormModal
        isOpen={show.isSuccess}
        title={recoveryText.key}
        action={recoveryText.prove}
        form={form}
        isIncomplete={form.values.recovery_key === ''}
        onClose={close}
      >
        <Text size="sm">{recoveryText.keyLead}</Text>
        <CodeLine value={show.data?.recovery_key ?? ''} label={recoveryText.copyKey} />
        <TextInput
          label={recoveryText.proof}
          spellCheck={false}
          autoComplete="off"
          // Its error is announced, so it is not shown at the field.
          value={form.values.recovery_key}
          onChange={({ currentTarget }) => form.set({ recovery_key: currentTarget.value })}
        />
      </FormModal>
    </section>
  );
}
