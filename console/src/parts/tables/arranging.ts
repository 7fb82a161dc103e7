/** Filters and sorts the rows of a list; not part of the first load, as the view of a list is. */
import { readerLocales } from '../../texts/reader-locales.ts';
import { atOnce, type Work } from '../slices.ts';
import type { ListView } from './list-view.ts';

interface SortedColumn<Row> {
  readonly id?: string;
  readonly value?: (row: Row) => string | number | null;
}

const collator = new Intl.Collator(readerLocales, { numeric: true });

export interface Listed<Row> {
  readonly columns: readonly SortedColumn<Row>[];
  /** The text that the filter searches. */
  readonly textOf: (row: Row) => string;
}

/** The rows that the view shows, in its order. Rows without a value come last. */
export const arranged = <Row>(rows: readonly Row[], view: ListView, list: Listed<Row>): readonly Row[] =>
  atOnce(arranging(rows, view, list));

/** Like arranged(), with frequent pauses: names of ten thousand rows take a tenth of a second to compare. */
export function* arranging<Row>(
  rows: readonly Row[],
  view: ListView,
  { columns, textOf }: Listed<Row>,
): Work<readonly Row[]> {
  const words = (view.find ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? rows : yield* matching(rows, words, textOf);
  const value = columns.find(({ id }) => id !== undefined && id === view.column)?.value;
  if (value === undefined) return found;
  const sign = view.down ? -1 : 1;
  return yield* sorted(found, (a, b) => compared(value(a), value(b), sign));
}

/** Rows or comparisons between two pauses. */
const STEP = 256;

function* matching<Row>(
  rows: readonly Row[],
  words: readonly string[],
  textOf: (row: Row) => string,
): Work<readonly Row[]> {
  const found: Row[] = [];
  for (const [index, row] of rows.entries()) {
    const text = textOf(row).toLowerCase();
    if (words.every((word) => text.includes(word))) found.push(row);
    if (index % STEP === STEP - 1) yield;
  }
  return found;
}

type Compare<Row> = (a: Row, b: Row) => number;

/** A merge sort: rows that compare equal stay in their order. */
function* sorted<Row>(rows: readonly Row[], compare: Compare<Row>): Work<readonly Row[]> {
  let runs: (readonly Row[])[] = [];
  for (let from = 0; from < rows.length; from += STEP / 8) {
    runs.push(rows.slice(from, from + STEP / 8).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const longer: (readonly Row[])[] = [];
    for (let at = 0; at < runs.length; at += 2) {
      longer.push(yield* merged(runs[at] ?? [], runs[at + 1] ?? [], compare));
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

function* merged<Row>(one: readonly Row[], other: readonly Row[], compare: Compare<Row>): Work<Row[]> {
  const all: Row[] = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    const isOther = compare(other[j] as Row, one[i] as Row) < 0;
    all.push((isOther ? other[j++] : one[i++]) as Row);
    if (all.length % STEP === 0) yield;
  }
  return all.concat(one.slice(i), other.slice(j));
}

function compared(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
  return sign * collator.compare(String(a), String(b));
}
