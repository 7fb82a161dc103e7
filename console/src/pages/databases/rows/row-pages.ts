/** Rows of a table by pages; only pages near the viewport are read. */
import { keepPreviousData, useQueries } from '@tanstack/react-query';
import { useState } from 'react';
import type { DatabaseRows, DatabaseRowsQuery } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';

export type RowsAsk = Pick<DatabaseRowsQuery, 'table' | 'schema' | 'filter' | 'sort'>;

const PAGE_ROWS = 100;
/** Taller lists are cut off by browsers. */
export const MOST_ROWS = 400_000;

export interface RowPages {
  /** The first page: all pages have its columns. */
  readonly first: DatabaseRows | undefined;
  /** Rows to scroll through. */
  readonly count: number;
  /** Number of filtered rows; null: counting takes too long. */
  readonly total: number | null;
  readonly isReading: boolean;
  readonly error: unknown;
  /** undefined: not read yet. */
  readonly rowAt: (index: number) => readonly unknown[] | undefined;
  /** Reads the pages that contain these rows. */
  readonly show: (from: number, to: number) => void;
  readonly refresh: () => Promise<unknown>;
}

/** A complete page, even if its rows are too large for one response. */
async function readPage(id: string, ask: RowsAsk, { page, signal }: { page: number; signal: AbortSignal }) {
  const skip = page * PAGE_ROWS;
  const read = (more: object) =>
    cloud.readDatabaseRows(id, { ...ask, limit: PAGE_ROWS, skip, ...more }, { signal });
  const found = await read({ count: page === 0 });
  let { rows, truncated } = found;
  while (truncated) {
    const next = await read({ skip: skip + rows.length, limit: PAGE_ROWS - rows.length });
    if (next.rows.length === 0) break;
    rows = [...rows, ...next.rows];
    truncated = next.truncated && rows.length < PAGE_ROWS;
  }
  return { ...found, rows, truncated };
}

export function useRowPages(id: string, ask: RowsAsk): RowPages {
  const [[from, to], setRange] = useState<readonly [number, number]>([0, 0]);
  const pages = [...new Set([0, ...Array.from({ length: to - from + 1 }, (_, at) => from + at)])];
  const queries = useQueries({
    queries: pages.map((page) => ({
      queryKey: ['databases', id, 'rows', ask, page],
      queryFn: ({ signal }: { signal: AbortSignal }) => readPage(id, ask, { page, signal }),
      ...(page === 0 ? { placeholderData: keepPreviousData } : {}),
    })),
  });
  const read = new Map(pages.map((page, at) => [page, queries[at]?.data]));
  const first = read.get(0);
  const total = first?.total ?? null;
  const ends = pages.map((page) => {
    const found = read.get(page)?.rows.length ?? 0;
    return page * PAGE_ROWS + (found === PAGE_ROWS ? 2 * PAGE_ROWS : found);
  });
  return {
    first,
    count: Math.min(MOST_ROWS, total ?? Math.max(...ends)),
    total,
    isReading: queries.some(({ isFetching }) => isFetching),
    error: queries.find(({ error }) => error !== null)?.error ?? null,
    rowAt: (index) => read.get(Math.floor(index / PAGE_ROWS))?.rows[index % PAGE_ROWS],
    show: (first, last) => {
      const next = [Math.floor(first / PAGE_ROWS), Math.floor(last / PAGE_ROWS)] as const;
      setRange((before) => (before[0] === next[0] && before[1] === next[1] ? before : next));
    },
    refresh: () => Promise.all(queries.map((query) => query.refetch())),
  };
}
