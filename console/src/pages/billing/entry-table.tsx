/** Entries of the ledger as rows. */
import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { LedgerEntry } from '../../../../sdk/index.ts';
import { AnchorLink } from '../../parts/links.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { When } from '../../parts/when.tsx';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import { vmsQuery } from '../machines/queries.ts';

/** To the last digit that is booked; what did not change is not said. */
const exact = new Intl.NumberFormat(readerLocales, { minimumFractionDigits: 2, maximumFractionDigits: 6 });
const change = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 6, signDisplay: 'exceptZero' });
const sayChange = (amount: number | string) => (Number(amount) === 0 ? '' : change.format(Number(amount)));
const { codes, services } = text.billing;
const sayCode = (code: string) => (code in codes ? codes[code as keyof typeof codes] : code);
const HEADS = [
  { name: text.billing.when },
  { name: text.billing.entry },
  { name: text.billing.amount, isNumber: true },
  { name: text.billing.heldChange, isNumber: true },
  { name: text.billing.balance, isNumber: true },
];
const OF_SERVICE = /^(\w+) of account:\d+$/;

export function EntryTable({ entries }: { entries: readonly LedgerEntry[] }) {
  return (
    <ListTable heads={HEADS}>
      {entries.map(({ id, code, reference, amount, held, balance, created_at: at }) => (
        <Table.Tr key={id}>
          <Table.Td>
            <When at={at} />
          </Table.Td>
          <Table.Td>
            {sayCode(code)}
            <Text size="sm" c="dimmed">
              <Reference words={reference} />
            </Text>
          </Table.Td>
          <Table.Td ta="right">{sayChange(amount)}</Table.Td>
          <Table.Td ta="right">{sayChange(held)}</Table.Td>
          <Table.Td ta="right">{exact.format(Number(balance))}</Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}

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
  return service in services ? services[service as keyof typeof services] : words;
}
