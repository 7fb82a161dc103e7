/** A table with a line of names above it; on a small screen it scrolls sideways below its buttons. */
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
  readonly heads: readonly Head[];
  /** A row of totals. */
  readonly foot?: ReactNode;
  readonly children: ReactNode;
}

export function ListTable({ heads, foot, children }: ListTableProps) {
  return (
    <Table.ScrollContainer minWidth={heads.length * 115}>
      <Table verticalSpacing="xs" className={heads.at(-1)?.isHidden ? (classes.withActions ?? '') : ''}>
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
    </Table.ScrollContainer>
  );
}
