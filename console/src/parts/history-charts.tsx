/** Charts of what was read over a span of time, and the choice of the span. */
import { Group, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core';
import { useMemo } from 'react';
import { text } from '../texts/text.ts';
import { Chart, type ChartLine } from './chart.tsx';
import { onSteps, type Series, type Span } from './history.ts';
import { Loaded, type Read } from './page.tsx';

export interface Figure {
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly say: (value: number) => string;
  /** As of Chart. */
  readonly max?: number;
  readonly isBinary?: boolean;
}

interface HistoryChartsProps<T> {
  readonly query: Read<{ readonly history?: readonly T[] }>;
  readonly span: Span;
  readonly onSpan: (span: Span) => void;
  /** What gaps mean, and what is said when nothing was read. */
  readonly words: { readonly gaps: string; readonly none: string };
  /** Kept by the caller from one rendering to the next. */
  readonly figuresOf: (series: Series<T>) => readonly Figure[];
}

export function HistoryCharts<T extends { readonly timestamp: string }>(props: HistoryChartsProps<T>) {
  const { query, span, onSpan, words, figuresOf } = props;
  const { spans, span: label } = text.shell.charts;
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{words.gaps}</Text>
        <SegmentedControl
          aria-label={label}
          value={span}
          data={Object.entries(spans).map(([value, name]) => ({ value, label: name }))}
          onChange={(next) => onSpan(next as Span)}
        />
      </Group>
      <Loaded query={query}>
        {({ history = [] }) =>
          history.length === 0 ? (
            <Text>{words.none}</Text>
          ) : (
            <Figures history={history} span={span} figuresOf={figuresOf} />
          )
        }
      </Loaded>
    </Stack>
  );
}

type FiguresProps<T> = Pick<HistoryChartsProps<T>, 'span' | 'figuresOf'> & { readonly history: readonly T[] };

function Figures<T extends { readonly timestamp: string }>({ history, span, figuresOf }: FiguresProps<T>) {
  const { times, figures } = useMemo(() => {
    const series = onSteps(history, span);
    return { times: series.times, figures: figuresOf(series) };
  }, [history, span, figuresOf]);
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      {figures.map((figure) => (
        <Chart key={figure.title} label={text.shell.charts.over(figure.title)} times={times} {...figure} />
      ))}
    </SimpleGrid>
  );
}
