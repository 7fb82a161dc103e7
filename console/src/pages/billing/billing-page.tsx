/** Billing: current use and its cost, a month's report, the ledger, and the prices. */

import { ChevronDownIcon, ChevronRightIcon } from '@heroicons/react/24/outline';
import { Button, Stack, Tabs, Text, UnstyledButton } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { LedgerEntry } from '../../../../sdk/index.ts';
import { Loaded, Page } from '../../parts/page.tsx';
import classes from '../../parts/parts.module.css';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import { type LedgerLine, LedgerTable, lineOf } from './entry-table.tsx';
import { daysOf, type LedgerDay } from './ledger-days.ts';
import { Now } from './now.tsx';
import { Prices } from './prices.tsx';
import { ledgerQuery, TABS, type Tab } from './queries.ts';
import { Report } from './report.tsx';

const PANELS = { now: Now, report: Report, ledger: Ledger, prices: Prices };

export function BillingPage() {
  const { tab = 'now' } = useSearch({ from: '/shell/billing' });
  const navigate = useNavigate({ from: '/billing' });
  return (
    <Page title={text.billing.title} lead={text.billing.lead}>
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(to) => navigate({ search: to === 'now' ? {} : { tab: to as Tab } })}
      >
        <Tabs.List className={classes.tabList ?? ''}>
          {TABS.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {text.billing.tabs[name]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {TABS.map((name) => {
          const Panel = PANELS[name];
          return (
            <Tabs.Panel key={name} value={name}>
              <Panel />
            </Tabs.Panel>
          );
        })}
      </Tabs>
    </Page>
  );
}

/** Every change of the balance by day, newest first. */
function Ledger() {
  const ledger = useInfiniteQuery(ledgerQuery);
  return (
    <Loaded query={ledger}>
      {({ pages }) => {
        const days = daysOf(pages.flatMap(({ items }) => items));
        // The sums of the oldest day are known only after all of it was read.
        const whole = ledger.hasNextPage ? days.slice(0, -1) : days;
        if (days.length === 0) return <Text c="dimmed">{text.billing.noEntries}</Text>;
        return (
          <Stack>
            <Text c="dimmed">{text.billing.ledgerLead}</Text>
            <DayTable days={whole} />
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

/** The days of the ledger as rows; each opens its entries below it. */
type Day = LedgerDay<LedgerEntry>;

const dateFormat = new Intl.DateTimeFormat(readerLocales, { dateStyle: 'medium', timeZone: 'UTC' });

function DayTable({ days }: { days: readonly Day[] }) {
  const { day: open } = useSearch({ from: '/shell/billing' });
  const navigate = useNavigate({ from: '/billing' });
  const toggle = (day: string) =>
    navigate({
      search: day === open ? { tab: 'ledger' } : { tab: 'ledger', day },
      replace: true,
      resetScroll: false,
    });
  return (
    <LedgerTable
      lines={days.flatMap((day) => [
        dayLine(day, day.date === open, () => toggle(day.date)),
        ...(day.date === open ? day.entries.map(lineOf) : []),
      ])}
      isBold={({ key }) => days.some(({ date }) => date === key)}
    />
  );
}

function dayLine({ date, entries, ...sums }: Day, isOpen: boolean, onToggle: () => void): LedgerLine {
  const Icon = isOpen ? ChevronDownIcon : ChevronRightIcon;
  return {
    key: date,
    when: (
      <UnstyledButton fz="inherit" fw="inherit" aria-expanded={isOpen} onClick={onToggle}>
        <Icon width={14} aria-hidden style={{ verticalAlign: -2, marginInlineEnd: 6 }} />
        {dateFormat.format(Date.parse(`${date}T00:00:00Z`))}
      </UnstyledButton>
    ),
    entry: text.billing.entries(entries.length),
    ...sums,
  };
}
