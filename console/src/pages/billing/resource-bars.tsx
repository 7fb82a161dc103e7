/** The costs of a month by resource: bars by day, and the resources that cost most with links to them. */
import { Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Result } from '../../../../sdk/index.ts';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { spendText as words } from '../../texts/spend-text.ts';
import { text } from '../../texts/text.ts';
import classes from './day-bars.module.css';
import { ResourceLink } from './now.tsx';
import { resourcesQuery } from './queries.ts';

type Costs = Result<'getUsageByResource'>;

/** Parts of the bars, each with its colour. */
interface Part {
  readonly key: string;
  readonly name: string;
  readonly days: readonly (number | string)[];
}

export function ByResource({ month }: { readonly month: string }) {
  const costs = useQuery(resourcesQuery(month));
  return (
    <Loaded query={costs}>
      {(found) =>
        Number(found.total_cost) === 0 ? (
          <Text c="dimmed">{text.billing.noUse}</Text>
        ) : (
          <Stack gap="xl">
            <ResourceBars costs={found} />
            <section>
              <Title order={2} mb="sm">
                {words.byResource}
              </Title>
              <DataTable columns={COLUMNS} rows={found.resources} keyOf={(one) => one.resource_id} />
              {found.others.count > 0 && (
                <Text size="sm" c="dimmed">
                  {words.others(found.others.count)}: {sayCredits(found.others.cost)}
                </Text>
              )}
            </section>
          </Stack>
        )
      }
    </Loaded>
  );
}

const COLUMNS: readonly Column<Costs['resources'][number]>[] = [
  {
    name: text.billing.resource,
    cell: (one) => (one.is_deleted ? `${one.name} (${words.deleted})` : <ResourceLink {...one} />),
  },
  {
    name: words.kind,
    cell: ({ resource_type: type }) => text.billing.resources[type as keyof typeof text.billing.resources],
  },
  { name: text.billing.cost, isNumber: true, cell: ({ cost }) => sayCredits(cost) },
];

function ResourceBars({ costs: { dates, resources, others } }: { readonly costs: Costs }) {
  const rest = { key: 'others', name: words.others(others.count), days: others.days };
  const parts: readonly Part[] = [
    ...resources.map(({ resource_id, name, days }) => ({ key: resource_id, name, days })),
    ...(others.count > 0 ? [rest] : []),
  ];
  const totalOf = (day: number) => parts.reduce((sum, { days }) => sum + Number(days[day] ?? 0), 0);
  const most = Math.max(...dates.map((_, day) => totalOf(day)), Number.MIN_VALUE);
  const colourOf = (part: Part) => (part === rest ? 'others' : String(parts.indexOf(part)));
  return (
    <section>
      <Title order={2} mb="sm">
        {text.billing.daily}
      </Title>
      <ol className={classes.days}>
        {dates.map((date, day) => {
          const shown = parts.filter(({ days }) => Number(days[day] ?? 0) > 0);
          const said = shown.map(({ name, days }) => `${name} ${sayCredits(days[day] ?? 0)}`).join(', ');
          const told = text.billing.costOn(date, sayCredits(totalOf(day)), said);
          return (
            <li key={date} title={told}>
              {shown.toReversed().map((part) => (
                <span
                  key={part.key}
                  className={classes.bar}
                  data-part={colourOf(part)}
                  style={{ height: `${(Number(part.days[day]) / most) * 100}%` }}
                />
              ))}
              <span className={classes.words}>{told}</span>
              <span className={classes.date} aria-hidden>
                {Number(date.slice(8))}
              </span>
            </li>
          );
        })}
      </ol>
      <Group gap="md" mt="xs" aria-hidden>
        {parts.map((part) => (
          <Group key={part.key} gap={6}>
            <span className={classes.swatch} data-part={colourOf(part)} />
            <Text size="sm" c="dimmed">
              {part.name}
            </Text>
          </Group>
        ))}
      </Group>
    </section>
  );
}
