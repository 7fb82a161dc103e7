/** Lines over time. A missing value is a gap; nothing is drawn through it. */
import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { text } from '../texts/text.ts';
import classes from './chart.module.css';

export interface ChartLine {
  readonly label: string;
  /** As many as there are times. */
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly label: string;
  /** s since 1970, ascending. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly say: (value: number) => string;
  /** The end of the scale, where it is known: 100 for percent. */
  readonly max?: number;
}

const HEIGHT = 190;
/** px for the numbers beside the lines. */
const AXIS_WIDTH = 74;
const STROKES = { light: ['#14776e', '#b3652a'], dark: ['#4fb0a5', '#e2a06a'] } as const;

export function Chart({ label, times, lines, say, max }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme('light');
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const colors = getComputedStyle(document.documentElement);
    const axis = {
      stroke: colors.getPropertyValue('--soft') || '#888',
      grid: { stroke: '#88888826', width: 1 },
    };
    const options: UPlot.Options = {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { live: true },
      cursor: { y: false },
      scales: { y: { range: (_, least, most) => [Math.min(0, least ?? 0), max ?? scaleEnd(most)] } },
      axes: [
        { ...axis, stroke: scheme === 'dark' ? '#aaa69d' : '#625d54' },
        {
          ...axis,
          stroke: scheme === 'dark' ? '#aaa69d' : '#625d54',
          size: AXIS_WIDTH,
          values: (_, marks) => marks.map(say),
        },
      ],
      series: [
        { label: text.shell.time, value: (_, at) => (at === null ? '' : sayMoment(at)) },
        ...lines.map((line, index) => ({
          label: line.label,
          stroke: STROKES[scheme][index % 2] ?? '#888',
          width: 1.5,
          spanGaps: false,
          points: { show: false },
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
  }, [times, lines, say, max, scheme]);
  return <div ref={place} className={classes.chart} role="img" aria-label={label} />;
}

const scaleEnd = (most: number | null) => (most === null || most <= 0 ? 1 : most * 1.1);
const moment = new Intl.DateTimeFormat(text.locale, { dateStyle: 'short', timeStyle: 'medium' });
const sayMoment = (seconds: number) => moment.format(seconds * 1000);
