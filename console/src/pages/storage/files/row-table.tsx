/** Rows of a file in its preview; texts of files are not translated. */
import { useCallback } from 'react';
import { SightTable } from '../../../parts/grids/sight-table.tsx';
import { text } from '../../../texts/text.ts';

interface RowTableProps {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly string[])[];
  readonly sort?: { readonly at: number; readonly isDescending: boolean } | undefined;
  /** Absent: in the order of the file. */
  readonly onSort?: (at: number) => void;
}

export function RowTable({ columns, rows, sort, onSort }: RowTableProps) {
  const textAt = useCallback((row: number, column: number) => rows[row]?.[column] ?? '', [rows]);
  return (
    <SightTable
      label={text.storage.rows}
      columns={columns}
      rowCount={rows.length}
      textAt={textAt}
      showsTypes
      sort={sort}
      {...(onSort && { onSort })}
    />
  );
}
