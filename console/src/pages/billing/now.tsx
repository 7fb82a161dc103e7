/** Balance, current spending, remaining time, and the resources in use. */

import { Progress, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Result } from '../../../../sdk/index.ts';
import { Chart } from '../../parts/charts/chart.tsx';
import { CreditWarning } from '../../parts/credit-warning.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes, sayCount, sayCredits } from '../../parts/say.ts';
import { SpendWarning } from '../../parts/spend-warning.tsx';
import type { Column } from '../../parts/tables/data-table.tsx';
import { Figures } from '../../parts/tables/facts.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import { text } from '../../texts/text.ts';
import { estimateQuery, quotasQuery } from './queries.ts';
import { SpendCap } from './spend-cap.tsx';
import { useMonthCost } from './use-month-cost.ts';

type Estimate = Result<'getEstimate'>;
type Quotas = Result<'getQuotas'>;
type Bound = keyof typeof text.billing.quotas;

export function Now() {
  const estimate = useQuery(estimateQuery);
  const quotas = useQuery(quotasQuery);
  return (
    <Stack gap="xl">
      <CreditWarning />
      <SpendWarning />
      <Loaded query={estimate}>
        {(now) => (
          <Stack gap="xl">
            <Rates now={now} />
            {now.days_left !== null && (
              <Forecast spendable={Number(now.spendable)} daysLeft={now.days_left} />
            )}
            <section>
              <Title order={2} mb="xs">
                {text.billing.inUse}
              </Title>
              <InUse items={now.items} />
            </section>
          </Stack>
        )}
      </Loaded>
      <SpendCap />
      <Loaded query={quotas}>{(limits) => <Limits {...limits} />}</Loaded>
    </Stack>
  );
}

function Rates({ now }: { now: Estimate }) {
  const month = useMonthCost();
  const days = now.days_left;
  const isFree = Number(now.per_hour) === 0;
  const rates = [
    { name: text.billing.perHour, value: sayCredits(now.per_hour) },
    { name: text.billing.perDay, value: sayCredits(now.per_day) },
    { name: text.billing.perMonth, value: sayCredits(now.per_month) },
  ];
  return (
    <Figures
      figures={[
        {
          name: text.billing.spendable,
          value: sayCredits(now.spendable),
          note: Number(now.held) > 0 ? text.billing.held(sayCredits(now.held)) : '',
        },
        ...(days === null
          ? []
          : [{ name: text.billing.lasts, value: text.billing.lastsDays(Math.floor(days)) }]),
        ...(isFree ? [] : rates),
        { name: text.billing.thisMonth, ...month },
      ]}
    />
  );
}

type Item = Estimate['items'][number];

/** `per_hour`, `per_day` or `per_month`: the most expensive ones are found by a press. */
function rate(id: 'per_hour' | 'per_day' | 'per_month', name: string): Column<Item> {
  return {
    name,
    id,
    isNumber: true,
    value: (item) => Number(item[id]),
    cell: (item) => sayCredits(item[id]),
  };
}

const COLUMNS: readonly Column<Item>[] = [
  {
    name: text.billing.resource,
    id: 'resource',
    value: ({ name }) => name,
    cell: (item) => <ResourceLink {...item} />,
  },
  {
    name: text.billing.meter,
    id: 'meter',
    value: ({ meter }) => text.billing.meters[meter],
    cell: ({ meter }) => text.billing.meters[meter],
  },
  rate('per_hour', text.billing.perHour),
  rate('per_day', text.billing.perDay),
  rate('per_month', text.billing.perMonth),
];

function InUse({ items }: { items: Estimate['items'] }) {
  const { tab: _, month: __, day: ___, by: ____, ...view } = useSearch({ from: '/shell/billing' });
  const navigate = useNavigate({ from: '/billing' });
  const charged = useMemo(() => items.filter((item) => Number(item.per_hour) > 0), [items]);
  const free = items.length - charged.length;
  if (charged.length === 0) return <Text c="dimmed">{text.billing.nothingInUse}</Text>;
  return (
    <>
      <ListTable
        columns={COLUMNS}
        rows={charged}
        keyOf={(item) => `${item.meter} ${item.resource_id} ${item.unit_price}`}
        nameOf={({ name }) => name}
        textOf={({ name, resource_id, meter }) => `${name} ${resource_id} ${text.billing.meters[meter]}`}
        view={view}
        onView={(next) => navigate({ search: next, replace: true, resetScroll: false })}
      />
      {free > 0 && (
        <Text size="sm" c="dimmed">
          {text.billing.freeToo(free)}
        </Text>
      )}
    </>
  );
}

function Limits({ plan, quotas }: Quotas) {
  const names = Object.keys(text.billing.quotas) as Bound[];
  return (
    <section>
      <Title order={2}>{text.billing.limits}</Title>
      <Text c="dimmed" size="sm" mb="sm">
        {text.billing.plan(plan)}
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="lg">
        {names.map((name) => (
          <Limit key={name} name={name} {...quotas[name]} />
        ))}
      </SimpleGrid>
    </section>
  );
}

/** Whole percent: a share as small as 4e-9 is not a valid ARIA value. */
function shareOf(used: number, limit: number): number {
  return limit === 0 ? 100 : Math.round((used / limit) * 100);
}

function Limit({ name, used, limit }: { name: Bound } & Quotas['quotas'][Bound]) {
  const say = name === 'storage_bytes' ? sayBytes : sayCount;
  const label = text.billing.quotas[name];
  return (
    <div>
      <Text size="sm">{label}</Text>
      <Text size="sm" c="dimmed">
        {limit === null ? text.billing.noLimit(say(used)) : text.billing.limit(say(used), say(limit))}
      </Text>
      {limit !== null && <Progress value={shareOf(used, limit)} size="sm" mt={4} aria-label={label} />}
    </div>
  );
}

/** Forecast of the balance at the current usage. */
const DAY_SECONDS = 86_400;
/** A chart of years would show a flat line. */
const SHOWN_DAYS = 90;
const POINTS = 60;

function Forecast({ spendable, daysLeft }: { spendable: number; daysLeft: number }) {
  const { times, lines } = useMemo(() => {
    const days = Math.min(SHOWN_DAYS, Math.max(1, daysLeft * 1.1));
    const now = Date.now() / 1000;
    const ahead = Array.from({ length: POINTS + 1 }, (_, point) => (days * point) / POINTS);
    const left = (day: number) => (daysLeft > 0 ? Math.max(0, spendable * (1 - day / daysLeft)) : 0);
    return {
      times: ahead.map((day) => now + day * DAY_SECONDS),
      lines: [{ label: text.billing.spendable, values: ahead.map(left) }],
    };
  }, [spendable, daysLeft]);
  return (
    <section>
      <Title order={2}>{text.billing.forecast}</Title>
      <Text c="dimmed" size="sm" mb="sm">
        {text.billing.forecastLead}
      </Text>
      <Chart label={text.billing.forecast} times={times} lines={lines} say={sayCredits} />
    </section>
  );
}

interface Resource {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly name: string;
}

/** The name of a resource as a link to it. */
export function ResourceLink({ resource_type: type, resource_id: id, name }: Resource) {
  if (type === 'bucket') {
    return (
      <AnchorLink to="/storage/$bucket" params={{ bucket: name }}>
        {name}
      </AnchorLink>
    );
  }
  if (type === 'vm') {
    return (
      <AnchorLink to="/machines/$vm" params={{ vm: id }}>
        {name}
      </AnchorLink>
    );
  }
  return (
    <AnchorLink to="/databases/$database" params={{ database: id }}>
      {name}
    </AnchorLink>
  );
}
