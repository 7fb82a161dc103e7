/** A folder as a table: columns, selection, and actions on it. */

import { ChevronDownIcon, ChevronUpIcon } from '@heroicons/react/24/outline';
import { Text, VisuallyHidden } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type DragEvent, type RefObject, useCallback, useEffect, useRef } from 'react';
import type { BucketEntry } from '../../../../../sdk/index.ts';
import { useListKeys } from '../../../parts/tables/use-list-keys.ts';
import { useTallList } from '../../../parts/tables/use-tall-list.ts';
import { text } from '../../../texts/text.ts';
import type { FilesSearch } from '../queries.ts';
import classes from '../storage.module.css';
import { ChosenBar } from './chosen-bar.tsx';
import { FileCells } from './file-cells.tsx';
import { type FileActions, useFileActions } from './use-file-actions.tsx';
import { beginDrag, endDrag, useFolderDrop } from './use-file-drag.tsx';
import { type Chosen, type Selection, useSelection } from './use-selection.ts';

interface FileTableProps {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly search: FilesSearch;
  readonly entries: readonly BucketEntry[];
  /** The folder is too large to sort other than by UTF-8 bytes. */
  readonly isByBytes: boolean;
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

export function FileTable(props: FileTableProps) {
  const { bucket, isVersioned, search, entries, isByBytes, hasMore, onMore } = props;
  const areDeleted = search.deleted === true;
  // Deleted files are restored individually.
  const canChoose = useCallback(({ object }: BucketEntry) => object !== null || !areDeleted, [areDeleted]);
  const selection = useSelection(entries, canChoose);
  const { chosen, choose, chooseAll, clear } = selection;
  const { prefix = '' } = search;
  const actions = useFileActions({ bucket, isVersioned, prefix, onDone: clear });
  const { act } = actions;
  const table = useRef<HTMLDivElement>(null);
  const navigate = useNavigate({ from: '/storage/$bucket' });
  // The details follow the arrow keys.
  const show = ({ object }: BucketEntry) => {
    if (search.object === undefined || object === null) return;
    void navigate({
      search: (view) => ({ ...view, object: object.id }),
      resetScroll: false,
      replace: true,
    });
  };
  const preview = ({ object }: BucketEntry) => {
    if (object === null) return;
    void navigate({
      search: ({ object: opened, ...view }) => (opened === object.id ? view : { ...view, object: object.id }),
      resetScroll: false,
      replace: search.object !== undefined,
    });
  };
  useKeys(table, { entries, selection, show, preview, act: areDeleted ? undefined : act });
  return (
    <>
      <ChosenBar bucket={bucket} areDeleted={areDeleted} chosen={chosen} actions={actions} onDone={clear} />
      {actions.windows}
      {isByBytes && (
        <Text size="xs" c="dimmed">
          {text.storage.byBytes}
        </Text>
      )}
      <div
        ref={table}
        role="table"
        aria-label={text.storage.objects}
        aria-rowcount={hasMore ? -1 : entries.length + 1}
      >
        <FileHead
          search={search}
          isAll={chosen.size > 0 && chosen.size >= entries.length}
          isSome={chosen.size > 0}
          onAll={(isAll) => (isAll ? chooseAll() : clear())}
        />
        <FileRows
          bucket={bucket}
          entries={entries}
          // Names in search results are shown in full.
          skipped={search.find === undefined ? prefix.length : 0}
          chosen={chosen}
          canChoose={canChoose}
          onChoose={choose}
          onAct={areDeleted ? undefined : act}
          onMoved={clear}
          opened={search.object}
          hasMore={hasMore}
          onMore={onMore}
        />
      </div>
    </>
  );
}

interface KeyTargets {
  readonly entries: readonly BucketEntry[];
  readonly selection: Selection;
  readonly show: (entry: BucketEntry) => void;
  /** Opens the details, or closes them if they are open. */
  readonly preview: (entry: BucketEntry) => void;
  /** Absent: no keyboard actions. */
  readonly act: FileActions['act'] | undefined;
}

function useKeys(
  table: RefObject<HTMLDivElement | null>,
  { entries, selection, show, preview, act }: KeyTargets,
): void {
  const { chosen, choose, chooseAll, clear } = selection;
  const at = (index: number) => entries.slice(index, index + 1);
  useListKeys(table, {
    count: entries.length,
    choose: (index, isChosen, isRange) => {
      for (const entry of at(index)) choose(entry, isChosen ?? !chosen.has(entry.name), isRange);
    },
    chooseAll,
    clear: () => {
      clear();
      return chosen.size > 0;
    },
    moved: (index) => at(index).forEach(show),
    preview: (index) => at(index).forEach(preview),
    rename: (index) => act?.('rename', at(index)),
    remove: (index) => act?.('delete', chosen.size > 0 ? [...chosen.values()] : at(index), true),
  });
}

/** Only rows near the viewport are rendered; further ones are loaded while scrolling. */
const ROW_PX = 44;
/** Number of rows before the end at which more are read. */
const AHEAD = 120;

interface FileRowsProps {
  readonly bucket: string;
  readonly entries: readonly BucketEntry[];
  /** Characters of names that are hidden. */
  readonly skipped: number;
  readonly chosen: Chosen;
  readonly canChoose: (entry: BucketEntry) => boolean;
  readonly onChoose: Selection['choose'];
  /** Absent: rows have no menu. */
  readonly onAct: FileActions['act'] | undefined;
  /** Dragged files were moved to another folder. */
  readonly onMoved: () => void;
  /** Id of the file whose details are shown. */
  readonly opened: string | undefined;
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

function FileRows(props: FileRowsProps) {
  const { bucket, entries, skipped, chosen, canChoose, onChoose, onAct, onMoved, opened, hasMore, onMore } =
    props;
  const frame = useRef<HTMLDivElement>(null);
  const { heightPx, shown, topOf } = useTallList(frame, { count: entries.length, rowPx: ROW_PX });
  const { into, windows } = useFolderDrop(bucket);
  const drag = (event: DragEvent, entry: BucketEntry) => {
    const all = chosen.has(entry.name) ? [...chosen.values()] : [entry];
    const targets = all.map(({ name, object }) => ({ name, id: object?.id }));
    beginDrag(event, { bucket, targets, onDone: onMoved });
  };
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
      {windows}
      {shown.map((index) => {
        const entry = entries[index];
        if (entry === undefined) return null;
        return (
          <div
            key={entry.name}
            role="row"
            aria-rowindex={index + 2}
            className={`${classes.row} ${classes.placed}`}
            {...(opened !== undefined && entry.object?.id === opened && { 'aria-current': true })}
            style={{ transform: `translateY(${topOf(index)}px)` }}
            {...(onAct !== undefined && {
              draggable: true,
              onDragStart: (event: DragEvent) => drag(event, entry),
              onDragEnd: endDrag,
              ...(entry.object === null && into(entry.name)),
            })}
          >
            <FileCells
              entry={entry}
              label={entry.name.slice(skipped)}
              bucket={bucket}
              isChosen={chosen.has(entry.name)}
              canChoose={canChoose(entry)}
              onChoose={onChoose}
              onAct={onAct}
            />
          </div>
        );
      })}
    </div>
  );
}

type Column = 'name' | 'size' | 'created_at';

interface FileHeadProps {
  readonly search: FilesSearch;
  readonly isAll: boolean;
  readonly isSome: boolean;
  readonly onAll: (isAll: boolean) => void;
}

/** Column headings. A click sorts the whole folder; another one reverses the order. */
function FileHead({ search, isAll, isSome, onAll }: FileHeadProps) {
  const { deleted = false } = search;
  return (
    <div role="row" className={`${classes.row} ${classes.head}`}>
      <span role="columnheader">
        <input
          type="checkbox"
          className={classes.box}
          aria-label={text.storage.chooseAll}
          checked={isAll}
          ref={(box) => {
            if (box !== null) box.indeterminate = isSome && !isAll;
          }}
          onChange={({ currentTarget }) => onAll(currentTarget.checked)}
        />
      </span>
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
      <span role="columnheader" className={classes.menu}>
        <VisuallyHidden>{text.storage.actionsOfFile}</VisuallyHidden>
      </span>
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
  // People look for large and new files more often.
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
