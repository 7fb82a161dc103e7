/** Rows and numbers as in the table. */
import type { Comparison } from './ratios.ts';
import type { Row } from './workshop.ts';

const UNITS = ['B', 'KiB', 'MiB', 'GiB'];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 || unit === 0 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Three significant digits. */
export function formatNumber(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}

export interface RatioRow {
  readonly work: string;
  readonly against: string;
  readonly comparison: Comparison;
  /** The unit of the two quantities: `/s`, `B/s` or `ms`. */
  readonly unit: string;
  readonly atLeast?: number;
  readonly atMost?: number;
}

export function ratioRow({ work, against, comparison, unit, atLeast, atMost }: RatioRow): Row {
  const { ratio, lowest, highest, yardstick, ours, rounds } = comparison;
  const show = (value: number) =>
    unit === 'B/s' ? `${formatBytes(value)}/s` : `${formatNumber(value)}${unit === '/s' ? unit : ` ${unit}`}`;
  const spread = `${lowest.toFixed(2)}–${highest.toFixed(2)}`;
  return {
    work,
    target: atLeast === undefined ? `≤ ${atMost} × ${against}` : `≥ ${atLeast} × ${against}`,
    reached: `**${ratio.toFixed(2)} ×** (${spread})`,
    isMet: ratio >= (atLeast ?? 0) && ratio <= (atMost ?? Number.POSITIVE_INFINITY),
    detail: `${show(ours)} against ${show(yardstick)}, ${rounds} rounds`,
  };
}

/** A row that could not be measured here. */
export function skippedRow(work: string, target: string, why: string): Row {
  return { work, target, reached: '–', isMet: undefined, detail: why };
}

export function renderRow({ work, target, reached, isMet, detail }: Row): string {
  const verdict = isMet === undefined ? 'skipped' : isMet ? 'yes' : 'no';
  return `| ${work} | ${target} | ${reached} | ${verdict} | ${detail} |`;
}

export const TABLE_HEAD =
  '| work | must reach | reached (lowest–highest) | met | medians |\n|---|---|---|---|---|';
