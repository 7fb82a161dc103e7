/** The accounts of this cloud: credits, plan, suspension. */

import { Badge, Button, Group, PasswordInput, Stack, Switch, Text, TextInput } from '@mantine/core';
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
import type { Column } from '../../parts/tables/data-table.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { useIsAdmin } from '../../queries.ts';
import { manyAccountsText } from '../../texts/many-accounts-text.ts';
import { text } from '../../texts/text.ts';
import { AccountMenu, ShownKey } from './account-menu.tsx';
import { MANY_ACTIONS, ManyAccounts, type ManyAction } from './many-accounts.tsx';
import { accountsQuery } from './queries.ts';

export function Accounts() {
  const accounts = useQuery(accountsQuery);
  const [isCreating, setCreating] = useState(false);
  const mayChange = useIsAdmin();
  return (
    <Stack>
      {mayChange && (
        <Group justify="flex-end">
          <Button onClick={() => setCreating(true)}>{administration.createAccount}</Button>
        </Group>
      )}
      <Loaded query={accounts}>{(all) => <AccountTable accounts={all} />}</Loaded>
      <NewAccountForm isOpen={isCreating} onClose={() => setCreating(false)} />
    </Stack>
  );
}

const { administration } = text;
const many = manyAccountsText;
const COLUMNS: readonly Column<AdminAccount>[] = [
  {
    name: administration.account,
    id: 'account',
    value: ({ username }) => username,
    cell: (account) => <Who account={account} />,
  },
  { name: administration.plan, id: 'plan', value: ({ plan }) => plan, cell: ({ plan }) => plan },
  {
    name: administration.credits,
    id: 'credits',
    isNumber: true,
    value: ({ credits }) => Number(credits),
    cell: ({ credits }) => sayCredits(credits),
  },
  {
    name: administration.storage,
    id: 'storage',
    isNumber: true,
    value: ({ storage_bytes: bytes }) => bytes,
    cell: ({ storage_bytes: bytes }) => sayBytes(bytes),
  },
  {
    name: administration.lastLogin,
    id: 'login',
    value: ({ last_login: at }) => at,
    cell: ({ last_login: at }) => <When at={at} />,
  },
  { name: administration.actions, isActions: true, cell: (account) => <AccountMenu account={account} /> },
];

interface Acting {
  readonly action: ManyAction;
  /** The accounts at the time when the window opened. */
  readonly accounts: readonly AdminAccount[];
  /** Selects accounts in the list. */
  readonly choose: (ids: readonly number[]) => void;
}

/** The accounts, of which some or all are selected for one action. */
function AccountTable({ accounts }: { accounts: readonly AdminAccount[] }) {
  const [acting, setActing] = useState<Acting>();
  const mayChange = useIsAdmin();
  const { tab: _, month: __, ...view } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  return (
    <>
      <ListTable
        columns={COLUMNS}
        rows={accounts}
        keyOf={({ id }) => id}
        nameOf={({ username }) => username}
        textOf={({ username, email, plan }) => `${username} ${email} ${plan}`}
        view={view}
        onView={(next) => navigate({ search: { tab: 'accounts', ...next }, replace: true })}
        {...(mayChange && {
          many: {
            say: many.accounts,
            actions: (selected: readonly AdminAccount[], choose: Acting['choose']) =>
              MANY_ACTIONS.map((action) => (
                <Button
                  key={action}
                  size="compact-sm"
                  variant="default"
                  onClick={() => setActing({ action, accounts: selected, choose })}
                >
                  {many.buttons[action]}
                </Button>
              )),
            onDelete: (selected: readonly AdminAccount[], choose: Acting['choose']) =>
              setActing({ action: 'remove', accounts: selected, choose }),
          },
        })}
      />
      {acting !== undefined && (
        <ManyAccounts
          {...acting}
          onClose={(left) => {
            setActing(undefined);
            acting.choose(left);
          }}
        />
      )}
    </>
  );
}

function Who({ account }: { account: AdminAccount }) {
  return (
    <>
      <Group gap="xs">
        {account.username}
        {account.is_admin && <Badge variant="light">{administration.administrator}</Badge>}
        {account.is_auditor && <Badge variant="light">{administration.auditor}</Badge>}
        {!account.is_active && account.removed_at === null && (
          <Badge variant="light" color="red">
            {administration.suspended}
          </Badge>
        )}
        {account.removed_at !== null && (
          <Badge variant="light" color="red" tt="none">
            {many.removed} <When at={account.removed_at} />
          </Badge>
        )}
      </Group>
      <Text size="sm" c="dimmed">
        {account.email}
      </Text>
      {account.spend_cap !== null && (
        <Text size="sm" c="dimmed">
          {many.capped(sayCredits(account.spend_cap))}
        </Text>
      )}
      {account.suspended_reason !== null && (
        <Text size="sm" c="dimmed">
          {account.suspended_reason}
        </Text>
      )}
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
