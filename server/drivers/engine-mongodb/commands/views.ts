/** Views: collections without documents of their own, which show another one through a pipeline. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { compileFilter } from '../query/filter.ts';
import { type CollectionReader, compilePipeline } from '../query/pipeline.ts';
import { sortItems, sortOrder, weightOf } from '../query/sorting.ts';
import type { ReadOptions } from '../storage/documents-reading.ts';
import type { DocumentsStore } from '../storage/documents-store.ts';
import type { FoundDocument } from '../storage/stored-rows.ts';
import { encodeDocument } from '../values/bson-documents.ts';
import { isDocument } from '../values/field-paths.ts';

/** Views that show each other. */
export const MAX_VIEW_DEPTH = 20;
const NO_KEY = new Uint8Array();
const NOTHING: CollectionReader = { read: () => [] };

export interface View {
  readonly viewOn: string;
  readonly pipeline: readonly Document[];
}

/** The view in the options of a collection; null: it has documents of its own. */
export function viewOf(options: Document | undefined): View | null {
  return options?.viewOn === undefined ? null : (options as unknown as View);
}

/**
 * The options of the view `name` that `create` or `collMod` asks for; null: it asks for none. Throws
 * CommandError, also where views would show each other in a circle.
 */
export function readView(
  name: string,
  { viewOn, pipeline = [] }: Document,
  store: DocumentsStore,
): View | null {
  if (viewOn === undefined) return null;
  if (typeof viewOn !== 'string' || viewOn === '')
    throw new CommandError('BadValue', "'viewOn' must be the name of a collection");
  const writes =
    Array.isArray(pipeline) &&
    pipeline.find((stage) => isDocument(stage) && ('$out' in stage || '$merge' in stage));
  if (writes)
    throw new CommandError(
      'OptionNotSupportedOnView',
      `Aggregation stage ${Object.keys(writes)[0]} cannot be used in a view`,
    );
  compilePipeline(pipeline, NOTHING);
  let next: string | undefined = viewOn;
  for (let depth = 1; next !== undefined; depth++) {
    if (next === name)
      throw new CommandError('GraphContainsCycle', `View cycle detected: ${name} is a view on itself`);
    if (depth > MAX_VIEW_DEPTH) throw tooDeep();
    next = viewOf(store.collection(next)?.options)?.viewOn;
  }
  return { viewOn, pipeline };
}

export function tooDeep(): CommandError {
  return new CommandError(
    'ViewDepthLimitExceeded',
    `View depth too deep, or a view shows itself: at most ${MAX_VIEW_DEPTH}`,
  );
}

/** The documents of a view that match. `reader`: reads other collections, one level deeper. */
export function* viewDocuments(
  { viewOn, pipeline }: View,
  { filter, sort = [], skip = 0, limit = 0, ...scope }: ReadOptions,
  reader: CollectionReader,
): Generator<FoundDocument> {
  const { collation = null } = scope;
  const test = compileFilter(filter, scope);
  // Leading matches can be served by an index.
  const at = pipeline.findIndex((stage) => !isDocument(stage.$match));
  const matches = pipeline
    .slice(0, at === -1 ? pipeline.length : at)
    .map((stage) => stage.$match as Document);
  const first = (at === -1 ? [...matches, filter] : matches).filter((each) => Object.keys(each).length > 0);
  const read = first.length > 1 ? { $and: first } : (first[0] ?? {});
  const shown = compilePipeline(pipeline.slice(matches.length), reader)(
    reader.read(viewOn, read, { collation }),
    { collation },
  );
  const found = Iterator.from(shown).filter(test);
  const order = sort.filter(([path]) => path !== '$natural');
  const most = limit === 0 ? null : skip + limit;
  const all = { ...sortOrder(order, collation), limit: most, bytesOf: weightOf };
  const sorted = order.length === 0 ? found : sortItems<Document>(found, all).values();
  const rest = sorted.drop(skip);
  let rowNumber = 0;
  for (const document of limit === 0 ? rest : rest.take(limit))
    yield { rowNumber: ++rowNumber, key: NO_KEY, bytes: encodeDocument(document), document };
}

/** Throws CommandError for a view, where only a collection will do. */
export function assertNoView(
  name: unknown,
  { store, databaseName }: { store: DocumentsStore; databaseName: string },
): void {
  if (typeof name !== 'string' || viewOf(store.collection(name)?.options) === null) return;
  throw new CommandError(
    'CommandNotSupportedOnView',
    `Namespace ${databaseName}.${name} is a view, not a collection`,
  );
}
