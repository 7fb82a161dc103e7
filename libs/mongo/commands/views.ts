/** Views: collections defined by a pipeline over another one. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { type CollectionReader, compilePipeline } from '../query/pipeline.ts';
import { writeSort } from '../query/sorting.ts';
import type { ReadOptions } from '../storage/documents-reading.ts';
import type { DocumentsStore } from '../storage/documents-store.ts';
import { isDocument } from '../values/field-paths.ts';

/** Maximum depth of nested views. */
export const MAX_VIEW_DEPTH = 20;
const NOTHING: CollectionReader = { read: () => [] };

export interface View {
  readonly viewOn: string;
  readonly pipeline: readonly Document[];
}

/** The view in the options of a collection; null: it is a real collection. */
export function viewOf(options: Document | undefined): View | null {
  return options?.viewOn === undefined ? null : (options as unknown as View);
}

/**
 * The options of the view `name` in `create` or `collMod`; null: none. Throws CommandError, also if
 * views would refer to each other in a circle.
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
  const isNear = Array.isArray(pipeline) && isDocument(pipeline[0]) && '$geoNear' in pipeline[0];
  compilePipeline(isNear ? pipeline.slice(1) : pipeline, NOTHING);
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

/** The collection under a view, and the stages of all views on the way. Throws CommandError. */
export function resolveView(name: string, store: DocumentsStore): { base: string; pipeline: Document[] } {
  let base = name;
  let pipeline: Document[] = [];
  for (let depth = 1; ; depth++) {
    const view = viewOf(store.collection(base)?.options);
    if (view === null) return { base, pipeline };
    if (depth > MAX_VIEW_DEPTH) throw tooDeep();
    [base, pipeline] = [view.viewOn, [...view.pipeline, ...pipeline]];
  }
}

/** A read as stages that follow those of a view. Throws CommandError. */
export function stagesOfRead({ filter, sort = [], skip = 0, limit = 0 }: ReadOptions): Document[] {
  if (sort.some(([path]) => path === '$natural'))
    throw new CommandError('InvalidPipelineOperator', 'a view has no natural order to sort by');
  return [
    ...(Object.keys(filter).length > 0 ? [{ $match: filter }] : []),
    ...(sort.length > 0 ? [{ $sort: writeSort(sort) }] : []),
    ...(skip > 0 ? [{ $skip: skip }] : []),
    ...(limit > 0 ? [{ $limit: limit }] : []),
  ];
}

/** Throws CommandError for a view, if only a collection is allowed. */
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
