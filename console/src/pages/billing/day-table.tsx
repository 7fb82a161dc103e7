/** The days of the ledger as rows; each opens its entries below it. */
import { ChevronDownIcon, ChevronRightIcon } from '@heroicons/react/24/outline';
import { Table, UnstyledButton } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Fragment } from 'react';
import type { LedgerEntry } from '../../../../sdk/index.ts';
import { ListTable } from '../../parts/list-table.tsx';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import { Amounts, EntryRow, LEDGER_HEADS } from './entry-table.tsx';
import type { LedgerDay } from './ledger-days.ts';

type Day = LedgerDay<LedgerEntry>;

const dateFormat = new Intl.DateTimeFormat(readerLocales, { dateStyle: 'medium', timeZone: 'UTC' });

export function DayTable({ days }: { days: readonly Day[] }) {
  const { day: open } = useSearch({ from: '/shell/billing' });
  const navigate = useNavigate({ from: '/billing' });
  const toggle = (day: string) =>
    navigate({
      search: day === open ? { tab: 'ledger' } : { tab: 'ledger', day },
      replace: true,
      resetScroll: false,
    });
  return (
    <ListTable heads={LEDGER_HEADS}>
      {days.map((day) => (
        <Fragment key={day.date}>
          <DayRow day={day} isOpen={day.date === open} onToggle={() => toggle(day.date)} />
          {day.date === open && day.entries.map((entry) => <EntryRow key={entry.id} entry={entry} />)}
        </Fragment>
      ))}
    </ListTable>
  );
}

interface DayRowProps {
  readonly day: Day;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function DayRow({ day, isOpen, onToggle }: DayRowProps) {
  const Icon = isOpen ? ChevronDownIcon : ChevronRightIcon;
  return (
    <Table.Tr fw={550}>
      <Table.Td>
        <UnstyledButton fz="inherit" fw="inherit" aria-expanded={isOpen} onClick={onToggle}>
          <Icon width={14} aria-hidden style={{ verticalAlign: -2, marginInlineEnd: 6 }} />
          {dateFormat.format(Date.parse(`${day.date}T00:00:00Z`))}
        </UnstyledButton>
      </Table.Td>
      <Table.Td>{text.billing.entries(day.entries.length)}</Table.Td>
      <Amounts amount={day.amount} held={day.held} balance={day.balance} />
    </Table.Tr>
  );
}
