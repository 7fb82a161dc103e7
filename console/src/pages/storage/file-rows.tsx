/** Only the rows near the window are in the page; the next are read as one scrolls. */
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { BucketEntry, StorageObject } from '../../../../sdk/index.ts';
import { FileCells } from './file-cells.tsx';
import classes from './file-table.module.css';

const ROW_PX = 44;
/** Rows before the end at which more are read. */
const AHEAD = 60;
/** Rows kept above and below the window. */
const AROUND = 12;

interface FileRowsProps {
  readonly bucket: string;
  readonly entries: readonly BucketEntry[];
  /** Characters of names that are not shown. */
  readonly skipped: number;
  /** By id. */
  readonly chosen: ReadonlyMap<string, StorageObject>;
  readonly onChoose: (object: StorageObject, isChosen: boolean) => void;
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

export function FileRows(props: FileRowsProps) {
  const { bucket, entries, skipped, chosen, onChoose, hasMore, onMore } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [topPx, setTopPx] = useState(0);
  useLayoutEffect(() => setTopPx(frame.current?.offsetTop ?? 0), []);
  const rows = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => ROW_PX,
    overscan: AROUND,
    scrollMargin: topPx,
  });
  const shown = rows.getVirtualItems();
  const lastShown = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= entries.length - AHEAD) onMore();
  }, [hasMore, lastShown, entries.length, onMore]);
  return (
    <div
      ref={frame}
      role="rowgroup"
      style={{ height: rows.getTotalSize(), position: 'relative' }}
      data-count={entries.length}
    >
      {shown.map(({ index, start }) => {
        const entry = entries[index];
        if (entry === undefined) return null;
        return (
          <div
            key={entry.name}
            role="row"
            aria-rowindex={index + 2}
            className={`${classes.row} ${classes.placed}`}
            style={{ transform: `translateY(${start - topPx}px)` }}
          >
            <FileCells
              entry={entry}
              label={entry.name.slice(skipped)}
              bucket={bucket}
              isChosen={entry.object !== null && chosen.has(entry.object.id)}
              onChoose={onChoose}
            />
          </div>
        );
      })}
    </div>
  );
}
