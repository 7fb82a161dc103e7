/** Reads the documents of a filter: by the best index, sorted, skipped, limited. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { DOCUMENT_STEPS, spend } from '../command-time.ts';
import { compileFilter, type Filter, type FilterScope } from '../query/filter.ts';
import { sortItems, sortOrder } from '../query/sorting.ts';
import type { TextSearch } from '../text/text-index.ts';
import { decodeDocument } from '../values/bson-documents.ts';
import { metadataOf, setMetadata } from '../values/metadata.ts';
import type { Collection, DocumentsStore } from './documents-store.ts';
import type { Index } from './index-values.ts';
import { nearestDocuments } from './nearest-documents.ts';
import type { Plan, Scan, SortSpec } from './plan.ts';
import { planQuery } from './query-plan.ts';
import { RowNumbers } from './row-numbers.ts';
import type { FoundDocument, Row } from './stored-rows.ts';

export interface ReadOptions extends FilterScope {
  readonly filter: Document;
  readonly sort?: SortSpec;
  /** The index to read, by its name or key; undefined: any. */
  readonly hint?: unknown;
  readonly skip?: number;
  /** 0: all. */
  readonly limit?: number;
  /** Counts examined documents and keys. */
  readonly examined?: Examined;
  /** Present: all documents after this row, in natural order. */
  readonly after?: number;
  /** Called with the index that is used. */
  readonly onUse?: (index: Index) => void;
}

export interface Examined {
  documents: number;
  /** Examined keys, per branch of the plan; a plan without branches is one branch. */
  readonly keys: number[];
}

const SCAN: Plan = { index: null, ranges: [], isReverse: false, isSorted: true };

/**
 * The matching documents, each in its state when reached. The file is not locked between two of them, so the
 * reader may stop, write, or continue later.
 */
export function readDocuments(
  store: DocumentsStore,
  collection: Collection,
  {
    filter,
    sort = [],
    hint,
    skip = 0,
    limit = 0,
    after,
    examined = { documents: 0, keys: [] },
    onUse,
    ...scope
  }: ReadOptions,
): IteratorObject<FoundDocument> {
  const { collation = null } = scope;
  const special: { name: string | null } = { name: null };
  const test = compileFilter(filter, { ...scope, special });
  const plan =
    after === undefined ? planQuery(collection, { filter, sort, collation, hint }) : { ...SCAN, after };
  for (const { index } of scansOf(plan)) onUse?.(index);
  const matching =
    special.name === null
      ? matches(rowsOf(store, collection, { plan, examined }), test, examined)
      : counted(specialDocuments(store, collection, { name: special.name, plan, test }), examined);
  const section = <T>(items: IteratorObject<T>) => {
    const rest = skip === 0 ? items : items.drop(skip);
    return limit === 0 ? rest : rest.take(limit);
  };
  if (plan.isSorted || (special.name !== null && sort.length === 0)) return section(matching);
  // Only encoded documents are kept for sorting.
  const order = sortOrder(sort, collation);
  const keyed = matching.map(({ document, ...row }) => ({
    ...row,
    order: order.keyOf(document),
    metadata: special.name === null ? undefined : metadataOf(document),
  }));
  const sorted = sortItems(keyed, {
    limit: limit === 0 ? null : skip + limit,
    keyOf: (row) => row.order,
    compare: order.compare,
    bytesOf: ({ bytes }) => bytes.length,
  });
  return section(sorted.values()).map(({ order: _, metadata, ...row }) => {
    const document = decodeDocument(row.bytes);
    if (metadata !== undefined) setMetadata(document, metadata);
    return { ...row, document };
  });
}

/** Documents from a special index, in its order. Throws CommandError without such an index. */
function specialDocuments(
  store: DocumentsStore,
  collection: Collection,
  { name, plan, test }: { name: string; plan: Plan; test: Filter },
): Generator<FoundDocument> {
  const { index, nearest, search } = plan;
  if (name === '$text') {
    if (search !== undefined) {
      const examined = { documents: 0, keys: [] };
      return found(rowsOf(store, collection, { plan, examined }), { search, test });
    }
    throw new CommandError('IndexNotFound', 'text index required for $text query');
  }
  if (index === null || nearest === undefined)
    throw new CommandError(291, 'error processing query: unable to find index for $geoNear query');
  return nearestDocuments(store, collection, { index, nearest, test });
}

interface Searching {
  readonly search: TextSearch;
  readonly test: Filter;
}

/** Documents that a search finds, with their scores. */
function* found(rows: Iterable<Row>, { search, test }: Searching): Generator<FoundDocument> {
  for (const row of rows) {
    spend(DOCUMENT_STEPS);
    const document = decodeDocument(row.bytes);
    const textScore = search.score(document);
    if (textScore === null || !test(document)) continue;
    setMetadata(document, { textScore });
    yield { ...row, document };
  }
}

function* counted<T>(items: Iterable<T>, examined: Examined): Generator<T> {
  for (const item of items) {
    examined.documents++;
    examined.keys[0] = examined.documents;
    yield item;
  }
}

function* matches(rows: Iterable<Row>, test: Filter, examined: Examined): Generator<FoundDocument> {
  for (const row of rows) {
    spend(DOCUMENT_STEPS);
    examined.documents++;
    const document = decodeDocument(row.bytes);
    if (test(document)) yield { ...row, document };
  }
}

/** The indexes that a plan reads. */
function scansOf({ index, ranges, used, branches }: Plan): readonly Scan[] {
  return branches ?? (index === null ? [] : [{ index, ranges, used }]);
}

function* rowsOf(
  store: DocumentsStore,
  collection: Collection,
  { plan, examined }: { plan: Plan; examined: Examined },
): Generator<Row> {
  const { isReverse, after } = plan;
  const scans = scansOf(plan);
  if (scans.length === 0) {
    const [ids] = collection.indexes;
    // The natural order of a clustered collection is that of its `_id`.
    const isClustered = ids !== undefined && collection.options.clusteredIndex !== undefined;
    if (isClustered) yield* store.scanIndex(collection, ids, { low: null, high: null, isReverse });
    else yield* store.scan(collection, isReverse, after);
    return;
  }
  const seen = scans.length > 1 || scans[0]?.index.isMultikey ? new RowNumbers() : null;
  for (const [i, { index, ranges }] of scans.entries()) {
    examined.keys[i] = 0;
    for (const range of isReverse ? ranges.toReversed() : ranges) {
      spend(DOCUMENT_STEPS);
      for (const row of store.scanIndex(collection, index, { ...range, isReverse })) {
        examined.keys[i]++;
        if (seen === null || seen.add(row.rowNumber)) yield row;
      }
    }
  }
}
