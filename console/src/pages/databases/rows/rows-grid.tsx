/** A grid of rows of which only the visible part is rendered: any number of rows and columns. */
import { ChevronDownIcon, ChevronUpIcon } from '@heroicons/react/24/outline';
import { defaultRangeExtractor, type Range, useVirtualizer, type VirtualItem } from '@tanstack/react-virtual';
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef } from 'react';
import type { DatabaseRowSort, DatabaseRows } from '../../../../../sdk/index.ts';
import { rowsText } from '../../../texts/rows-text.ts';
import { isBytes, isNumeric, shownText, widthOf } from './cells.ts';
import classes from './rows.module.css';

const words = rowsText;
const ROW_PX = 30;
const NUMBER_PX = 64;
const BEYOND = 8;

export interface Place {
  readonly row: number;
  readonly column: number;
}

type Columns = DatabaseRows['columns'];

interface RowsGridProps {
  readonly label: string;
  readonly columns: Columns;
  /** Rows from which widths are computed. */
  readonly sample: readonly (readonly unknown[])[];
  readonly count: number;
  readonly rowAt: (index: number) => readonly unknown[] | undefined;
  readonly sort: DatabaseRowSort | undefined;
  readonly active: Place;
  readonly onActive: (place: Place) => void;
  readonly onSort: (column: string) => void;
  /** Called with the visible rows. */
  readonly onShow: (from: number, to: number) => void;
  /** A key pressed on the active cell; true: it was handled. */
  readonly onKey?: (event: KeyboardEvent) => boolean;
  readonly onOpen?: (place: Place) => void;
  /** `data-mark` of a row, for styles. */
  readonly markOf?: (row: number) => string | undefined;
  readonly isChanged?: (row: number, column: number) => boolean;
  /** Shown instead of a cell, for example while it is edited. */
  readonly instead?: (place: Place) => ReactNode;
}

/** Movements of the keys; `page`: rows of a window. */
function moved(key: string, { row, column }: Place, page: number): Place | null {
  const steps: Readonly<Record<string, readonly [number, number]>> = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-page, 0],
    PageDown: [page, 0],
    Home: [0, Number.NEGATIVE_INFINITY],
    End: [0, Number.POSITIVE_INFINITY],
  };
  const step = steps[key];
  return step === undefined ? null : { row: row + step[0], column: column + step[1] };
}

const within = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));

/** The visible range, and the one at `also`, so that the focus is not lost. */
const around = (also: number) => (range: Range) =>
  [...new Set([...defaultRangeExtractor(range), also])]
    .filter((at) => at < range.count)
    .sort((a, b) => a - b);

export function RowsGrid(props: RowsGridProps) {
  const { label, columns, sample, count, active, onActive, onShow, onKey } = props;
  const box = useRef<HTMLDivElement>(null);
  const widths = useMemo(
    () =>
      columns.map((column, at) =>
        widthOf(
          column,
          sample.map((row) => row[at]),
        ),
      ),
    [columns, sample],
  );
  const rows = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: BEYOND,
    rangeExtractor: around(active.row),
  });
  const across = useVirtualizer({
    horizontal: true,
    count: columns.length,
    getScrollElement: () => box.current,
    estimateSize: (at) => widths[at] ?? 0,
    overscan: 2,
    rangeExtractor: around(active.column),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: other widths are measured again
  useEffect(() => across.measure(), [widths]);
  const { startIndex = 0, endIndex = 0 } = rows.range ?? {};
  useEffect(() => onShow(startIndex, endIndex), [onShow, startIndex, endIndex]);
  useFocusOn(active, box);
  const key = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
    if (onKey?.(event) === true) return event.preventDefault();
    if (event.altKey || event.metaKey) return;
    const page = Math.floor((box.current?.clientHeight ?? 0) / ROW_PX) - 2;
    const next = moved(event.key, active, page);
    if (next === null) return;
    event.preventDefault();
    const isEnd = event.ctrlKey && (event.key === 'Home' || event.key === 'End');
    const row = isEnd ? (event.key === 'Home' ? 0 : count - 1) : next.row;
    const place = { row: within(row, count), column: within(next.column, columns.length) };
    rows.scrollToIndex(place.row);
    across.scrollToIndex(place.column);
    onActive(place);
  };
  const width = NUMBER_PX + across.getTotalSize();
  const seen = across.getVirtualItems();
  return (
    <div ref={box} className={classes.box}>
      <div
        role="grid"
        aria-label={label}
        aria-rowcount={count + 1}
        aria-colcount={columns.length + 1}
        className={classes.grid}
        style={{ width }}
        onKeyDown={key}
      >
        <Head {...props} seen={seen} />
        <div role="rowgroup" className={classes.body} style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => (
            <Row key={index} {...props} index={index} start={start} seen={seen} />
          ))}
        </div>
      </div>
    </div>
  );
}

/** The active cell gets the focus from another cell. */
function useFocusOn({ row, column }: Place, box: React.RefObject<HTMLDivElement | null>): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the place changes
  useEffect(() => {
    if (!box.current?.contains(document.activeElement)) return;
    if (document.activeElement?.closest('[role=gridcell]') === null) return;
    box.current.querySelector<HTMLElement>('[data-active]')?.focus({ preventScroll: true });
  }, [row, column]);
}

interface SeenProps {
  readonly seen: readonly VirtualItem[];
}

/** Placeholder for columns that are not rendered. */
function Gap({ seen, at }: SeenProps & { at: number }) {
  const [before, here] = [seen[at - 1], seen[at]];
  const width = (here?.start ?? 0) - (before?.end ?? 0);
  return width > 0 ? <span style={{ flex: `0 0 ${width}px` }} /> : null;
}

function Head({ columns, sort, onSort, seen }: RowsGridProps & SeenProps) {
  return (
    <div role="row" aria-rowindex={1} className={classes.head}>
      <span role="columnheader" className={classes.number} aria-colindex={1}>
        {words.number}
      </span>
      {seen.map(({ index, size }, at) => {
        const { name = '', type = null } = columns[index] ?? {};
        const isSorted = sort?.column === name;
        const order = sort?.descending === true ? 'descending' : 'ascending';
        return (
          <Fragmented key={index} gap={<Gap seen={seen} at={at} />}>
            <span
              role="columnheader"
              aria-colindex={index + 2}
              aria-sort={isSorted ? order : 'none'}
              className={classes.column}
              style={{ flex: `0 0 ${size}px` }}
            >
              <button type="button" title={words.sortBy(name)} onClick={() => onSort(name)}>
                <span className={classes.name}>{name}</span>
                {isSorted &&
                  (order === 'descending' ? (
                    <ChevronDownIcon aria-hidden />
                  ) : (
                    <ChevronUpIcon aria-hidden />
                  ))}{' '}
                <small>{type}</small>
              </button>
            </span>
          </Fragmented>
        );
      })}
    </div>
  );
}

function Fragmented({ gap, children }: { gap: ReactNode; children: ReactNode }) {
  return (
    <>
      {gap}
      {children}
    </>
  );
}

interface RowProps extends RowsGridProps, SeenProps {
  readonly index: number;
  readonly start: number;
}

function Row({ index, start, seen, ...props }: RowProps) {
  const { rowAt, markOf, columns, active } = props;
  const row = rowAt(index);
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={classes.row}
      data-mark={markOf?.(index)}
      style={{ transform: `translateY(${start}px)` }}
    >
      <span role="rowheader" aria-colindex={1} className={classes.number}>
        {index + 1}
      </span>
      {seen.map(({ index: column, size }, at) => (
        <Fragmented key={column} gap={<Gap seen={seen} at={at} />}>
          <Cell
            {...props}
            place={{ row: index, column }}
            size={size}
            isActive={active.row === index && active.column === column}
            value={row?.[column]}
            isRead={row !== undefined}
            isNumber={isNumeric(columns[column]?.type ?? null)}
          />
        </Fragmented>
      ))}
    </div>
  );
}

interface CellProps extends Pick<RowsGridProps, 'onActive' | 'onOpen' | 'isChanged' | 'instead'> {
  readonly place: Place;
  readonly size: number;
  readonly value: unknown;
  readonly isActive: boolean;
  readonly isRead: boolean;
  readonly isNumber: boolean;
}

function Cell({ place, size, value, isActive, isRead, isNumber, ...events }: CellProps) {
  const { onActive, onOpen, isChanged, instead } = events;
  const shown = instead?.(place);
  const isNothing = isRead && (value === null || value === '' || value === undefined);
  const isLong = typeof value === 'string' && value.length > 20;
  return (
    <span
      role="gridcell"
      tabIndex={isActive ? 0 : -1}
      aria-colindex={place.column + 2}
      className={classes.cell}
      style={{ flex: `0 0 ${size}px` }}
      data-active={isActive || undefined}
      data-nothing={isNothing || undefined}
      data-bytes={isBytes(value) || undefined}
      data-number={isNumber || undefined}
      data-changed={isChanged?.(place.row, place.column) || undefined}
      title={isLong ? shownText(value) : undefined}
      onFocus={() => onActive(place)}
      onMouseDown={() => onActive(place)}
      onDoubleClick={() => onOpen?.(place)}
    >
      {shown ?? (isRead ? valueText(value) : '…')}
    </span>
  );
}

function valueText(value: unknown): string {
  if (value === undefined) return words.byDefault;
  if (value === null) return words.null;
  return value === '' ? words.empty : shownText(value);
}
