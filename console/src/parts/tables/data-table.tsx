/** A table by its columns. On a phone its rows are stacked, so that nothing scrolls sideways. */
import { ChevronDownIcon, ChevronUpIcon } from '@heroicons/react/24/outline';
import { Table, UnstyledButton, VisuallyHidden } from '@mantine/core';
import { type Key, memo, type ReactNode } from 'react';
import classes from './data-table.module.css';

export interface Column<Row> {
  readonly name: string;
  /** Name in the address of a sorted list. */
  readonly id?: string;
  /** Sort key of a row; null: last. Missing: rows cannot be sorted by this column. */
  readonly value?: (row: Row) => string | number | null;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers are right-aligned. */
  readonly isNumber?: boolean;
  readonly isMono?: boolean;
  /** Buttons, at the right: the heading is only for screen readers. */
  readonly isActions?: boolean;
  /** On hover. */
  readonly title?: (row: Row) => string | undefined;
}

/** A box before the first cell of each row. */
export interface Boxes<Row> {
  readonly chosen: ReadonlySet<Key>;
  /** Name of the box. */
  readonly nameOf: (row: Row) => string;
  /** Stays the same function. */
  readonly onChoose: (row: Row, isChosen: boolean) => void;
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
  /** Rows of 32 px. */
  readonly isDense?: boolean;
  readonly sorted?: { readonly column?: string; readonly down?: true };
  /** Makes the headings of columns with a value and an id buttons. */
  readonly onSort?: (id: string) => void;
  readonly boxes?: Boxes<Row> | undefined;
  /**
   * Number of rows of the whole list, of which these are the first; if given, each row announces its number.
   */
  readonly rowCount?: number;
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const {
    columns,
    rows,
    keyOf,
    isBusy = false,
    isBold,
    below,
    foot,
    isDense = false,
    boxes,
    rowCount,
  } = props;
  return (
    <div className={classes.frame}>
      <Table
        verticalSpacing={isDense ? 2 : 'xs'}
        className={`${classes.table} ${columns.at(-1)?.isActions ? classes.withActions : ''}`}
        // Width below which it scrolls, unless stacked.
        style={{ '--least-width': `${columns.length * 115}px` }}
        aria-busy={isBusy}
        aria-rowcount={rowCount === undefined ? undefined : rowCount + 1}
      >
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Heading key={column.name} column={column} {...props} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row, index) => (
            <BodyRow
              key={keyOf(row)}
              row={row}
              rowIndex={rowCount === undefined ? undefined : index + 2}
              columns={columns}
              isBold={isBold?.(row) ?? false}
              opened={below?.(row) ?? null}
              box={boxes?.nameOf(row)}
              isChosen={boxes?.chosen.has(keyOf(row)) ?? false}
              onChoose={boxes?.onChoose}
            />
          ))}
        </Table.Tbody>
        {foot !== undefined && <Table.Tfoot>{foot}</Table.Tfoot>}
      </Table>
    </div>
  );
}

interface BodyRowProps<Row> {
  readonly row: Row;
  readonly rowIndex: number | undefined;
  readonly columns: readonly Column<Row>[];
  readonly isBold: boolean;
  readonly opened: ReactNode;
  /** Name of its box; undefined: it has none. */
  readonly box: string | undefined;
  readonly isChosen: boolean;
  readonly onChoose: Boxes<Row>['onChoose'] | undefined;
}

/** Rendered again only when it changes: a list has hundreds of rows. */
const BodyRow = memo(function BodyRow<Row>(props: BodyRowProps<Row>) {
  const { row, rowIndex, columns, isBold, opened, box, isChosen, onChoose } = props;
  return (
    <>
      <Table.Tr aria-rowindex={rowIndex} {...(isBold ? { fw: 550 } : {})}>
        {columns.map((column, index) => (
          <Cell key={column.name} column={column} row={row}>
            {index === 0 && box !== undefined ? (
              <div className={classes.boxed}>
                <input
                  type="checkbox"
                  className={classes.box}
                  aria-label={box}
                  checked={isChosen}
                  onChange={({ currentTarget }) => onChoose?.(row, currentTarget.checked)}
                />
                <div>{column.cell(row)}</div>
              </div>
            ) : (
              column.cell(row)
            )}
          </Cell>
        ))}
      </Table.Tr>
      {opened !== null && (
        <Table.Tr>
          <Table.Td colSpan={columns.length}>{opened}</Table.Td>
        </Table.Tr>
      )}
    </>
  );
}) as <Row>(props: BodyRowProps<Row>) => ReactNode;

type HeadingProps<Row> = Pick<DataTableProps<Row>, 'sorted' | 'onSort'> & { readonly column: Column<Row> };

function Heading<Row>({ column, sorted, onSort }: HeadingProps<Row>) {
  const { name, id, value, isNumber, isActions } = column;
  // A text: axe-core finds a header empty that only has a label.
  if (isActions)
    return (
      <Table.Th>
        <VisuallyHidden>{name}</VisuallyHidden>
      </Table.Th>
    );
  const side = isNumber ? 'right' : 'left';
  if (onSort === undefined || id === undefined || value === undefined)
    return <Table.Th ta={side}>{name}</Table.Th>;
  const isBy = sorted?.column === id;
  const Arrow = sorted?.down ? ChevronDownIcon : ChevronUpIcon;
  const order = sorted?.down ? 'descending' : 'ascending';
  return (
    <Table.Th ta={side} aria-sort={isBy ? order : 'none'}>
      <UnstyledButton fz="inherit" fw="inherit" onClick={() => onSort(id)}>
        {name}
        {isBy && <Arrow width={14} aria-hidden style={{ verticalAlign: -2, marginInlineStart: 4 }} />}
      </UnstyledButton>
    </Table.Th>
  );
}

interface CellProps<Row> {
  readonly column: Column<Row>;
  readonly row: Row;
  readonly children: ReactNode;
}

function Cell<Row>({ column, row, children }: CellProps<Row>) {
  const { name, isNumber, isMono, isActions, title } = column;
  return (
    <Table.Td
      ta={isNumber || isActions ? 'right' : 'left'}
      className={isMono ? 'mono' : ''}
      style={isMono ? { overflowWrap: 'anywhere' } : {}}
      title={title?.(row)}
      data-name={isActions ? '' : name}
    >
      {children}
    </Table.Td>
  );
}
