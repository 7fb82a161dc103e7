/** Properties of an account that administrators can change: address, end, rights, password. */
import { NativeSelect, Switch, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { accountQuery } from '../../queries.ts';
import { manyAccountsText } from '../../texts/many-accounts-text.ts';
import { text } from '../../texts/text.ts';
import { endOfDay, lastDayOf } from './last-day.ts';
import { accountsQuery } from './queries.ts';

const { administration } = text;
const words = administration.person;

interface AccountFormProps {
  readonly account: AdminAccount;
  readonly onClose: () => void;
}

export function AccountForm({ account, onClose }: AccountFormProps) {
  const { id, username } = account;
  const isOwn = useQuery(accountQuery).data?.id === id;
  const navigate = useNavigate();
  const form = useCloudForm({
    values: {
      email: account.email,
      expires_at: lastDayOf(account.expires_at),
      role: roleOf(account),
      must_change_password: account.must_change_password,
    },
    send: (values) => cloud.adminChangeAccount(id, changesOf(account, values)),
    invalidates: isOwn ? [accountQuery, accountsQuery] : [accountsQuery],
    onDone: async () => {
      onClose();
      if (isOwn && form.values.role === 'user') await navigate({ to: '/' });
    },
  });
  const readsAsNow = form.values.role === roleOf(account);
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
        type="date"
        label={manyAccountsText.lastDay}
        description={manyAccountsText.lastDayLead}
        {...form.text('expires_at')}
      />
      <NativeSelect
        label={words.role}
        description={isOwn && !readsAsNow ? manyAccountsText.ownRights : words.roleLead[form.values.role]}
        data={ROLES.map((value) => ({ value, label: words.roles[value] }))}
        {...form.text('role')}
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

const ROLES = ['user', 'auditor', 'administrator'] as const;
type Role = (typeof ROLES)[number];

function roleOf({ is_admin, is_auditor }: AdminAccount): Role {
  if (is_admin) return 'administrator';
  return is_auditor ? 'auditor' : 'user';
}

interface Values {
  readonly email: string;
  readonly expires_at: string;
  readonly role: Role;
  readonly must_change_password: boolean;
}

/** Only changed fields: some of them need the password again. */
function changesOf(account: AdminAccount, { email, expires_at, role, must_change_password }: Values) {
  const [isAdmin, isAuditor] = [role === 'administrator', role === 'auditor'];
  return {
    ...(email !== account.email && { email }),
    ...(expires_at !== lastDayOf(account.expires_at) && { expires_at: endOfDay(expires_at) }),
    ...(isAdmin !== account.is_admin && { is_admin: isAdmin }),
    ...(isAuditor !== account.is_auditor && { is_auditor: isAuditor }),
    ...(must_change_password !== account.must_change_password && { must_change_password }),
  };
}
