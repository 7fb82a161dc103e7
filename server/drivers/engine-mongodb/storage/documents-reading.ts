/** Reads the documents of a filter: by the best index, sorted, skipped, limited. */
import type { Document } from 'bson';
import { compileFilter, type Filter, type FilterScope } from '../query/filter.ts';
import { sortItems, sortOrder } from '../query/sorting.ts';
import { decodeDocument } from '../values/bson-documents.ts';
import type { Collection, DocumentsStore } from './documents-store.ts';
import { type Plan, planQuery, type SortSpec } from './query-plan.ts';
import type { Row } from './stored-rows.ts';

export interface FoundDocument extends Row {
  readonly document: Document;
}

export interface ReadOptions extends FilterScope {
  readonly filter: Document;
  readonly sort?: SortSpec;
  readonly skip?: number;
  /** 0: all. */
  readonly limit?: number;
  /** Called for each document that is looked at; throws when the time is over. */
  readonly tick?: () => void;
}

/**
 * The documents that match, as they are when each is reached. Nothing of the file is held between two of
 * them, so what reads may stop, write, or go on later.
 */
export function readDocuments(
  store: DocumentsStore,
  collection: Collection,
  { filter, sort = [], skip = 0, limit = 0, tick = () => {}, ...scope }: ReadOptions,
): IteratorObject<FoundDocument> {
  const { collation = null } = scope;
  const test = compileFilter(filter, scope);
  const plan = planQuery(collection, { filter, sort, collation });
  const matching = matches(rowsOf(store, collection, plan), test, tick);
  const section = <T>(items: IteratorObject<T>) => {
    const rest = skip === 0 ? items : items.drop(skip);
    return limit === 0 ? rest : rest.take(limit);
  };
  if (plan.isSorted) return section(matching);
  // Only the bytes wait to be sorted.
  const order = sortOrder(sort, collation);
  const keyed = matching.map(({ document, ...row }) => ({ ...row, order: order.keyOf(document) }));
  const sorted = sortItems(keyed, {
    limit: limit === 0 ? null : skip + limit,
    keyOf: (row) => row.order,
    compare: order.compare,
    bytesOf: ({ bytes }) => bytes.length,
  });
  return section(sorted.values()).map(({ order: _, ...row }) => ({
    ...row,
    document: decodeDocument(row.bytes),
  }));
}

function* matches(rows: Iterable<Row>, test: Filter, tick: () => void): Generator<FoundDocument> {
  for (const row of rows) {
    tick();
    const document = decodeDocument(row.bytes);
    if (test(document)) yield { ...row, document };
  }
}

function* rowsOf(store: DocumentsStore, collection: Collection, plan: Plan): Generator<Row> {
  const { index, ranges, isReverse } = plan;
  if (index === null) {
    yield* store.scan(collection, isReverse);
    return;
  }
  const seen = index.isMultikey ? new Set<number>() : null;
  for (const range of isReverse ? ranges.toReversed() : ranges) {
    for (const row of store.scanIndex(collection, index, { ...range, isReverse })) {
      if (seen?.has(row.rowNumber)) continue;
      seen?.add(row.rowNumber);
      yield row;
    }
  }
}
