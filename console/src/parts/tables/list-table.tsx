/** A table that its reader filters, sorts and makes dense, and of which some rows can be selected. */
import { Bars2Icon } from '@heroicons/react/24/outline';
import { ActionIcon, Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { type Key, type ReactNode, useState } from 'react';
import { listsText as words } from '../../texts/lists-text.ts';
import { type Column, DataTable } from './data-table.tsx';
import { arranged, type ListView, sortedBy } from './list-view.ts';

/** Rows at first, and more with each press: a table of thousands would hold the page up. */
const PAGE_ROWS = 200;

interface ManyRows<Row> {
  /** "3 machines". */
  readonly say: (rows: number) => string;
  /** Buttons for the selected rows; `choose` selects only the rows with these keys. */
  readonly actions: (selected: readonly Row[], choose: (keys: readonly Key[]) => void) => ReactNode;
}

interface ListTableProps<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => Key;
  readonly nameOf: (row: Row) => string;
  /** The text that the filter looks in. */
  readonly textOf: (row: Row) => string;
  readonly view: ListView;
  readonly onView: (view: ListView) => void;
  /** Missing: no row can be selected. */
  readonly many?: ManyRows<Row>;
}

export function ListTable<Row>(props: ListTableProps<Row>) {
  const { columns, rows, keyOf, nameOf, textOf, view, onView, many } = props;
  const [limit, setLimit] = useState(PAGE_ROWS);
  const [chosen, setChosen] = useState<ReadonlySet<Key>>(new Set());
  const [isDense, setDense] = useLocalStorage({
    key: 'cloudlet.dense-lists',
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  const found = arranged(rows, view, { columns, textOf });
  const shown = found.slice(0, limit);
  const choose = (some: readonly Row[], isChosen: boolean) => {
    const keys = new Set(some.map(keyOf));
    const rest = [...chosen].filter((key) => !keys.has(key));
    setChosen(new Set(isChosen ? [...rest, ...keys] : rest));
  };
  const [first, ...others] = columns;
  const isSelectable = many !== undefined && first !== undefined;
  const withBoxes = isSelectable
    ? [boxed(first, { nameOf, isChosen: (row) => chosen.has(keyOf(row)), choose }), ...others]
    : columns;
  // Actions apply only to rows that pass the filter.
  const selected = found.filter((row) => chosen.has(keyOf(row)));
  return (
    <Stack gap="xs">
      <Toolbar view={view} onView={onView} isDense={isDense} onDense={setDense}>
        {words.shown(found.length, rows.length)}
      </Toolbar>
      {isSelectable && (
        <Group mih={36}>
          <Checkbox
            label={words.selectAll(found.length)}
            checked={selected.length > 0 && selected.length === found.length}
            indeterminate={selected.length > 0 && selected.length < found.length}
            disabled={found.length === 0}
            onChange={({ currentTarget }) => choose(found, currentTarget.checked)}
          />
          {selected.length > 0 && (
            <Group gap="xs" role="group" aria-label={words.selected(many.say(selected.length))}>
              <Text size="sm">{words.selected(many.say(selected.length))}</Text>
              {many.actions(selected, (keys) => setChosen(new Set(keys)))}
            </Group>
          )}
        </Group>
      )}
      <DataTable
        columns={withBoxes}
        rows={shown}
        keyOf={keyOf}
        isDense={isDense}
        sorted={view}
        onSort={(id) => onView(sortedBy(view, id))}
      />
      {found.length === 0 && rows.length > 0 && (
        <Group>
          <Text c="dimmed">{words.noneFound}</Text>
          <Button variant="default" size="compact-sm" onClick={() => onView(withoutFilter(view))}>
            {words.clear}
          </Button>
        </Group>
      )}
      {found.length > shown.length && (
        <Button variant="default" onClick={() => setLimit(limit + PAGE_ROWS)}>
          {words.more(Math.min(PAGE_ROWS, found.length - shown.length))}
        </Button>
      )}
    </Stack>
  );
}

function withoutFilter({ find: _, ...rest }: ListView): ListView {
  return rest;
}

interface ToolbarProps {
  readonly view: ListView;
  readonly onView: (view: ListView) => void;
  readonly isDense: boolean;
  readonly onDense: (isDense: boolean) => void;
  readonly children: ReactNode;
}

function Toolbar({ view, onView, isDense, onDense, children }: ToolbarProps) {
  /** The address follows the typed text with a short delay. */
  const [typed, setTyped] = useState<string>();
  const look = (find: string) => {
    setTyped(find);
    onView(find === '' ? withoutFilter(view) : { ...view, find });
  };
  return (
    <Group justify="space-between">
      <TextInput
        type="search"
        aria-label={words.filter}
        placeholder={words.filter}
        value={typed ?? view.find ?? ''}
        onChange={({ currentTarget }) => look(currentTarget.value)}
        onBlur={() => setTyped(undefined)}
      />
      <Group gap="xs">
        <Text size="sm" c="dimmed" role="status">
          {children}
        </Text>
        <ActionIcon
          variant={isDense ? 'light' : 'default'}
          size="lg"
          aria-label={words.dense}
          aria-pressed={isDense}
          title={words.dense}
          onClick={() => onDense(!isDense)}
        >
          <Bars2Icon width={18} aria-hidden />
        </ActionIcon>
      </Group>
    </Group>
  );
}

interface Boxes<Row> {
  readonly nameOf: (row: Row) => string;
  readonly isChosen: (row: Row) => boolean;
  readonly choose: (rows: readonly Row[], isChosen: boolean) => void;
}

/** The column with a box before its content. */
function boxed<Row>(column: Column<Row>, { nameOf, isChosen, choose }: Boxes<Row>): Column<Row> {
  return {
    ...column,
    cell: (row) => (
      <Group gap="sm" wrap="nowrap">
        <Checkbox
          aria-label={words.selectOne(nameOf(row))}
          checked={isChosen(row)}
          onChange={({ currentTarget }) => choose([row], currentTarget.checked)}
        />
        <div>{column.cell(row)}</div>
      </Group>
    ),
  };
}
