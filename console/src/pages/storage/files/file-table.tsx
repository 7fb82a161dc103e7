/** A folder as a table: its columns, what is chosen of it, and what can be done with that. */

import { ArrowUturnLeftIcon, ChevronDownIcon, ChevronUpIcon, TrashIcon } from '@heroicons/react/24/outline';
import { Button, Group, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useCallback, useEffect, useRef, useState } from 'react';
import type { BucketEntry } from '../../../../../sdk/index.ts';
import { useTallList } from '../../../parts/tables/use-tall-list.ts';
import { text } from '../../../texts/text.ts';
import type { FilesSearch } from '../queries.ts';
import classes from '../storage.module.css';
import { useDelete, useRestore } from './delete-restore.tsx';
import { FileCells } from './file-cells.tsx';

/** By name; folders too. */
type Chosen = ReadonlyMap<string, BucketEntry>;

interface FileTableProps {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly search: FilesSearch;
  readonly entries: readonly BucketEntry[];
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

export function FileTable({ bucket, isVersioned, search, entries, hasMore, onMore }: FileTableProps) {
  const [chosen, setChosen] = useState<Chosen>(new Map());
  const choose = useCallback((entry: BucketEntry, isChosen: boolean) => {
    setChosen((before) => {
      const next = new Map(before);
      if (isChosen) next.set(entry.name, entry);
      else next.delete(entry.name);
      return next;
    });
  }, []);
  return (
    <>
      <ChosenBar
        bucket={bucket}
        isVersioned={isVersioned}
        areDeleted={search.deleted === true}
        chosen={chosen}
        onDone={() => setChosen(new Map())}
      />
      <div role="table" aria-label={text.storage.objects} aria-rowcount={hasMore ? -1 : entries.length + 1}>
        <FileHead search={search} />
        <FileRows
          bucket={bucket}
          areDeleted={search.deleted === true}
          entries={entries}
          // Names that are found are shown whole.
          skipped={search.find === undefined ? (search.prefix?.length ?? 0) : 0}
          chosen={chosen}
          onChoose={choose}
          hasMore={hasMore}
          onMore={onMore}
        />
      </div>
    </>
  );
}

interface ChosenBarProps {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly areDeleted: boolean;
  readonly chosen: Chosen;
  readonly onDone: () => void;
}

function ChosenBar({ bucket, isVersioned, areDeleted, chosen, onDone }: ChosenBarProps) {
  const deleting = useDelete({ bucket, isVersioned, onDone });
  const restoring = useRestore({ bucket, onDone });
  if (chosen.size === 0) return deleting.question;
  const all = [...chosen.values()];
  const objects = all.flatMap(({ object }) => object ?? []);
  const targets = all.map(({ name, object }) => ({ name, id: object?.id }));
  return (
    <Group className={classes.chosen ?? ''} role="status">
      <Text size="sm" fw={550}>
        {text.storage.chosen(chosen.size)}
      </Text>
      <Button
        size="compact-sm"
        variant="default"
        leftSection={areDeleted ? <ArrowUturnLeftIcon width={16} /> : <TrashIcon width={16} />}
        loading={areDeleted ? restoring.isPending : deleting.isBusy}
        onClick={() => (areDeleted ? restoring.mutate(objects) : deleting.ask(targets))}
      >
        {areDeleted ? text.storage.restore : text.storage.delete}
      </Button>
      <Button size="compact-sm" variant="subtle" onClick={onDone}>
        {text.storage.chooseNone}
      </Button>
      {deleting.question}
    </Group>
  );
}

/** Only the rows near the window are in the page; the next are read as one scrolls. */
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

function FileRows(props: FileRowsProps) {
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
              // Deleted files are restored one by one.
              canChoose={entry.object !== null || !areDeleted}
              onChoose={onChoose}
            />
          </div>
        );
      })}
    </div>
  );
}

type Column = 'name' | 'size' | 'created_at';

/** Column headings. A click sorts the whole folder; another one reverses the order. */
function FileHead({ search }: { search: FilesSearch }) {
  const { deleted = false } = search;
  return (
    <div role="row" className={`${classes.row} ${classes.head}`}>
      <span role="columnheader" aria-label={text.storage.choose} />
      <SortableHead column="name" label={text.storage.name} search={search} />
      {deleted ? (
        <>
          <span role="columnheader" className={classes.size}>
            {text.storage.size}
          </span>
          <span role="columnheader" className={classes.date}>
            {text.storage.deletedAt}
          </span>
        </>
      ) : (
        <>
          <SortableHead column="size" label={text.storage.size} search={search} className={classes.size} />
          <SortableHead
            column="created_at"
            label={text.storage.changed}
            search={search}
            className={classes.date}
          />
        </>
      )}
    </div>
  );
}

interface SortableHeadProps {
  readonly column: Column;
  readonly label: string;
  readonly search: FilesSearch;
  readonly className?: string | undefined;
}

function SortableHead({ column, label, search, className }: SortableHeadProps) {
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const { sort = 'name', order = 'asc' } = search;
  const isSorted = sort === column;
  // Large and new files are looked for more often.
  const first = column === 'name' ? 'asc' : 'desc';
  const next = isSorted ? (order === 'asc' ? 'desc' : 'asc') : first;
  const Arrow = order === 'asc' ? ChevronUpIcon : ChevronDownIcon;
  return (
    <span
      role="columnheader"
      className={className}
      aria-sort={isSorted ? (order === 'asc' ? 'ascending' : 'descending') : 'none'}
    >
      <button
        type="button"
        className={`${classes.sort} ${isSorted ? classes.sorted : ''}`}
        title={text.storage.sortBy(label, next === 'desc')}
        onClick={() =>
          void navigate({
            search: ({ sort: _, order: __, object: ___, ...view }) => ({
              ...view,
              ...(column === 'name' ? {} : { sort: column }),
              ...(next === 'desc' ? { order: next } : {}),
            }),
          })
        }
      >
        {label}
        {isSorted && <Arrow width={12} aria-hidden />}
      </button>
    </span>
  );
}
