/** A table with a line of names above it. On a phone its rows are stacked: nothing scrolls sideways. */
import { Table } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './list-table.module.css';

interface Head {
  readonly name: string;
  /** Numbers are read from the right. */
  readonly isNumber?: boolean;
  /** The name is only read out, as above buttons. */
  readonly isHidden?: boolean;
}

interface ListTableProps {
  /** The style sheet knows eight, and one more that is hidden. */
  readonly heads: readonly Head[];
  readonly isBusy?: boolean;
  /** A row of totals. */
  readonly foot?: ReactNode;
  readonly children: ReactNode;
}

export function ListTable({ heads, isBusy = false, foot, children }: ListTableProps) {
  return (
    <div className={classes.frame}>
      <Table
        verticalSpacing="xs"
        className={`${classes.table} ${heads.at(-1)?.isHidden ? classes.withActions : ''}`}
        style={namesOf(heads)}
        aria-busy={isBusy}
      >
        <Table.Thead>
          <Table.Tr>
            {heads.map(({ name, isNumber, isHidden }) =>
              isHidden ? (
                <Table.Th key={name} aria-label={name} />
              ) : (
                <Table.Th key={name} ta={isNumber ? 'right' : 'left'}>
                  {name}
                </Table.Th>
              ),
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
        {foot !== undefined && <Table.Tfoot>{foot}</Table.Tfoot>}
      </Table>
    </div>
  );
}

/** For the style sheet: the width below which it scrolls, and the names for a phone (`--head-2: "State"`). */
const namesOf = (heads: readonly Head[]) => ({
  '--least-width': `${heads.length * 115}px`,
  ...Object.fromEntries(
    heads.map(({ name, isHidden }, index) => [`--head-${index + 1}`, JSON.stringify(isHidden ? '' : name)]),
  ),
});
