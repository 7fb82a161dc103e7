/** A table that its reader filters, sorts and makes dense, and of which some rows can be selected. */
import { Bars2Icon, ViewColumnsIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Button, Checkbox, Group, Menu, Stack, Text, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import {
  type Key,
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { listsText as words } from '../../texts/lists-text.ts';
import { type Column, DataTable } from './data-table.tsx';
import { hiddenIn, type ListView, sortedBy } from './list-view.ts';
import { useArranged } from './use-arranged.ts';
import { useListKeys } from './use-list-keys.ts';

/** Rows at first, and more with each press: a table of thousands would block the page. */
const PAGE_ROWS = 200;
/** Rows rendered at once; more follow in batches of this size between user actions. */
const DRAWN_ROWS = 16;

interface ManyRows<Row> {
  /** "3 machines". */
  readonly say: (rows: number) => string;
  /** Buttons for the selected rows; `choose` selects only the rows with these keys. */
  readonly actions: (selected: readonly Row[], choose: (keys: readonly Key[]) => void) => ReactNode;
  /** The Delete key: asks about the selected rows, or else the one that has the focus. */
  readonly onDelete?: (rows: readonly Row[], choose: (keys: readonly Key[]) => void) => void;
  /** F2, on the row that has the focus. */
  readonly onRename?: (row: Row) => void;
}

interface ListTableProps<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => Key;
  readonly nameOf: (row: Row) => string;
  /** The text that the filter searches. */
  readonly textOf: (row: Row) => string;
  readonly view: ListView;
  readonly onView: (view: ListView) => void;
  /** Missing: no row can be selected. */
  readonly many?: ManyRows<Row>;
}

export function ListTable<Row>(props: ListTableProps<Row>) {
  const { rows, keyOf, nameOf, textOf, view, onView, many } = props;
  const columns = useShown(props.columns, view.hide);
  const [limit, setLimit] = useState(PAGE_ROWS);
  const [chosen, setChosen] = useState<ReadonlySet<Key>>(new Set());
  const [isDense, setDense] = useLocalStorage({
    key: 'cloudlet.dense-lists',
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  const { found, of, isLate } = useArranged(rows, view, { columns, textOf });
  const shown = found.slice(0, limit);
  const drawn = useDrawn(shown.length, of);
  const choose = (some: readonly Row[], isChosen: boolean) => {
    const keys = new Set(some.map(keyOf));
    setChosen((before) => {
      const rest = [...before].filter((key) => !keys.has(key));
      return new Set(isChosen ? [...rest, ...keys] : rest);
    });
  };
  const latest = useRef(choose);
  latest.current = choose;
  const chooseOne = useCallback((row: Row, isChosen: boolean) => latest.current([row], isChosen), []);
  const boxes =
    many === undefined
      ? undefined
      : { chosen, nameOf: (row: Row) => words.selectOne(nameOf(row)), onChoose: chooseOne };
  const chooseKeys = (keys: readonly Key[]) => setChosen(new Set(keys));
  // Actions apply only to rows that pass the filter.
  const selected = found.filter((row) => chosen.has(keyOf(row)));
  const table = useRef<HTMLDivElement>(null);
  useKeys(table, { rows: shown.slice(0, drawn), found, selected, chosen, keyOf, choose, chooseKeys, many });
  return (
    <Stack gap="xs">
      <Toolbar view={view} onView={onView} columns={props.columns} isDense={isDense} onDense={setDense}>
        {words.shown(found.length, rows.length)}
      </Toolbar>
      {many !== undefined && (
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
              {many.actions(selected, chooseKeys)}
            </Group>
          )}
        </Group>
      )}
      <div ref={table}>
        <DataTable
          columns={columns}
          rows={shown.slice(0, drawn)}
          rowCount={found.length}
          keyOf={keyOf}
          isBusy={isLate}
          boxes={boxes}
          isDense={isDense}
          sorted={view}
          onSort={(id) => onView(sortedBy(view, id))}
        />
      </div>
      {found.length === 0 && rows.length > 0 && (
        <Group>
          <Text c="dimmed">{words.noneFound}</Text>
          <Button variant="default" size="compact-sm" onClick={() => onView(withoutFilter(view))}>
            {words.clear}
          </Button>
        </Group>
      )}
      {found.length > shown.length && drawn >= shown.length && (
        <Button variant="default" onClick={() => setLimit(limit + PAGE_ROWS)}>
          {words.more(Math.min(PAGE_ROWS, found.length - shown.length))}
        </Button>
      )}
    </Stack>
  );
}

/** The columns without the hidden ones; the first has the names, and stays. */
function useShown<Row>(all: readonly Column<Row>[], hide: string | undefined): readonly Column<Row>[] {
  return useMemo(() => {
    const hidden = hiddenIn(hide === undefined ? {} : { hide });
    return all.filter(({ id }, at) => at === 0 || id === undefined || !hidden.includes(id));
  }, [all, hide]);
}

interface KeyTargets<Row> extends Pick<ListTableProps<Row>, 'rows' | 'keyOf'> {
  readonly many: ManyRows<Row> | undefined;
  readonly found: readonly Row[];
  readonly selected: readonly Row[];
  readonly chosen: ReadonlySet<Key>;
  readonly choose: (rows: readonly Row[], isChosen: boolean) => void;
  readonly chooseKeys: (keys: readonly Key[]) => void;
}

function useKeys<Row>(table: RefObject<HTMLDivElement | null>, targets: KeyTargets<Row>): void {
  const { rows, keyOf, many, found, selected, chosen, choose, chooseKeys } = targets;
  const last = useRef(0);
  const at = (index: number) => rows.slice(index, index + 1);
  const rename = many?.onRename;
  const toggle = (index: number, isChosen?: boolean, isRange = false) => {
    const [from, to] = isRange ? [last.current, index].sort((a, b) => a - b) : [index, index];
    last.current = index;
    const some = rows.slice(from, (to ?? index) + 1);
    choose(some, isChosen ?? !some.every((row) => chosen.has(keyOf(row))));
  };
  useListKeys(table, {
    count: rows.length,
    choose: many && toggle,
    chooseAll: () => choose(found, true),
    clear: () => {
      chooseKeys([]);
      return chosen.size > 0;
    },
    rename: rename && ((index) => at(index).forEach(rename)),
    remove:
      many?.onDelete && ((index) => many.onDelete?.(selected.length > 0 ? selected : at(index), chooseKeys)),
  });
}

/** Number of the `count` rows to render now; grows by itself, and restarts with another view. */
function useDrawn(count: number, key: string): number {
  const [{ rows, of }, setDrawn] = useState({ rows: DRAWN_ROWS, of: key });
  const drawn = of === key ? rows : DRAWN_ROWS;
  useEffect(() => {
    if (drawn >= count) return;
    const next = setTimeout(() => setDrawn({ rows: drawn + DRAWN_ROWS, of: key }));
    return () => clearTimeout(next);
  }, [drawn, count, key]);
  return drawn;
}

function withoutFilter({ find: _, ...rest }: ListView): ListView {
  return rest;
}

type NamedColumn = Pick<Column<never>, 'id' | 'name'>;

interface ToolbarProps {
  readonly view: ListView;
  readonly onView: (view: ListView) => void;
  readonly columns: readonly NamedColumn[];
  readonly isDense: boolean;
  readonly onDense: (isDense: boolean) => void;
  readonly children: ReactNode;
}

function Toolbar({ view, onView, columns, isDense, onDense, children }: ToolbarProps) {
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
        <ColumnsMenu view={view} onView={onView} columns={columns} />
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

/** Shows and hides columns; the address of the page keeps the choice. */
function ColumnsMenu({ view, onView, columns }: Pick<ToolbarProps, 'view' | 'onView' | 'columns'>) {
  const choices = columns.slice(1).filter(({ id }) => id !== undefined);
  if (choices.length < 2) return null;
  const hidden = hiddenIn(view);
  const change = (shown: readonly string[]) => {
    const { hide: _, ...rest } = view;
    const hide = choices.flatMap(({ id = '' }) => (shown.includes(id) ? [] : id)).join();
    onView(hide === '' ? rest : { ...rest, hide });
  };
  return (
    <Menu position="bottom-end" closeOnItemClick={false}>
      <Menu.Target>
        <ActionIcon variant="default" size="lg" aria-label={words.columns} title={words.columns}>
          <ViewColumnsIcon width={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.CheckboxGroup
          value={choices.flatMap(({ id = '' }) => (hidden.includes(id) ? [] : id))}
          onChange={change}
        >
          {choices.map(({ id = '', name }) => (
            <Menu.CheckboxItem key={id} value={id}>
              {name}
            </Menu.CheckboxItem>
          ))}
        </Menu.CheckboxGroup>
      </Menu.Dropdown>
    </Menu>
  );
}
