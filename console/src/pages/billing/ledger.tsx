/** Every change of the balance, newest first. */
import { Button, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
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
            <Table.ScrollContainer minWidth={680}>
              <Table verticalSpacing="xs">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{text.billing.when}</Table.Th>
                    <Table.Th>{text.billing.entry}</Table.Th>
                    <Table.Th>{text.billing.reference}</Table.Th>
                    <Table.Th ta="right">{text.billing.amount}</Table.Th>
                    <Table.Th ta="right">{text.billing.heldChange}</Table.Th>
                    <Table.Th ta="right">{text.billing.balance}</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
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
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
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
