/** What was booked for an account in a month. */
import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Figures } from '../../parts/figures.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/price.ts';
import { text } from '../../texts/text.ts';
import { EntryTable } from '../billing/entry-table.tsx';
import { thisMonth } from '../billing/month.ts';
import { MonthSelect } from '../billing/month-select.tsx';
import { statementQuery } from './queries.ts';

const words = text.administration.statement;

export function AccountStatement({ account, onClose }: { account: AdminAccount; onClose: () => void }) {
  const [month, setMonth] = useState(thisMonth);
  const statement = useQuery(statementQuery(account.id, month));
  return (
    <Dialog opened onClose={onClose} title={words.of(account.username)} size="xl">
      <Stack pb="sm">
        <MonthSelect value={month} onChange={setMonth} />
        <Loaded query={statement}>
          {({ opening_balance: opening, closing_balance: closing, entries }) => (
            <>
              <Figures
                figures={[
                  { name: words.opening, value: sayCredits(opening) },
                  { name: words.closing, value: sayCredits(closing) },
                ]}
              />
              {entries.length === 0 ? (
                <Text c="dimmed">{words.none}</Text>
              ) : (
                <EntryTable entries={entries.toReversed()} />
              )}
            </>
          )}
        </Loaded>
      </Stack>
    </Dialog>
  );
}
