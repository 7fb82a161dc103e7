/** The view of a list, filtered and sorted; part of the page's address. */
import { readerLocales } from '../../texts/reader-locales.ts';

export interface ListView {
  /** Rows with all of these words. */
  readonly find?: string;
  /** Id of the column; default: the order of the cloud. */
  readonly column?: string;
  /** Largest first. */
  readonly down?: true;
}

interface SortedColumn<Row> {
  readonly id?: string;
  readonly value?: (row: Row) => string | number | null;
}

/** The members of an address that a list reads; others are dropped. */
export function listSearch({ find, column, down }: Record<string, unknown>): ListView {
  return {
    ...(typeof find === 'string' && find !== '' ? { find } : {}),
    ...(typeof column === 'string' && column !== '' ? { column } : {}),
    ...(down === true ? { down } : {}),
  };
}

const collator = new Intl.Collator(readerLocales, { numeric: true });

/** The rows that the view shows, in its order. Rows without a value come last. */
export function arranged<Row>(
  rows: readonly Row[],
  view: ListView,
  { columns, textOf }: { columns: readonly SortedColumn<Row>[]; textOf: (row: Row) => string },
): readonly Row[] {
  const words = (view.find ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const found =
    words.length === 0
      ? rows
      : rows.filter((row) => {
          const text = textOf(row).toLowerCase();
          return words.every((word) => text.includes(word));
        });
  const value = columns.find(({ id }) => id !== undefined && id === view.column)?.value;
  if (value === undefined) return found;
  const sign = view.down ? -1 : 1;
  return found.toSorted((a, b) => compared(value(a), value(b), sign));
}

function compared(a: string | number | null, b: string | number | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
  return sign * collator.compare(String(a), String(b));
}

/** The view after a click on a column heading: ascending, descending, then the cloud's order. */
export function sortedBy({ column, down, ...view }: ListView, id: string): ListView {
  if (column !== id) return { ...view, column: id };
  return down ? view : { ...view, column: id, down: true };
}
