/** The rows of a table, page by page. */
import { Button, Group, Stack } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { Database, DatabaseTable } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Loaded } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import { ResultGrid } from './result-grid.tsx';
import { bodyOf } from './run.ts';
import { nameOf, selectOf } from './table-names.ts';

const words = text.databases.tables;
const PAGE_ROWS = 100;

interface TableRowsProps {
  readonly database: Database;
  readonly table: DatabaseTable;
  /** How many rows are before the page. */
  readonly skip: number;
  readonly onSkip: (skip: number) => void;
}

export function TableRows({ database, table, skip, onSkip }: TableRowsProps) {
  const { database_id: id, engine } = database;
  const statement = selectOf(engine, table, { limit: PAGE_ROWS, skip });
  const rows = useQuery({
    queryKey: ['databases', id, 'tables', nameOf(table), statement],
    queryFn: ({ signal }) => cloud.queryDatabase(id, bodyOf(engine, statement, true), { signal }),
    placeholderData: keepPreviousData,
  });
  return (
    <Loaded query={rows}>
      {(page) => (
        <Stack gap="xs">
          <ResultGrid result={page} skip={skip} />
          {(skip > 0 || page.row_count === PAGE_ROWS) && (
            <Group gap="xs">
              <Button
                variant="default"
                disabled={skip === 0}
                onClick={() => onSkip(Math.max(0, skip - PAGE_ROWS))}
              >
                {words.before}
              </Button>
              <Button
                variant="default"
                disabled={page.row_count < PAGE_ROWS}
                loading={rows.isPlaceholderData}
                onClick={() => onSkip(skip + PAGE_ROWS)}
              >
                {words.next}
              </Button>
            </Group>
          )}
        </Stack>
      )}
    </Loaded>
  );
}
