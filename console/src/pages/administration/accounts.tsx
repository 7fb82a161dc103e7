/** The accounts of this cloud: credits, plan, suspension. */

import { Badge, Button, Group, PasswordInput, Stack, Switch, Table, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { FormModal } from '../../parts/dialog.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes, sayCredits } from '../../parts/say.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { AccountMenu, ShownKey } from './account-menu.tsx';
import { accountsQuery } from './queries.ts';

export function Accounts() {
  const accounts = useQuery(accountsQuery);
  const [isCreating, setCreating] = useState(false);
  const { find = '' } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  /** The address follows what is typed, a moment later. */
  const [typed, setTyped] = useState<string>();
  const words = typed ?? find;
  const look = (next: string) => {
    setTyped(next);
    void navigate({ search: { tab: 'accounts', find: next }, replace: true });
  };
  const { administration } = text;
  const isFound = ({ username, email }: AdminAccount) =>
    `${username} ${email}`.toLowerCase().includes(words.toLowerCase());
  return (
    <Stack>
      <Group justify="space-between">
        <TextInput
          aria-label={administration.findAccount}
          placeholder={administration.findAccount}
          value={words}
          onChange={({ currentTarget }) => look(currentTarget.value)}
          onBlur={() => setTyped(undefined)}
        />
        <Button onClick={() => setCreating(true)}>{administration.createAccount}</Button>
      </Group>
      <Loaded query={accounts}>
        {(all) => (
          <ListTable
            heads={[
              { name: administration.account },
              { name: administration.plan },
              { name: administration.credits, isNumber: true },
              { name: administration.storage, isNumber: true },
              { name: administration.lastLogin },
              { name: administration.actions, isHidden: true },
            ]}
          >
            {all.filter(isFound).map((account) => (
              <AccountRow key={account.id} account={account} />
            ))}
          </ListTable>
        )}
      </Loaded>
      <NewAccountForm isOpen={isCreating} onClose={() => setCreating(false)} />
    </Stack>
  );
}

function AccountRow({ account }: { account: AdminAccount }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs">
          {account.username}
          {account.is_admin && <Badge variant="light">{text.administration.administrator}</Badge>}
          {!account.is_active && (
            <Badge variant="light" color="red" title={account.suspended_reason ?? ''}>
              {text.administration.suspended}
            </Badge>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {account.email}
        </Text>
      </Table.Td>
      <Table.Td>{account.plan}</Table.Td>
      <Table.Td ta="right">{sayCredits(account.credits)}</Table.Td>
      <Table.Td ta="right">{sayBytes(account.storage_bytes)}</Table.Td>
      <Table.Td>
        <When at={account.last_login} />
      </Table.Td>
      <Table.Td ta="right">
        <AccountMenu account={account} />
      </Table.Td>
    </Table.Tr>
  );
}

/** Makes an account for somebody; its key is shown once made. */
const NOBODY = { username: '', email: '', password: '', is_admin: false };

function NewAccountForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { administration } = text;
  const form = useCloudForm({
    values: NOBODY,
    send: ({ password, ...rest }) => cloud.adminCreateAccount(password === '' ? rest : { ...rest, password }),
    invalidates: [accountsQuery],
    onDone: () => {
      onClose();
      form.set(NOBODY);
    },
  });
  const { password, ...rest } = form.values;
  /** The call without the password: somebody may look over one's shoulder. */
  const sample = password === '' ? rest : { ...rest, password: '…' };
  const typed = { required: true, withAsterisk: false, spellCheck: false };
  return (
    <>
      <FormModal
        isOpen={isOpen}
        title={administration.createAccount}
        action={administration.createAccount}
        form={form}
        onClose={onClose}
      >
        <TextInput data-autofocus label={administration.username} {...typed} {...form.text('username')} />
        <TextInput type="email" label={administration.email} {...typed} {...form.text('email')} />
        <PasswordInput
          label={administration.password}
          description={administration.passwordLead}
          autoComplete="new-password"
          {...form.text('password')}
        />
        <Switch
          label={administration.administrator}
          description={administration.administratorLead}
          {...form.check('is_admin')}
        />
        <CallSample operation="adminCreateAccount" args={[sample]} />
      </FormModal>
      <ShownKey made={form.made} onClose={form.reset} />
    </>
  );
}
