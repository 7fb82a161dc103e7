/** Column headings. A click sorts the whole folder; another one reverses the order. */
import { ChevronDownIcon, ChevronUpIcon } from '@heroicons/react/24/outline';
import { useNavigate } from '@tanstack/react-router';
import { text } from '../../texts/text.ts';
import classes from './file-table.module.css';
import type { FilesSearch } from './files-search.ts';

type Column = 'name' | 'size' | 'created_at';

export function FileHead({ search }: { search: FilesSearch }) {
  const { deleted = false } = search;
  return (
    <div role="row" className={`${classes.row} ${classes.head}`}>
      <span role="columnheader" aria-label={text.storage.choose} />
      <SortableHead column="name" label={text.storage.name} search={search} />
      {deleted ? (
        <>
          <span role="columnheader" className={classes.size}>
            {text.storage.size}
          </span>
          <span role="columnheader" className={classes.date}>
            {text.storage.deletedAt}
          </span>
        </>
      ) : (
        <>
          <SortableHead column="size" label={text.storage.size} search={search} className={classes.size} />
          <SortableHead
            column="created_at"
            label={text.storage.changed}
            search={search}
            className={classes.date}
          />
        </>
      )}
    </div>
  );
}

interface SortableHeadProps {
  readonly column: Column;
  readonly label: string;
  readonly search: FilesSearch;
  readonly className?: string | undefined;
}

function SortableHead({ column, label, search, className }: SortableHeadProps) {
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const { sort = 'name', order = 'asc' } = search;
  const isSorted = sort === column;
  // Large and new files are looked for more often.
  const first = column === 'name' ? 'asc' : 'desc';
  const next = isSorted ? (order === 'asc' ? 'desc' : 'asc') : first;
  const Arrow = order === 'asc' ? ChevronUpIcon : ChevronDownIcon;
  return (
    <span
      role="columnheader"
      className={className}
      aria-sort={isSorted ? (order === 'asc' ? 'ascending' : 'descending') : 'none'}
    >
      <button
        type="button"
        className={`${classes.sort} ${isSorted ? classes.sorted : ''}`}
        title={text.storage.sortBy(label, next === 'desc')}
        onClick={() =>
          void navigate({
            search: ({ sort: _, order: __, object: ___, ...view }) => ({
              ...view,
              ...(column === 'name' ? {} : { sort: column }),
              ...(next === 'desc' ? { order: next } : {}),
            }),
          })
        }
      >
        {label}
        {isSorted && <Arrow width={12} aria-hidden />}
      </button>
    </span>
  );
}
