/** A table by its columns. On a phone its rows are stacked, so that nothing scrolls sideways. */
import { Table } from '@mantine/core';
import { Fragment, type Key, type ReactNode } from 'react';
import classes from './data-table.module.css';

export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers are right-aligned. */
  readonly isNumber?: boolean;
  readonly isMono?: boolean;
  /** Buttons, at the right: the heading is only for screen readers. */
  readonly isActions?: boolean;
  /** On hover. */
  readonly title?: (row: Row) => string | undefined;
}

interface DataTableProps<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => Key;
  readonly isBusy?: boolean;
  readonly isBold?: (row: Row) => boolean;
  /** Details below a row, as wide as the table; null: none. */
  readonly below?: (row: Row) => ReactNode;
  /** A row of totals. */
  readonly foot?: ReactNode;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { columns, rows, keyOf, isBusy = false, isBold, below, foot } = props;
  return (
    <div className={classes.frame}>
      <Table
        verticalSpacing="xs"
        className={`${classes.table} ${columns.at(-1)?.isActions ? classes.withActions : ''}`}
        // Width below which it scrolls, unless stacked.
        style={{ '--least-width': `${columns.length * 115}px` }}
        aria-busy={isBusy}
      >
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ name, isNumber, isActions }) =>
              isActions ? (
                <Table.Th key={name} aria-label={name} />
              ) : (
                <Table.Th key={name} ta={isNumber ? 'right' : 'left'}>
                  {name}
                </Table.Th>
              ),
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => {
            const opened = below?.(row) ?? null;
            return (
              <Fragment key={keyOf(row)}>
                <Table.Tr {...(isBold?.(row) ? { fw: 550 } : {})}>
                  {columns.map((column) => (
                    <Cell key={column.name} column={column} row={row} />
                  ))}
                </Table.Tr>
                {opened !== null && (
                  <Table.Tr>
                    <Table.Td colSpan={columns.length}>{opened}</Table.Td>
                  </Table.Tr>
                )}
              </Fragment>
            );
          })}
        </Table.Tbody>
        {foot !== undefined && <Table.Tfoot>{foot}</Table.Tfoot>}
      </Table>
    </div>
  );
}

function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  const { name, cell, isNumber, isMono, isActions, title } = column;
  return (
    <Table.Td
      ta={isNumber || isActions ? 'right' : 'left'}
      className={isMono ? 'mono' : ''}
      style={isMono ? { overflowWrap: 'anywhere' } : {}}
      title={title?.(row)}
      data-name={isActions ? '' : name}
    >
      {cell(row)}
    </Table.Td>
  );
}
