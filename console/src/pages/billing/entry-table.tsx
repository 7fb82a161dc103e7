/** The ledger as a table. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { LedgerEntry } from '../../../../sdk/index.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { When } from '../../parts/tables/when.tsx';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import { vmsQuery } from '../machines/queries.ts';

/** Four digits; the exact value is in the title. Zero changes are hidden. */
const exact = new Intl.NumberFormat(readerLocales, { minimumFractionDigits: 2, maximumFractionDigits: 4 });
const change = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 4, signDisplay: 'exceptZero' });
/** With all digits. */
const whole = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 6 });
const SMALLEST_SHOWN = 0.00005;
const sayChange = (amount: number) =>
  Math.abs(amount) < SMALLEST_SHOWN ? text.billing.almostNothing : change.format(amount);
const { codes, services } = text.billing;
const sayCode = (code: string) => (code in codes ? codes[code as keyof typeof codes] : code);
const OF_SERVICE = /^(\w+) of account:\d+$/;

/** A row of the ledger: an entry, or a day. */
export interface LedgerLine {
  readonly key: string;
  readonly when: ReactNode;
  readonly entry: ReactNode;
  /** Credits. */
  readonly amount: number;
  readonly held: number;
  readonly balance: number;
}

export function lineOf({
  id,
  code,
  reference,
  amount,
  held,
  balance,
  created_at: at,
}: LedgerEntry): LedgerLine {
  return {
    key: String(id),
    when: <When at={at} />,
    entry: (
      <>
        {sayCode(code)}
        <Text size="sm" c="dimmed">
          <Reference words={reference} />
        </Text>
      </>
    ),
    amount: Number(amount),
    held: Number(held),
    balance: Number(balance),
  };
}

const exactly = (credits: number) => (credits === 0 ? undefined : whole.format(credits));
const sayUnlessZero = (credits: number) => (credits === 0 ? null : sayChange(credits));
const COLUMNS: readonly Column<LedgerLine>[] = [
  { name: text.billing.when, cell: ({ when }) => when },
  { name: text.billing.entry, cell: ({ entry }) => entry },
  {
    name: text.billing.amount,
    isNumber: true,
    title: ({ amount }) => exactly(amount),
    cell: ({ amount }) => sayUnlessZero(amount),
  },
  {
    name: text.billing.heldChange,
    isNumber: true,
    title: ({ held }) => exactly(held),
    cell: ({ held }) => sayUnlessZero(held),
  },
  {
    name: text.billing.balance,
    isNumber: true,
    title: ({ balance }) => whole.format(balance),
    cell: ({ balance }) => exact.format(balance),
  },
];

interface LedgerTableProps {
  readonly lines: readonly LedgerLine[];
  readonly isBold?: (line: LedgerLine) => boolean;
}

export function LedgerTable({ lines, isBold = () => false }: LedgerTableProps) {
  return <DataTable columns={COLUMNS} rows={lines} keyOf={({ key }) => key} isBold={isBold} />;
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
