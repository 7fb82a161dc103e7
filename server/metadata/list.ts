/** Paged lists: rows are read in batches, to bound memory. */
import type { Awaitable } from './metadata.ts';

export interface Page {
  /** The page begins after this row id. */
  readonly after: number;
  /** Infinity: all. */
  readonly limit: number;
}

interface ListRow {
  readonly id: number;
}

/** An entry with its row, whose id is the position in the list. Its JSON is the entry alone. */
export class Listed<Row extends ListRow, Entry> {
  readonly row: Row;
  readonly #entry: Entry;

  constructor(row: Row, entry: Entry) {
    this.row = row;
    this.#entry = entry;
  }

  get id(): number {
    return this.row.id;
  }

  toJSON(): Entry {
    return this.#entry;
  }
}

const STEP = 1000;

/** The rows of a page in the order of `read`, which fetches at most `step` of them at a time. */
export async function* listRows<Row extends ListRow>(
  { after, limit }: Page,
  read: (after: number, limit: number) => Awaitable<Row[]>,
  step = STEP,
): AsyncGenerator<Row> {
  let last = after;
  for (let left = limit; left > 0; ) {
    const size = Math.min(left, step);
    const rows = await read(last, size);
    yield* rows;
    if (rows.length < size) return;
    left -= size;
    last = rows.at(-1)?.id ?? last;
  }
}
