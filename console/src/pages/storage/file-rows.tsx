/** Only the rows near the window are in the page; the next are read as one scrolls. */
import { useEffect, useRef } from 'react';
import type { BucketEntry } from '../../../../sdk/index.ts';
import { useTallList } from '../../parts/use-tall-list.ts';
import { FileCells } from './file-cells.tsx';
import classes from './file-table.module.css';

const ROW_PX = 44;
/** Rows before the end at which more are read. */
const AHEAD = 120;

interface FileRowsProps {
  readonly bucket: string;
  readonly entries: readonly BucketEntry[];
  /** Characters of names that are not shown. */
  readonly skipped: number;
  readonly areDeleted: boolean;
  /** By name. */
  readonly chosen: ReadonlyMap<string, BucketEntry>;
  readonly onChoose: (entry: BucketEntry, isChosen: boolean) => void;
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

export function FileRows(props: FileRowsProps) {
  const { bucket, entries, skipped, areDeleted, chosen, onChoose, hasMore, onMore } = props;
  const frame = useRef<HTMLDivElement>(null);
  const { heightPx, shown, topOf } = useTallList(frame, { count: entries.length, rowPx: ROW_PX });
  const lastShown = shown.at(-1) ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= entries.length - AHEAD) onMore();
  }, [hasMore, lastShown, entries.length, onMore]);
  return (
    <div
      ref={frame}
      role="rowgroup"
      className={classes.rows}
      style={{ height: heightPx }}
      data-count={entries.length}
    >
      {shown.map((index) => {
        const entry = entries[index];
        if (entry === undefined) return null;
        return (
          <div
            key={entry.name}
            role="row"
            aria-rowindex={index + 2}
            className={`${classes.row} ${classes.placed}`}
            style={{ transform: `translateY(${topOf(index)}px)` }}
          >
            <FileCells
              entry={entry}
              label={entry.name.slice(skipped)}
              bucket={bucket}
              isChosen={chosen.has(entry.name)}
              // What was deleted is restored one by one.
              canChoose={entry.object !== null || !areDeleted}
              onChoose={onChoose}
            />
          </div>
        );
      })}
    </div>
  );
}
