/** Pages through a collection: by key when sorted by `_id`, otherwise by offset. */
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import type { DatabaseRows, DatabaseRowsQuery } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';

const PAGE_DOCUMENTS = 50;

export type DocumentsAsk = Pick<DatabaseRowsQuery, 'table' | 'match' | 'sort'>;
type Position = Pick<DatabaseRowsQuery, 'after' | 'skip'>;

/** null: the last page. */
function positionAfter(page: DatabaseRows, read: number): Position | null {
  if (page.next !== null) return { after: page.next };
  const isFull = page.rows.length === PAGE_DOCUMENTS || page.truncated;
  const isByKey = page.key.length > 0 && JSON.stringify(page.query.command ?? {}).includes('"sort":{"_id"');
  return isFull && !isByKey ? { skip: read } : null;
}

export function useDocuments(id: string, ask: DocumentsAsk) {
  return useInfiniteQuery({
    queryKey: ['databases', id, 'rows', 'documents', ask],
    queryFn: ({ pageParam, signal }) =>
      cloud.readDatabaseRows(
        id,
        { ...ask, ...pageParam, limit: PAGE_DOCUMENTS, count: Object.keys(pageParam).length === 0 },
        { signal },
      ),
    initialPageParam: {} as Position,
    getNextPageParam: (last, pages) =>
      positionAfter(
        last,
        pages.reduce((sum, { rows }) => sum + rows.length, 0),
      ),
    placeholderData: keepPreviousData,
  });
}
