/** Lines over time. A missing value is a gap; nothing is drawn through it. */
import { Title, useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import classes from './chart.module.css';

export interface ChartLine {
  readonly label: string;
  /** One value for each time. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title?: string;
  /** For screen readers. */
  readonly label: string;
  /** s since 1970, ascending. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly say: (value: number) => string;
  /** The end of the scale, if known: 100 for percent. */
  readonly max?: number | undefined;
  /** Bytes: the marks of the scale are powers of two. */
  readonly isBinary?: boolean | undefined;
}

const HEIGHT = 190;
/** Width of the axis labels, px. */
const AXIS_WIDTH = 74;
/** px for the times below. */
const TIME_HEIGHT = 30;
const DAY_SECONDS = 86_400;
/** Opacity of the area below a line: two hexadecimal digits. */
const WASH = '1f';
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);
const LOOK = {
  light: { axis: '#625d54', strokes: ['#14776e', '#b3652a'] },
  dark: { axis: '#aaa69d', strokes: ['#4fb0a5', '#e2a06a'] },
} as const;

export function Chart({ title, label, times, lines, say, max, isBinary }: ChartProps) {
  const container = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme('light');
  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const width = element.clientWidth;
    const { axis, strokes } = LOOK[scheme];
    const look = { stroke: axis, grid: { stroke: '#88888826', width: 1 }, ticks: { show: false } };
    const last = lastReading(lines);
    const showLast = (plot: UPlot) => plot.setLegend({ idx: last });
    const options: UPlot.Options = {
      width,
      height: HEIGHT,
      cursor: { y: false, points: { size: 6 } },
      legend: { markers: { fill: (_, index) => strokes[(index - 1) % strokes.length] ?? axis } },
      hooks: { ready: [showLast], setCursor: [(plot) => plot.cursor.idx == null && showLast(plot)] },
      scales: { y: { range: (_, ...[, most]) => [0, max ?? scaleEnd(most)] } },
      axes: [
        {
          ...look,
          size: TIME_HEIGHT,
          values: (_, marks, ...[, , step]) => marks.map((mark) => sayMark(mark, step)),
        },
        {
          ...look,
          size: AXIS_WIDTH,
          values: (_, marks) => marks.map(say),
          ...(isBinary ? { incrs: POWERS_OF_TWO } : {}),
        },
      ],
      series: [
        { label: text.shell.time, value: (_, at) => (at === null ? '' : sayMoment(at * 1000)) },
        ...lines.map((line, index) => ({
          label: line.label,
          stroke: strokes[index % strokes.length] ?? axis,
          width: 1.5,
          // Overlapping lines keep their own colours.
          ...(lines.length === 1 ? { fill: `${strokes[0]}${WASH}` } : {}),
          spanGaps: false,
          points: { size: 4, filter: (_: UPlot, index: number) => alone(lines[index - 1]?.values ?? []) },
          value: (_: UPlot, value: number | null) => (value === null ? '–' : say(value)),
        })),
      ],
    };
    const data = [times, ...lines.map(({ values }) => values)] as unknown as UPlot.AlignedData;
    const plot = new UPlot(options, data, element);
    const sizes = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      plot.destroy();
    };
  }, [times, lines, say, max, isBinary, scheme]);
  return (
    <section>
      {title !== undefined && (
        <Title order={2} mb={4}>
          {title}
        </Title>
      )}
      <div ref={container} className={classes.chart} role="img" aria-label={label} />
    </section>
  );
}

const scaleEnd = (most: number | null) => (most === null || most <= 0 ? 1 : most * 1.1);
const HOURS = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const DAYS = { day: 'numeric', month: 'short' } as const;
const moment = new Intl.DateTimeFormat(readerLocales, { ...DAYS, ...HOURS });
const utc = new Intl.DateTimeFormat(readerLocales, { ...HOURS, timeZone: 'UTC' });
const clock = new Intl.DateTimeFormat(readerLocales, HOURS);
const day = new Intl.DateTimeFormat(readerLocales, DAYS);

/** In the reader's zone, and as UTC. */
export const sayMoment = (ms: number): string => `${moment.format(ms)} · ${utc.format(ms)} UTC`;

function sayMark(seconds: number, step: number): string {
  return (step >= DAY_SECONDS ? day : clock).format(seconds * 1000);
}

/** Readings between two gaps: no line shows them, so they are drawn as points. */
function alone(values: ChartLine['values']): number[] {
  return values.flatMap((value, index) => {
    const isAlone = (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null;
    return value !== null && isAlone ? index : [];
  });
}

/** Index of the newest reading, shown in the legend by default. */
function lastReading(lines: readonly ChartLine[]): number {
  return Math.max(...lines.map(({ values }) => values.findLastIndex((value) => value !== null)), 0);
}
