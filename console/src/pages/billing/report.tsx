/** The report of one month: cost per day, and by resource. */

import { Button, Group, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Result } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { saveText } from '../../parts/copy.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { showRefusal } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits, sayPrice } from '../../parts/say.ts';
import { When } from '../../parts/when.tsx';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import { DayBars, MonthSelect } from './month-select.tsx';
import { ResourceLink } from './now.tsx';
import { periodOf, reportQuery, thisMonth } from './queries.ts';

type Usage = Result<'getUsage'>;

/** The API gives nine decimals. */
const quantity = new Intl.NumberFormat(readerLocales, { maximumFractionDigits: 9 });

export function Report() {
  const { month = thisMonth() } = useSearch({ from: '/shell/billing' });
  const navigate = useNavigate({ from: '/billing' });
  const report = useQuery(reportQuery(month));
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-end">
        <MonthSelect
          value={month}
          onChange={(value) => navigate({ search: { tab: 'report', month: value } })}
        />
        <DownloadButton month={month} />
      </Group>
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
    </Stack>
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

const HEADS = [
  { name: text.billing.resource },
  { name: text.billing.meter },
  { name: text.billing.quantity, isNumber: true },
  { name: text.billing.unitPrice, isNumber: true },
  { name: text.billing.cost, isNumber: true },
];

function Items({ usage }: { usage: Usage }) {
  if (usage.items.length === 0) return <Text c="dimmed">{text.billing.noUse}</Text>;
  return (
    <div>
      <ListTable
        heads={HEADS}
        foot={
          <Table.Tr>
            <Table.Th colSpan={4}>{text.billing.total}</Table.Th>
            <Table.Th ta="right">{sayCredits(usage.total_cost)}</Table.Th>
          </Table.Tr>
        }
      >
        {dearestFirst(usage.items).map((item) => (
          <Table.Tr key={`${item.meter} ${item.resource_id} ${item.unit_price}`}>
            <Table.Td>
              <ResourceLink {...item} />
            </Table.Td>
            <Table.Td>{text.billing.meters[item.meter]}</Table.Td>
            <Table.Td ta="right">
              {quantity.format(Number(item.quantity))} {item.unit}
            </Table.Td>
            <Table.Td ta="right">{sayPrice(item.unit_price)}</Table.Td>
            <Table.Td ta="right">{sayCredits(item.cost)}</Table.Td>
          </Table.Tr>
        ))}
      </ListTable>
      <Text size="sm" c="dimmed">
        {text.billing.asOf} <When at={usage.as_of} />.
      </Text>
    </div>
  );
}
