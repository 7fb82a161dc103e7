/** A CSV file as a table: its first rows, sorted by the column that is clicked. */
import { Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { text } from '../../../../texts/text.ts';
import { RowTable } from '../row-table.tsx';
import { readCsv, sortedBy } from './csv.ts';

const MOST_ROWS = 1000;

export function CsvPreview({ source, isWhole }: { source: string; isWhole: boolean }) {
  const table = useMemo(() => readCsv(source, { most: MOST_ROWS, isWhole }), [source, isWhole]);
  const [sort, setSort] = useState<{ readonly at: number; readonly isDescending: boolean }>();
  const rows = useMemo(
    () => (sort === undefined ? table.rows : sortedBy(table, sort.at, sort.isDescending)),
    [table, sort],
  );
  return (
    <>
      <RowTable
        columns={table.columns}
        rows={rows}
        sort={sort}
        onSort={(at) => setSort({ at, isDescending: sort?.at === at && !sort.isDescending })}
      />
      <Text size="xs" c="dimmed" p={6}>
        {text.storage.rowsShown(table.rows.length, table.isCut)}
      </Text>
    </>
  );
}
