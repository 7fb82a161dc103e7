/** The rows of one table: filtered, sorted, any number. */
import { ArrowPathIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Group, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useMemo, useState } from 'react';
import type { Database, DatabaseTable } from '../../../../../sdk/index.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Refused } from '../../../parts/forms/warning.tsx';
import { rowsText } from '../../../texts/rows-text.ts';
import { changesOf, countOf } from './changes.ts';
import { ExportMenu } from './export-menu.tsx';
import { FilterBar } from './filter-bar.tsx';
import { nextSort } from './filters.ts';
import { LeaveQuestion } from './leave-question.tsx';
import { Review } from './review.tsx';
import { MOST_ROWS, type RowPages, type RowsAsk, useRowPages } from './row-pages.ts';
import { type Place, RowsGrid } from './rows-grid.tsx';
import { EditBar, useEditing } from './use-editing.tsx';

const words = rowsText;

interface RowsViewProps {
  readonly database: Database;
  readonly table: DatabaseTable;
}

export function RowsView({ database: { database_id: id }, table }: RowsViewProps) {
  const { where: filter, by: sort } = useSearch({ from: '/shell/databases/$database' });
  const navigate = useNavigate({ from: '/databases/$database' });
  const ask = useMemo<RowsAsk>(
    () => ({
      ...tableOf(table),
      ...(filter === undefined ? {} : { filter: [...filter] }),
      ...(sort === undefined ? {} : { sort: [sort] }),
    }),
    [table, filter, sort],
  );
  const queryClient = useQueryClient();
  const pages = useRowPages(id, ask);
  const [active, setActive] = useState<Place>({ row: 0, column: 0 });
  const [isReviewed, setReviewed] = useState(false);
  const editing = useEditing({ pages, first: pages.first, table, active, onActive: setActive });
  const columns = table.columns.map(({ name }) => name);
  const show = useStable(pages.show);
  return (
    <Stack gap="xs">
      <FilterBar
        key={table.name}
        columns={columns}
        filters={filter ?? []}
        onChange={(next) =>
          navigate({
            search: ({ where: _, ...before }) => ({ ...before, ...(next.length > 0 && { where: next }) }),
          })
        }
      />
      <Group justify="space-between">
        <Facts pages={pages} />
        <ExportMenu id={id} table={table} />
      </Group>
      <Refused error={pages.error} />
      {pages.first !== undefined && (
        <RowsGrid
          label={words.gridOf(table.name)}
          columns={pages.first.columns}
          sample={pages.first.rows.slice(0, SAMPLE_ROWS)}
          count={editing.count}
          rowAt={editing.rowAt}
          markOf={editing.markOf}
          isChanged={editing.isChanged}
          instead={editing.instead}
          onKey={editing.onKey}
          onOpen={editing.open}
          sort={sort}
          active={active}
          onActive={setActive}
          onShow={show}
          onSort={(column) =>
            navigate({
              search: ({ by: _, ...before }) => {
                const next = nextSort(sort, column);
                return next === undefined ? before : { ...before, by: next };
              },
              replace: true,
            })
          }
        />
      )}
      {pages.first !== undefined && (
        <EditBar editing={editing} table={table} active={active} onReview={() => setReviewed(true)} />
      )}
      <LeaveQuestion changes={countOf(editing.pending)} />
      {isReviewed && (
        <Review
          id={id}
          body={{
            ...tableOf(table),
            changes: changesOf(editing.pending, pages.first?.columns.map(({ name }) => name) ?? []),
          }}
          onClose={() => setReviewed(false)}
          onDone={() => {
            setReviewed(false);
            editing.clear();
            void queryClient.invalidateQueries({ queryKey: ['databases', id] });
          }}
        />
      )}
      <CallSample operation="readDatabaseRows" args={[id, ask]} />
    </Stack>
  );
}

const tableOf = ({ name, schema }: DatabaseTable) =>
  schema === null ? { table: name } : { table: name, schema };

/** Rows whose values determine the widths of the columns. */
const SAMPLE_ROWS = 30;

/** Setting a range does not depend on the last rendering. */
function useStable(show: RowPages['show']): RowPages['show'] {
  const [stable] = useState(() => ({ show }));
  stable.show = show;
  return useCallback((from, to) => stable.show(from, to), [stable]);
}

function Facts({ pages }: { pages: RowPages }) {
  const { first, total, count } = pages;
  const counted = total === null ? words.atLeast(count) : words.total(total);
  return (
    <Group gap="xs">
      <Text size="sm" c="dimmed" role="status">
        {first === undefined ? words.reading : counted}
        {total !== null && total > MOST_ROWS && ` ${words.onlyFirst(MOST_ROWS)}`}
      </Text>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={words.refresh}
        loading={pages.isReading}
        onClick={() => void pages.refresh()}
      >
        <ArrowPathIcon width={18} />
      </ActionIcon>
    </Group>
  );
}
