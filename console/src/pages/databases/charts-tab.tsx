/** What a database takes and does over time. */
import { Group, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Database, DatabaseMetricsEntry } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Chart, type ChartLine } from '../../parts/chart.tsx';
import { gauge, onSteps, rate, type Series, SPANS, type Span, spanQuery } from '../../parts/history.ts';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/size.ts';
import { text } from '../../texts/text.ts';

const words = text.databases.charts;
const number = new Intl.NumberFormat(text.locale, { maximumFractionDigits: 1 });
const sayNumber = (value: number) => number.format(value);
const sayRate = (value: number) => `${number.format(value)}/s`;

export function ChartsTab({ database: { database_id: id } }: { database: Database }) {
  const { span = 'hour' } = useSearch({ from: '/shell/databases/$database' });
  const navigate = useNavigate({ from: '/databases/$database' });
  const metrics = useQuery({
    queryKey: ['databases', id, 'metrics', span],
    queryFn: () => cloud.databases.metrics(id, spanQuery(span)),
    refetchInterval: SPANS[span].refreshMs,
  });
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{words.gaps}</Text>
        <SegmentedControl
          aria-label={words.span}
          value={span}
          data={Object.entries(words.spans).map(([value, label]) => ({ value, label }))}
          onChange={(next) =>
            navigate({ search: (before) => ({ ...before, span: next as Span }), replace: true })
          }
        />
      </Group>
      <Loaded query={metrics}>
        {({ history = [] }) =>
          history.length === 0 ? <Text>{words.none}</Text> : <Charts history={history} span={span} />
        }
      </Loaded>
    </Stack>
  );
}

interface ChartsProps {
  readonly history: readonly DatabaseMetricsEntry[];
  readonly span: Span;
}

function Charts({ history, span }: ChartsProps) {
  const { times, lines } = useMemo(() => {
    const series = onSteps(history, span);
    return { times: series.times, lines: linesOf(series) };
  }, [history, span]);
  const figure = (title: string, of: readonly ChartLine[], say: (value: number) => string) => (
    <Chart title={title} label={words.over(title)} times={times} lines={of} say={say} />
  );
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <Chart
        title={words.size}
        label={words.over(words.size)}
        times={times}
        lines={lines.size}
        say={sayBytes}
        isBinary
      />
      {figure(words.connections, lines.connections, sayNumber)}
      {figure(words.statements, lines.statements, sayRate)}
      {figure(words.rowsOut, lines.rows, sayRate)}
    </SimpleGrid>
  );
}

function linesOf(series: Series<DatabaseMetricsEntry>) {
  return {
    size: [{ label: words.taken, values: gauge(series, (entry) => entry.size_bytes) }],
    connections: [{ label: words.open, values: gauge(series, (entry) => entry.connections) }],
    statements: [{ label: words.perSecond, values: rate(series, (entry) => entry.statements) }],
    rows: [
      { label: words.returned, values: rate(series, (entry) => entry.rows_returned) },
      { label: words.written, values: rate(series, (entry) => entry.rows_written) },
    ],
  };
}
