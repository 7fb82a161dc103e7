/** Edits of the cells of a grid, collected until they run. */
import { Button, Group, Text } from '@mantine/core';
import { type KeyboardEvent, type ReactNode, useState } from 'react';
import type { DatabaseRows, DatabaseTable } from '../../../../../sdk/index.ts';
import { rowsText } from '../../../texts/rows-text.ts';
import {
  countOf,
  editedText,
  keyOf,
  NO_CHANGES,
  type Pending,
  type Row,
  toggleDelete,
  typedValue,
  withInserted,
  withValue,
} from './changes.ts';
import type { RowPages } from './row-pages.ts';
import classes from './rows.module.css';
import type { Place } from './rows-grid.tsx';

const words = rowsText;

export interface Editing {
  readonly pending: Pending;
  readonly canEdit: boolean;
  /** Whether the database computes the values of the column, which takes none. */
  readonly isComputed: (column: number) => boolean;
  readonly count: number;
  readonly rowAt: (index: number) => Row | undefined;
  readonly markOf: (row: number) => string | undefined;
  readonly isChanged: (row: number, column: number) => boolean;
  readonly onKey: (event: KeyboardEvent) => boolean;
  readonly open: (place: Place) => void;
  readonly instead: (place: Place) => ReactNode;
  readonly set: (place: Place, value: unknown) => void;
  readonly addRow: () => void;
  readonly deleteRow: (row: number) => void;
  readonly clear: () => void;
}

interface EditingOptions {
  readonly pages: RowPages;
  readonly first: DatabaseRows | undefined;
  readonly table: DatabaseTable;
  readonly active: Place;
  readonly onActive: (place: Place) => void;
}

/** Rows after the last one are new. */
export function useEditing({ pages, first, table, active, onActive }: EditingOptions): Editing {
  const [pending, setPending] = useState(NO_CHANGES);
  const [place, setPlace] = useState<Place | null>(null);
  const keys = (first?.key ?? []).map((name) => first?.columns.findIndex((one) => one.name === name) ?? -1);
  const canEdit = keys.length > 0;
  const computed = computedOf(table, first);
  const newAt = (row: number) => row - pages.count;
  const { rowAt: read } = pages;
  const rowAt = (index: number): Row | undefined => {
    if (newAt(index) >= 0) return first?.columns.map((_, at) => pending.inserts[newAt(index)]?.get(at));
    const row = read(index);
    const values = row && pending.updates.get(keyOf(row, keys))?.values;
    return values === undefined ? row : row?.map((value, at) => (values.has(at) ? values.get(at) : value));
  };
  const set = ({ row, column }: Place, value: unknown) => {
    if (computed.has(column)) return;
    const old = read(row);
    if (newAt(row) >= 0) setPending((before) => withInserted(before, newAt(row), [column, value]));
    else if (old !== undefined)
      setPending((before) => withValue(before, { key: keyOf(old, keys), old, column, value }));
  };
  const deleteRow = (row: number) => {
    const old = read(row);
    if (newAt(row) >= 0)
      setPending((before) => ({ ...before, inserts: before.inserts.filter((_, at) => at !== newAt(row)) }));
    else if (old !== undefined) setPending((before) => toggleDelete(before, keyOf(old, keys), old));
  };
  const open = (next: Place) => {
    const value = rowAt(next.row)?.[next.column];
    if (canEdit && !computed.has(next.column) && editedText(value) !== undefined) setPlace(next);
  };
  const onKey = ({ key }: KeyboardEvent): boolean => {
    if (!canEdit) return false;
    if (key === 'Enter' || key === 'F2') open(active);
    else if (key === 'Delete') deleteRow(active.row);
    else return false;
    return true;
  };
  const end = () => {
    setPlace(null);
    // The cell gets the focus back from its field.
    setTimeout(() => document.querySelector<HTMLElement>('[role=grid] [data-active]')?.focus());
  };
  return {
    pending,
    canEdit,
    isComputed: (column) => computed.has(column),
    count: pages.count + pending.inserts.length,
    rowAt,
    markOf: (row) => {
      const old = read(row);
      if (newAt(row) >= 0) return 'new';
      return old !== undefined && pending.deletes.has(keyOf(old, keys)) ? 'deleted' : undefined;
    },
    isChanged: (row, column) => {
      const old = read(row);
      if (newAt(row) >= 0) return pending.inserts[newAt(row)]?.has(column) ?? false;
      return old !== undefined && (pending.updates.get(keyOf(old, keys))?.values.has(column) ?? false);
    },
    onKey,
    open,
    instead: (at) => {
      if (place?.row !== at.row || place.column !== at.column) return undefined;
      const value = rowAt(at.row)?.[at.column];
      return (
        <CellField
          label={first?.columns[at.column]?.name ?? ''}
          text={editedText(value) ?? ''}
          onEnd={(typed) => {
            if (typed !== null) set(at, typedValue(typed, value));
            end();
          }}
        />
      );
    },
    set,
    addRow: () => {
      setPending((before) => ({ ...before, inserts: [...before.inserts, new Map()] }));
      onActive({ row: pages.count + pending.inserts.length, column: 0 });
    },
    deleteRow,
    clear: () => setPending(NO_CHANGES),
  };
}

/** Indexes of the columns that take no values. */
function computedOf({ columns }: DatabaseTable, first: DatabaseRows | undefined): ReadonlySet<number> {
  const names = new Set(columns.filter(({ generated }) => generated === true).map(({ name }) => name));
  return new Set(first?.columns.flatMap(({ name }, at) => (names.has(name) ? [at] : [])));
}

interface CellFieldProps {
  readonly label: string;
  readonly text: string;
  /** null: cancelled. */
  readonly onEnd: (typed: string | null) => void;
}

function CellField({ label, text: before, onEnd }: CellFieldProps) {
  const [typed, setTyped] = useState(before);
  const [isOver, setOver] = useState(false);
  const finish = (value: string | null) => {
    if (isOver) return;
    setOver(true);
    // Unchanged text keeps NULL, or a default.
    onEnd(value === before ? null : value);
  };
  return (
    <input
      className={classes.field}
      aria-label={label}
      autoComplete="off"
      spellCheck={false}
      ref={(field) => {
        if (field !== null && document.activeElement !== field) field.focus();
      }}
      value={typed}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      onBlur={() => finish(typed)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') finish(typed);
        else if (event.key === 'Escape') finish(null);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}

interface EditBarProps {
  readonly editing: Editing;
  readonly table: DatabaseTable;
  readonly active: Place;
  readonly onReview: () => void;
}

export function EditBar({ editing, table, active, onReview }: EditBarProps) {
  const changes = countOf(editing.pending);
  if (!editing.canEdit)
    return (
      <Text size="sm" c="dimmed">
        {table.type === 'view' ? words.viewReadOnly : words.noKey}
      </Text>
    );
  return (
    <Group gap="xs">
      <Button size="xs" variant="default" onClick={editing.addRow}>
        {words.addRow}
      </Button>
      <Button
        size="xs"
        variant="default"
        disabled={editing.isComputed(active.column)}
        onClick={() => editing.set(active, null)}
      >
        {words.setNull}
      </Button>
      <Button size="xs" variant="default" onClick={() => editing.deleteRow(active.row)}>
        {editing.markOf(active.row) === 'deleted' ? words.keepRow : words.deleteRow}
      </Button>
      {changes > 0 && (
        <>
          <Button size="xs" onClick={onReview}>
            {words.review(changes)}
          </Button>
          <Button size="xs" variant="default" onClick={editing.clear}>
            {words.discard}
          </Button>
        </>
      )}
      {editing.isComputed(active.column) && (
        <Text size="sm" c="dimmed" role="status">
          {words.computed}
        </Text>
      )}
    </Group>
  );
}
