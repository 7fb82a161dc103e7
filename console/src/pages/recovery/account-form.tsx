/** Restores one account of a recovery point as a new account, with a preview. */
import { Button, Group, List, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { RestoredAccount, RestoredItem } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Refused } from '../../parts/forms/warning.tsx';
import { scheduleText } from '../../texts/pages/schedule-text.ts';

const words = scheduleText.account;

interface Wanted {
  readonly account: string;
  readonly username: string;
  readonly email: string;
}

export function AccountForm({ point }: { point: string }) {
  const send = ({ account, username, email }: Wanted, preview: boolean) =>
    cloud.restoreAccount(point, account, { username, email, preview }, { takesLong: true });
  const form = useCloudForm({
    values: { account: '', username: '', email: '' },
    send: (values) => send(values, false),
    onDone: () => preview.reset(),
  });
  const preview = useMutation({ mutationFn: (values: Wanted) => send(values, true), meta: { shown: true } });
  const { account, username, email } = form.values;
  const found = preview.data ?? form.made;
  const plain = { spellCheck: false, autoCapitalize: 'none', autoComplete: 'off', required: true };
  return (
    <form onSubmit={form.submit}>
      <Stack gap="sm">
        <div>
          <Text fw={550}>{words.title}</Text>
          <Text size="sm" c="dimmed">
            {words.lead}
          </Text>
        </div>
        <TextInput
          label={words.account}
          description={words.accountHint}
          {...plain}
          {...form.text('account')}
        />
        <TextInput label={words.username} {...plain} {...form.text('username')} />
        <TextInput label={words.email} {...plain} {...form.text('email')} />
        <Group>
          <Button variant="default" loading={preview.isPending} onClick={() => preview.mutate(form.values)}>
            {words.preview}
          </Button>
          <Button type="submit" loading={form.isBusy}>
            {words.submit}
          </Button>
        </Group>
        <Stack aria-live="polite" gap="xs">
          <Refused {...form.refusal} />
          <Refused error={preview.error} />
          {found !== undefined && <Outcome of={found} />}
        </Stack>
        <CallSample operation="restoreAccount" args={[point, account, { username, email }]} />
      </Stack>
    </form>
  );
}

function Outcome({ of: { account, items, state } }: { of: RestoredAccount }) {
  return (
    <>
      <Text size="sm">{words.states[state] ?? state}</Text>
      <List size="sm">
        {items.map((item) => (
          <List.Item key={`${item.kind} ${item.source_id}`}>{sayItem(item)}</List.Item>
        ))}
      </List>
      {account.api_key !== null && (
        <div>
          <Text size="sm">{words.key(account.username)}</Text>
          <CodeLine value={account.api_key} label={words.copyKey} />
        </div>
      )}
    </>
  );
}

function sayItem({ kind, name, made_id, lacks, refusal }: RestoredItem): string {
  const first = `${words.kinds[kind]} ${name}`;
  if (refusal !== null) return `${first}: ${refusal}`;
  return [made_id === null ? first : words.there(first), ...lacks].join('; ');
}
