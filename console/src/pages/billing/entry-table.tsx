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

/** Four digits; all that were booked are in the title. What did not change is not said. */
const exact = new Intl.NumberFormat(readerLocales, { minimumFractionDigits: 2, maximumFractionDigits: 4 });
const change = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 4, signDisplay: 'exceptZero' });
/** To the last digit that is booked. */
const whole = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 6 });
const SMALLEST_SHOWN = 0.00005;
const sayChange = (amount: number) =>
  Math.abs(amount) < SMALLEST_SHOWN ? text.billing.almostNothing : change.format(amount);
const { codes, services } = text.billing;
const sayCode = (code: string) => (code in codes ? codes[code as keyof typeof codes] : code);
export const LEDGER_HEADS = [
  { name: text.billing.when },
  { name: text.billing.entry },
  { name: text.billing.amount, isNumber: true },
  { name: text.billing.heldChange, isNumber: true },
  { name: text.billing.balance, isNumber: true },
];
const OF_SERVICE = /^(\w+) of account:\d+$/;

export function EntryTable({ entries }: { entries: readonly LedgerEntry[] }) {
  return (
    <ListTable heads={LEDGER_HEADS}>
      {entries.map((entry) => (
        <EntryRow key={entry.id} entry={entry} />
      ))}
    </ListTable>
  );
}

export function EntryRow({ entry }: { entry: LedgerEntry }) {
  const { code, reference, amount, held, balance, created_at: at } = entry;
  return (
    <Table.Tr>
      <Table.Td>
        <When at={at} />
      </Table.Td>
      <Table.Td>
        {sayCode(code)}
        <Text size="sm" c="dimmed">
          <Reference words={reference} />
        </Text>
      </Table.Td>
      <Amounts amount={Number(amount)} held={Number(held)} balance={Number(balance)} />
    </Table.Tr>
  );
}

type AmountsProps = Readonly<Record<'amount' | 'held' | 'balance', number>>;

/** The last three cells of a row, in credits. */
export function Amounts({ amount, held, balance }: AmountsProps) {
  return (
    <>
      <ChangeCell credits={amount} />
      <ChangeCell credits={held} />
      <Table.Td ta="right" title={whole.format(balance)}>
        {exact.format(balance)}
      </Table.Td>
    </>
  );
}

function ChangeCell({ credits }: { credits: number }) {
  if (credits === 0) return <Table.Td />;
  return (
    <Table.Td ta="right" title={whole.format(credits)}>
      {sayChange(credits)}
    </Table.Td>
  );
}

/** The subject of an entry: a machine by name, a service, or the text given by an administrator. */
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
