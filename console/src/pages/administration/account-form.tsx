/** An account's own facts, as an administrator changes them: address, end, rights, password. */
import { Switch, Text, TextInput } from '@mantine/core';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { text } from '../../texts/text.ts';
import { accountsQuery } from './queries.ts';

const { administration } = text;
const words = administration.person;

interface AccountFormProps {
  readonly account: AdminAccount;
  readonly onClose: () => void;
}

export function AccountForm({ account, onClose }: AccountFormProps) {
  const { id, username } = account;
  const form = useCloudForm({
    values: {
      email: account.email,
      expires_at: account.expires_at ?? '',
      is_admin: account.is_admin,
      must_change_password: account.must_change_password,
    },
    send: (values) => cloud.adminChangeAccount(id, changesOf(account, values)),
    invalidates: [accountsQuery],
    onDone: onClose,
  });
  return (
    <FormModal isOpen title={words.of(username)} action={administration.save} form={form} onClose={onClose}>
      <Text size="sm" c="dimmed">
        {words.since(account.created_at, account.last_seen_at)}
      </Text>
      <TextInput
        data-autofocus
        type="email"
        label={administration.email}
        description={account.email_confirmed ? words.confirmed : words.unconfirmed}
        {...form.text('email')}
      />
      <TextInput
        label={words.end}
        description={words.endLead}
        placeholder="2027-07-31 22:00:00"
        {...form.text('expires_at')}
      />
      <Switch
        label={administration.administrator}
        description={administration.administratorLead}
        {...form.check('is_admin')}
      />
      <Switch
        label={words.mustChange}
        description={words.mustChangeLead}
        {...form.check('must_change_password')}
      />
      <CallSample operation="adminChangeAccount" args={[id, changesOf(account, form.values)]} />
    </FormModal>
  );
}

interface Values {
  readonly email: string;
  readonly expires_at: string;
  readonly is_admin: boolean;
  readonly must_change_password: boolean;
}

/** Only what differs: some of it needs the password again. */
function changesOf(account: AdminAccount, { email, expires_at, is_admin, must_change_password }: Values) {
  const end = expires_at === '' ? null : expires_at;
  return {
    ...(email !== account.email && { email }),
    ...(end !== account.expires_at && { expires_at: end }),
    ...(is_admin !== account.is_admin && { is_admin }),
    ...(must_change_password !== account.must_change_password && { must_change_password }),
  };
}
