/** The report of one month: cost by day and by resource. */

import { Button, Group, SegmentedControl, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Result } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { saveText } from '../../parts/commands/copy.tsx';
import { showRefusal } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits, sayPrice } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { readerLocales } from '../../texts/reader-locales.ts';
import { spendText as words } from '../../texts/spend-text.ts';
import { text } from '../../texts/text.ts';
import { DayBars, MonthSelect } from './month-select.tsx';
import { ResourceLink } from './now.tsx';
import { BYS, periodOf, reportQuery, thisMonth } from './queries.ts';
import { ByResource } from './resource-bars.tsx';

type Usage = Result<'getUsage'>;

/** The API gives nine decimals. */
const quantity = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 9 });

export function Report() {
  const { month = thisMonth(), by = 'service' } = useSearch({ from: '/shell/billing' });
  const navigate = useNavigate({ from: '/billing' });
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-end">
        <MonthSelect value={month} onChange={(value) => navigate({ search: searchOf(value, by) })} />
        <Group>
          <SegmentedControl
            aria-label={words.by}
            value={by}
            onChange={(value) => navigate({ search: searchOf(month, value) })}
            data={BYS.map((value) => ({ value, label: words.bys[value] }))}
          />
          <DownloadButton month={month} />
        </Group>
      </Group>
      {by === 'resource' ? <ByResource month={month} /> : <ByService month={month} />}
    </Stack>
  );
}

function searchOf(month: string, by: string) {
  return { tab: 'report', month, ...(by === 'resource' && { by: 'resource' as const }) } as const;
}

function ByService({ month }: { readonly month: string }) {
  const report = useQuery(reportQuery(month));
  return (
    <Loaded query={report}>
      {(usage) => (
        <Stack gap="xl">
          {Number(usage.total_cost) > 0 && (
            <section>
              <Title order={2} mb="sm">
                {text.billing.daily}
              </Title>
              <DayBars days={usage.daily} />
            </section>
          )}
          <Items usage={usage} />
        </Stack>
      )}
    </Loaded>
  );
}

function DownloadButton({ month }: { month: string }) {
  const [isBusy, setBusy] = useState(false);
  const download = async () => {
    setBusy(true);
    try {
      const content = await cloud.getUsageCsv(periodOf(month));
      saveText({ name: `usage-${month}.csv`, type: 'text/csv', content });
    } catch (error) {
      showRefusal(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button variant="default" loading={isBusy} onClick={download}>
      {text.billing.csv}
    </Button>
  );
}

const dearestFirst = (items: Usage['items']) => items.toSorted((a, b) => Number(b.cost) - Number(a.cost));

const COLUMNS: readonly Column<Usage['items'][number]>[] = [
  { name: text.billing.resource, cell: (item) => <ResourceLink {...item} /> },
  { name: text.billing.meter, cell: ({ meter }) => text.billing.meters[meter] },
  {
    name: text.billing.quantity,
    isNumber: true,
    cell: (item) => `${quantity.format(Number(item.quantity))} ${item.unit}`,
  },
  { name: text.billing.unitPrice, isNumber: true, cell: ({ unit_price: price }) => sayPrice(price) },
  { name: text.billing.cost, isNumber: true, cell: ({ cost }) => sayCredits(cost) },
];

function Items({ usage }: { usage: Usage }) {
  if (usage.items.length === 0) return <Text c="dimmed">{text.billing.noUse}</Text>;
  return (
    <div>
      <DataTable
        columns={COLUMNS}
        rows={dearestFirst(usage.items)}
        keyOf={(item) => `${item.meter} ${item.resource_id} ${item.unit_price}`}
        foot={
          <Table.Tr>
            <Table.Th colSpan={4}>{text.billing.total}</Table.Th>
            <Table.Th ta="right">{sayCredits(usage.total_cost)}</Table.Th>
          </Table.Tr>
        }
      />
      <Text size="sm" c="dimmed">
        {text.billing.asOf} <When at={usage.as_of} />.
      </Text>
    </div>
  );
}
