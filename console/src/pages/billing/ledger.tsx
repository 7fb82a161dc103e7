/** Every change of the balance, newest first. */
import { Button, Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Loaded } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import { EntryTable } from './entry-table.tsx';
import { ledgerQuery } from './queries.ts';

export function Ledger() {
  const ledger = useInfiniteQuery(ledgerQuery);
  return (
    <Loaded query={ledger}>
      {({ pages }) => {
        const entries = pages.flatMap(({ items }) => items);
        if (entries.length === 0) return <Text c="dimmed">{text.billing.noEntries}</Text>;
        return (
          <Stack>
            <Text c="dimmed">{text.billing.ledgerLead}</Text>
            <EntryTable entries={entries} />
            {ledger.hasNextPage && (
              <Button
                variant="default"
                loading={ledger.isFetchingNextPage}
                onClick={() => ledger.fetchNextPage()}
              >
                {text.shell.more}
              </Button>
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}
