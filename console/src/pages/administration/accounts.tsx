/** The accounts of this cloud: credits, plan, suspension. */

import { Badge, Button, Checkbox, Group, PasswordInput, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes, sayCredits } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { manyAccountsText } from '../../texts/many-accounts-text.ts';
import { text } from '../../texts/text.ts';
import { AccountMenu, ShownKey } from './account-menu.tsx';
import { MANY_ACTIONS, ManyAccounts, type ManyAction } from './many-accounts.tsx';
import { accountsQuery } from './queries.ts';

export function Accounts() {
  const accounts = useQuery(accountsQuery);
  const [isCreating, setCreating] = useState(false);
  const { find = '' } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  /** The URL follows the typed text with a short delay. */
  const [typed, setTyped] = useState<string>();
  const words = typed ?? find;
  const look = (next: string) => {
    setTyped(next);
    void navigate({ search: { tab: 'accounts', find: next }, replace: true });
  };
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
      <Loaded query={accounts}>{(all) => <AccountTable accounts={all.filter(isFound)} />}</Loaded>
      <NewAccountForm isOpen={isCreating} onClose={() => setCreating(false)} />
    </Stack>
  );
}

const { administration } = text;
const many = manyAccountsText;
const COLUMNS: readonly Column<AdminAccount>[] = [
  { name: administration.plan, cell: ({ plan }) => plan },
  { name: administration.credits, isNumber: true, cell: ({ credits }) => sayCredits(credits) },
  { name: administration.storage, isNumber: true, cell: ({ storage_bytes }) => sayBytes(storage_bytes) },
  { name: administration.lastLogin, cell: ({ last_login }) => <When at={last_login} /> },
  { name: administration.actions, isActions: true, cell: (account) => <AccountMenu account={account} /> },
];

interface Acting {
  readonly action: ManyAction;
  /** The accounts at the time when the window opened. */
  readonly accounts: readonly AdminAccount[];
}

/** The displayed accounts, of which some or all are selected for one action. */
function AccountTable({ accounts }: { accounts: readonly AdminAccount[] }) {
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const [acting, setActing] = useState<Acting>();
  // Only displayed accounts are affected.
  const selected = accounts.filter(({ id }) => chosen.has(id));
  const choose = (some: readonly AdminAccount[], isChosen: boolean) => {
    const next = new Set(chosen);
    for (const { id } of some) {
      if (isChosen) next.add(id);
      else next.delete(id);
    }
    setChosen(next);
  };
  const who: Column<AdminAccount> = {
    name: administration.account,
    cell: (account) => (
      <Group gap="sm" wrap="nowrap">
        <Checkbox
          aria-label={many.selectOne(account.username)}
          checked={chosen.has(account.id)}
          onChange={({ currentTarget }) => choose([account], currentTarget.checked)}
        />
        <div>
          <Who account={account} />
        </div>
      </Group>
    ),
  };
  return (
    <Stack gap="xs">
      <Group mih={36}>
        <Checkbox
          label={many.selectAll(accounts.length)}
          checked={selected.length > 0 && selected.length === accounts.length}
          indeterminate={selected.length > 0 && selected.length < accounts.length}
          disabled={accounts.length === 0}
          onChange={({ currentTarget }) => choose(accounts, currentTarget.checked)}
        />
        {selected.length > 0 && (
          <Group gap="xs" role="group" aria-label={many.selected(selected.length)}>
            <Text size="sm">{many.selected(selected.length)}</Text>
            {MANY_ACTIONS.map((action) => (
              <Button
                key={action}
                size="compact-sm"
                variant="default"
                onClick={() => setActing({ action, accounts: selected })}
              >
                {many.buttons[action]}
              </Button>
            ))}
          </Group>
        )}
      </Group>
      <DataTable columns={[who, ...COLUMNS]} rows={accounts} keyOf={({ id }) => id} />
      {acting !== undefined && (
        <ManyAccounts
          {...acting}
          onClose={(left) => {
            setActing(undefined);
            setChosen(new Set(left));
          }}
        />
      )}
    </Stack>
  );
}

function Who({ account }: { account: AdminAccount }) {
  return (
    <>
      <Group gap="xs">
        {account.username}
        {account.is_admin && <Badge variant="light">{administration.administrator}</Badge>}
        {account.is_auditor && <Badge variant="light">{administration.auditor}</Badge>}
        {!account.is_active && (
          <Badge variant="light" color="red" title={account.suspended_reason ?? ''}>
            {administration.suspended}
          </Badge>
        )}
      </Group>
      <Text size="sm" c="dimmed">
        {account.email}
      </Text>
    </>
  );
}

/** Creates an account; its key is shown once. */
const NOBODY = { username: '', email: '', password: '', is_admin: false };

function NewAccountForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
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
  /** The example omits the password, because somebody may see the screen. */
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
