/** Asks for the password again before sensitive data is shown or changed. */
import { PasswordInput, Text } from '@mantine/core';
import { useSyncExternalStore } from 'react';
import { CloudError } from '../../../sdk/index.ts';
import { cloud } from '../cloud.ts';
import { useCloudForm } from '../parts/cloud-form.ts';
import { FormModal } from '../parts/forms/dialog.tsx';
import { passwordQuestion } from '../parts/forms/password-question.ts';
import { text } from '../texts/text.ts';

export function AskPassword() {
  const answer = useSyncExternalStore(passwordQuestion.subscribe, passwordQuestion.get);
  return answer !== null && <Question answer={answer} />;
}

function Question({ answer }: { answer: (isGiven: boolean) => void }) {
  const form = useCloudForm({
    values: { current_password: '' },
    send: (values) => cloud.confirmPassword(values),
    onDone: () => answer(true),
  });
  const { error } = form.refusal;
  const isWrong = error instanceof CloudError && error.code === 'invalid_credentials';
  return (
    <FormModal
      isOpen
      title={text.signIn.again}
      action={text.signIn.goOn}
      form={isWrong ? { ...form, refusal: { ...form.refusal, error: null } } : form}
      isIncomplete={form.values.current_password === ''}
      zIndex={1000}
      onClose={() => answer(false)}
    >
      <Text size="sm">{text.signIn.againLead}</Text>
      <PasswordInput
        label={text.signIn.password}
        autoComplete="current-password"
        data-autofocus
        {...form.text('current_password')}
        {...(isWrong ? { error: text.account.currentWrong } : {})}
      />
    </FormModal>
  );
}
