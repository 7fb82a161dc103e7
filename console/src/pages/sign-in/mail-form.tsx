/** Requests a mail to an address. */
import { Button, Stack, TextInput } from '@mantine/core';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Refused } from '../../parts/forms/warning.tsx';
import { text } from '../../texts/text.ts';

interface MailFormProps {
  readonly action: string;
  readonly send: (email: string) => Promise<unknown>;
  readonly onSent: (email: string) => void;
}

export function MailForm({ action, send, onSent }: MailFormProps) {
  const form = useCloudForm({
    values: { email: '' },
    send: async ({ email }) => {
      await send(email);
      return email;
    },
    onDone: onSent,
  });
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <TextInput
          label={text.signIn.email}
          type="email"
          autoComplete="email"
          required
          withAsterisk={false}
          data-autofocus
          {...form.text('email')}
        />
        <Refused {...form.refusal} />
        <Button type="submit" loading={form.isBusy}>
          {action}
        </Button>
      </Stack>
    </form>
  );
}
