/** Shows who did what in the whole cloud. */
import { Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { auditText } from '../../texts/audit-text.ts';
import { manyAccountsText } from '../../texts/many-accounts-text.ts';
import { text } from '../../texts/text.ts';
import { AuditLog } from '../account/audit-log.tsx';
import { accountsQuery } from './queries.ts';

export function Audit() {
  const { data: accounts } = useQuery(accountsQuery);
  const names = useMemo(
    () => new Map(accounts?.map(({ id, username }) => [String(id), username])),
    [accounts],
  );
  const [account, setAccount] = useState<string | null>(null);
  return (
    <Stack>
      <Text c="dimmed">{auditText.adminLead}</Text>
      <Select
        aria-label={text.administration.account}
        placeholder={manyAccountsText.everybody}
        data={[...names].map(([value, label]) => ({ value, label }))}
        value={account}
        onChange={setAccount}
        searchable
        clearable
        limit={50}
        maw={320}
      />
      <AuditLog account={account ?? 'all'} names={names} />
    </Stack>
  );
}
