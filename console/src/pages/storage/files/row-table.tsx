/** Rows of a file, few enough to render all; texts of files are not translated. */
import { ChevronDownIcon, ChevronUpIcon } from '@heroicons/react/24/outline';
import { useState } from 'react';
import { text } from '../../../texts/text.ts';
import classes from '../storage.module.css';

interface RowTableProps {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly string[])[];
  readonly sort?: { readonly at: number; readonly isDescending: boolean } | undefined;
  /** Absent: in the order of the file. */
  readonly onSort?: (at: number) => void;
}

/** A thousand rows of many columns would delay a click too long. */
const CELLS_AT_ONCE = 4000;

export function RowTable({ columns, rows, sort, onSort }: RowTableProps) {
  const step = Math.max(20, Math.floor(CELLS_AT_ONCE / Math.max(1, columns.length)));
  const [most, setMost] = useState(step);
  return (
    <>
      <table className={classes.rowTable}>
        <thead>
          <tr>
            {columns.map(({ name, type }, at) => {
              const isSorted = sort?.at === at;
              const Arrow = sort?.isDescending === true ? ChevronDownIcon : ChevronUpIcon;
              const heading = (
                <>
                  {name || `${at + 1}`} <small>{type}</small>
                  {isSorted && <Arrow width={11} aria-hidden />}
                </>
              );
              return (
                <th
                  // biome-ignore lint/suspicious/noArrayIndexKey: names of columns may be equal
                  key={at}
                  aria-sort={isSorted ? (sort.isDescending ? 'descending' : 'ascending') : undefined}
                >
                  {onSort === undefined ? (
                    heading
                  ) : (
                    <button type="button" className={classes.sort} onClick={() => onSort(at)}>
                      {heading}
                    </button>
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows may be equal
            <tr key={index}>
              {columns.map((_, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: as above
                <td key={at} title={row[at]}>
                  {row[at]}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && (
        <button type="button" className={classes.moreRows} onClick={() => setMost(most + 4 * step)}>
          {text.storage.moreRows}
        </button>
      )}
    </>
  );
}
