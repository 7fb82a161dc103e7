/** Every change of the balance, newest first. */
import { Button, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/price.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { ledgerQuery } from './queries.ts';

const signed = (amount: number | string) => (Number(amount) > 0 ? '+' : '') + sayCredits(amount);

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
            <ListTable
              heads={[
                { name: text.billing.when },
                { name: text.billing.entry },
                { name: text.billing.reference },
                { name: text.billing.amount, isNumber: true },
                { name: text.billing.heldChange, isNumber: true },
                { name: text.billing.balance, isNumber: true },
              ]}
            >
              {entries.map((entry) => (
                <Table.Tr key={entry.id}>
                  <Table.Td>
                    <When at={entry.created_at} />
                  </Table.Td>
                  <Table.Td>{entry.code.replaceAll('_', ' ')}</Table.Td>
                  <Table.Td>{entry.reference}</Table.Td>
                  <Table.Td ta="right">{signed(entry.amount)}</Table.Td>
                  <Table.Td ta="right">{signed(entry.held)}</Table.Td>
                  <Table.Td ta="right">{sayCredits(entry.balance)}</Table.Td>
                </Table.Tr>
              ))}
            </ListTable>
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
