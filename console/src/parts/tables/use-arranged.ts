/** The rows that a list shows. Thousands are arranged in slices, and the former rows stay until then. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { inSlices } from '../slices.ts';
import { arranged, arranging, type Listed } from './arranging.ts';
import type { ListView } from './list-view.ts';

/** Rows that are arranged at once, without the page waiting noticeably. */
const AT_ONCE = 1000;

interface Arranged<Row> {
  readonly found: readonly Row[];
  /** Names the view whose rows these are. */
  readonly of: string;
  /** The rows of the present view are not there yet. */
  readonly isLate: boolean;
}

export function useArranged<Row>(rows: readonly Row[], view: ListView, list: Listed<Row>): Arranged<Row> {
  const { columns } = list;
  const key = viewKey(view);
  const latest = useRef({ view, list });
  latest.current = { view, list };
  const isAtOnce = rows.length <= AT_ONCE || (view.find === undefined && view.column === undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what pages give changes with each rendering
  const now = useMemo(
    () => (isAtOnce ? arranged(rows, latest.current.view, latest.current.list) : undefined),
    [rows, columns, key, isAtOnce],
  );
  const [later, setLater] = useState({ rows, key, found: rows });
  // biome-ignore lint/correctness/useExhaustiveDependencies: as above
  useEffect(() => {
    if (isAtOnce) return;
    const over = new AbortController();
    const { view, list } = latest.current;
    inSlices(arranging(rows, view, list), over.signal).then(
      (found) => setLater({ rows, key, found }),
      () => undefined,
    );
    return () => over.abort();
  }, [rows, columns, key, isAtOnce]);
  if (now !== undefined) return { found: now, of: key, isLate: false };
  return { found: later.found, of: later.key, isLate: later.rows !== rows || later.key !== key };
}

/** Two views with one key show the same rows. */
const viewKey = ({ find, column, down }: ListView): string => JSON.stringify([find, column, down]);
