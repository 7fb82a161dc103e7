/**
 * A table of rows that are already in the page's memory, such as a result or a file. Only those in sight are
 * rendered, and of more than 30 columns only those in sight, too.
 */
import { ChevronDownIcon, ChevronUpIcon } from '@heroicons/react/24/outline';
import { VisuallyHidden } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type CSSProperties, type RefObject, useEffect, useMemo, useRef } from 'react';
import { columnPx } from './column-px.ts';
import classes from './sight-table.module.css';

interface SightTableProps {
  /** Name of the region that scrolls. */
  readonly label: string;
  readonly columns: readonly { readonly name: string; readonly type: string | null }[];
  readonly rowCount: number;
  /** null: the cell has no value, and `nothing` is shown. */
  readonly textAt: (row: number, column: number) => string | null;
  readonly nothing?: string;
  /** Heading and first number of a column that numbers the rows. */
  readonly numbers?: { readonly name: string; readonly first: number };
  /** Types are shown beside names, not on hover. */
  readonly showsTypes?: boolean;
  readonly sort?: { readonly at: number; readonly isDescending: boolean } | undefined;
  /** Missing: rows stay in their order. */
  readonly onSort?: (column: number) => void;
}

const ROW_PX = 30;
const ROWS_BEYOND = 12;
/** Number of columns that are all rendered, as wide as their texts. */
const ALL_COLUMNS = 30;
const COLUMNS_BEYOND = 2;
/** Number of rows that widths are computed from. */
const SAMPLE_ROWS = 30;

export function SightTable(props: SightTableProps) {
  const { label, columns, rowCount, textAt, numbers } = props;
  const box = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rowCount,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: ROWS_BEYOND,
  });
  const widths = useMemo(
    () =>
      columns.map(({ name, type }, at) => {
        const sample = Array.from({ length: Math.min(SAMPLE_ROWS, rowCount) }, (_, row) => textAt(row, at));
        return columnPx([name.length + (type?.length ?? 0), ...sample.map((text) => text?.length ?? 0)]);
      }),
    [columns, rowCount, textAt],
  );
  const inSight = useColumns(box, widths);
  const seen = virtual.getVirtualItems();
  const above = seen[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (seen.at(-1)?.end ?? 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section ref={box} className={classes.box} tabIndex={0} aria-label={label}>
      <table className={classes.table} aria-rowcount={rowCount + 1} aria-colcount={inSight.total}>
        <thead>
          <tr>
            {numbers !== undefined && (
              <th className={classes.number}>
                <VisuallyHidden>{numbers.name}</VisuallyHidden>
              </th>
            )}
            <Gap px={inSight.beforePx} />
            {inSight.columns.map((column) => (
              <Heading key={column.at} {...props} column={column} />
            ))}
            <Gap px={inSight.afterPx} />
          </tr>
        </thead>
        <tbody>
          {above > 0 && <tr aria-hidden style={{ height: above }} />}
          {seen.map(({ index }) => (
            <tr key={index} aria-rowindex={index + 2}>
              {numbers !== undefined && <td className={classes.number}>{numbers.first + index}</td>}
              <Gap px={inSight.beforePx} />
              {inSight.columns.map(({ at, index: columnIndex, style }) => (
                <Cell
                  key={at}
                  text={textAt(index, at)}
                  nothing={props.nothing}
                  index={columnIndex}
                  style={style}
                />
              ))}
              <Gap px={inSight.afterPx} />
            </tr>
          ))}
          {below > 0 && <tr aria-hidden style={{ height: below }} />}
        </tbody>
      </table>
    </section>
  );
}

interface SeenColumn {
  readonly at: number;
  /** The place in a table that has only some of its columns in the page. */
  readonly index?: number;
  readonly style?: CSSProperties;
}

interface SeenColumns {
  readonly columns: readonly SeenColumn[];
  /** Width of the columns that are not rendered. */
  readonly beforePx: number;
  readonly afterPx: number;
  /** Number of columns, if some are not rendered. */
  readonly total?: number;
}

function useColumns(box: RefObject<HTMLElement | null>, widths: readonly number[]): SeenColumns {
  const isWide = widths.length > ALL_COLUMNS;
  const across = useVirtualizer({
    horizontal: true,
    count: isWide ? widths.length : 0,
    getScrollElement: () => box.current,
    estimateSize: (at) => widths[at] ?? 0,
    overscan: COLUMNS_BEYOND,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: other widths are measured again
  useEffect(() => across.measure(), [widths]);
  if (!isWide) return { columns: widths.map((_, at) => ({ at })), beforePx: 0, afterPx: 0 };
  const seen = across.getVirtualItems();
  return {
    columns: seen.map(({ index: at, size }) => ({
      at,
      index: at + 1,
      style: { width: size, minWidth: size, maxWidth: size },
    })),
    beforePx: seen[0]?.start ?? 0,
    afterPx: across.getTotalSize() - (seen.at(-1)?.end ?? 0),
    total: widths.length,
  };
}

/** In place of columns that are not rendered. */
function Gap({ px }: { px: number }) {
  return px > 0 ? <td aria-hidden style={{ minWidth: px, padding: 0 }} /> : null;
}

function Heading(props: SightTableProps & { readonly column: SeenColumn }) {
  const { columns, sort, onSort, showsTypes = false } = props;
  const { at, index, style } = props.column;
  const { name = '', type = null } = columns[at] ?? {};
  const isSorted = sort?.at === at;
  const Arrow = sort?.isDescending === true ? ChevronDownIcon : ChevronUpIcon;
  const order = sort?.isDescending ? 'descending' : 'ascending';
  const words = (
    <>
      {name || `${at + 1}`}
      {showsTypes && type !== null && (
        <>
          {' '}
          <small>{type}</small>
        </>
      )}
      {isSorted && <Arrow width={11} aria-hidden />}
    </>
  );
  return (
    <th
      scope="col"
      aria-colindex={index}
      aria-sort={isSorted ? order : undefined}
      title={showsTypes ? undefined : (type ?? '')}
      style={style}
    >
      {onSort === undefined ? (
        words
      ) : (
        <button type="button" onClick={() => onSort(at)}>
          {words}
        </button>
      )}
    </th>
  );
}

interface CellProps {
  readonly text: string | null;
  readonly nothing: string | undefined;
  readonly index: number | undefined;
  readonly style: CSSProperties | undefined;
}

function Cell({ text, nothing, index, style }: CellProps) {
  return (
    <td data-null={text === null || undefined} title={text ?? undefined} aria-colindex={index} style={style}>
      {text ?? nothing}
    </td>
  );
}
