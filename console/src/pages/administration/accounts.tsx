/** The accounts of this cloud: credits, plan, suspension. */
import { Badge, Button, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/price.ts';
import { sayBytes } from '../../parts/size.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { AccountMenu } from './account-menu.tsx';
import { NewAccountForm } from './new-account-form.tsx';
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
