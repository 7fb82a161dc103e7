/** Charts of readings over a span of time, and the choice of the span. */
import { TableCellsIcon } from '@heroicons/react/24/outline';
import { Button, Group, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { text } from '../../texts/text.ts';
import { Loaded, type Read } from '../page.tsx';
import { type Column, DataTable } from '../tables/data-table.tsx';
import { Chart, type ChartLine, sayMoment } from './chart.tsx';
import { onSteps, type Series, type Span } from './steps.ts';

export interface Figure {
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly say: (value: number) => string;
  /** See ChartProps. */
  readonly max?: number;
  readonly isBinary?: boolean;
}

interface HistoryChartsProps<T> {
  readonly query: Read<{ readonly history?: readonly T[] }>;
  /** As chosen. */
  readonly span: Span;
  /** Whose step the readings have. */
  readonly readings: Span;
  readonly onSpan: (span: Span) => void;
  /** The meaning of gaps, and the text for no readings. */
  readonly words: { readonly gaps: string; readonly none: string };
  /** Must be stable between renderings. */
  readonly figuresOf: (series: Series<T>) => readonly Figure[];
}

export function HistoryCharts<T extends { readonly timestamp: string }>(props: HistoryChartsProps<T>) {
  const { query, span, readings, onSpan, words, figuresOf } = props;
  const { spans, span: label, asTable } = text.shell.charts;
  const [isTable, setTable] = useState(false);
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{words.gaps}</Text>
        <Group gap="xs">
          <Button
            variant={isTable ? 'light' : 'default'}
            leftSection={<TableCellsIcon width={16} aria-hidden />}
            aria-pressed={isTable}
            onClick={() => setTable(!isTable)}
          >
            {asTable}
          </Button>
          <SegmentedControl
            aria-label={label}
            value={span}
            data={Object.entries(spans).map(([value, name]) => ({ value, label: name }))}
            onChange={(next) => onSpan(next as Span)}
          />
        </Group>
      </Group>
      <Loaded query={query}>
        {({ history = [] }) =>
          history.length === 0 ? (
            <Text>{words.none}</Text>
          ) : (
            <Figures history={history} readings={readings} figuresOf={figuresOf} isTable={isTable} />
          )
        }
      </Loaded>
    </Stack>
  );
}

type FiguresProps<T> = Pick<HistoryChartsProps<T>, 'readings' | 'figuresOf'> & {
  readonly history: readonly T[];
  readonly isTable: boolean;
};

function Figures<T extends { readonly timestamp: string }>(props: FiguresProps<T>) {
  const { history, readings, figuresOf, isTable } = props;
  const { times, figures } = useMemo(() => {
    const series = onSteps(history, readings);
    return { times: series.times, figures: figuresOf(series) };
  }, [history, readings, figuresOf]);
  if (isTable) return <Readings times={times} figures={figures} />;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      {figures.map((figure) => (
        <Chart key={figure.title} label={text.shell.charts.over(figure.title)} times={times} {...figure} />
      ))}
    </SimpleGrid>
  );
}

interface ReadingsProps {
  /** s since 1970. */
  readonly times: readonly number[];
  readonly figures: readonly Figure[];
}

/**
 * The same data as text, for readers who cannot see the lines or want exact figures. The newest is
 * on top.
 */
function Readings({ times, figures }: ReadingsProps) {
  const lines = figures.flatMap(({ title, lines: some, say }) =>
    some.map(({ label, values }) => ({ name: `${title}: ${label}`, values, say })),
  );
  const columns: readonly Column<number>[] = [
    { name: text.shell.time, cell: (at) => sayMoment((times[at] ?? 0) * 1000) },
    ...lines.map(({ name, values, say }) => ({
      name,
      isNumber: true,
      cell: (at: number) => sayReading(values[at] ?? null, say),
    })),
  ];
  const read = [...times.keys()].filter((at) => lines.some(({ values }) => (values[at] ?? null) !== null));
  return <DataTable columns={columns} rows={read.reverse()} keyOf={(at) => times[at] ?? at} />;
}

const sayReading = (value: number | null, say: Figure['say']) => (value === null ? '–' : say(value));
