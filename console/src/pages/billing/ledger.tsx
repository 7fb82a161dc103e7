/** Every change of the balance, newest first. */
import { Button, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { AnchorLink } from '../../parts/links.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { vmsQuery } from '../machines/queries.ts';
import { ledgerQuery } from './queries.ts';

/** To the last digit that is booked; what did not change is not said. */
const exact = new Intl.NumberFormat(text.locale, { minimumFractionDigits: 2, maximumFractionDigits: 6 });
const change = new Intl.NumberFormat(text.locale, { maximumFractionDigits: 6, signDisplay: 'exceptZero' });
const sayChange = (amount: number | string) => (Number(amount) === 0 ? '' : change.format(Number(amount)));
const { codes } = text.billing;
const sayCode = (code: string) => (code in codes ? codes[code as keyof typeof codes] : code);

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
                  <Table.Td>{sayCode(entry.code)}</Table.Td>
                  <Table.Td>
                    <Reference words={entry.reference} />
                  </Table.Td>
                  <Table.Td ta="right">{sayChange(entry.amount)}</Table.Td>
                  <Table.Td ta="right">{sayChange(entry.held)}</Table.Td>
                  <Table.Td ta="right">{exact.format(Number(entry.balance))}</Table.Td>
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

const OF_SERVICE = /^(\w+) of account:\d+$/;

/** What an entry was for: a machine by its name, a part of the cloud, or the words of who booked it. */
function Reference({ words }: { words: string }) {
  const { data: machines = [] } = useQuery(vmsQuery);
  const vm = machines.find(({ vm_id: id }) => id === words);
  if (vm !== undefined) {
    return (
      <AnchorLink to="/machines/$vm" params={{ vm: vm.vm_id }}>
        {vm.name}
      </AnchorLink>
    );
  }
  const service = OF_SERVICE.exec(words)?.[1] ?? '';
  const { services } = text.billing;
  return service in services ? services[service as keyof typeof services] : words;
}
