/** The first stages of a pipeline, which an index can serve. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { compileFilter, type FilterScope } from '../query/filter.ts';
import { assertLength, limitAfter } from '../query/pipeline.ts';
import { readSort } from '../query/sorting.ts';
import { readDocuments } from '../storage/documents-reading.ts';
import type { Index } from '../storage/index-values.ts';
import type { SortSpec } from '../storage/plan.ts';
import { isDocument } from '../values/field-paths.ts';
import type { CommandScope } from './command-scope.ts';
import { geoNearStage } from './geo-near.ts';

/** The read of a collection, before the rest of a pipeline processes it. */
export interface Start {
  readonly filter: Document;
  readonly sort: SortSpec;
  /** Maximum documents needed; 0: all. */
  readonly limit: number;
}

/** Splits off the leading stages that an index can serve. Throws CommandError if it is not a pipeline. */
export function split(pipeline: unknown): { read: Start; rest: Document[] } {
  if (!Array.isArray(pipeline))
    throw new CommandError('TypeMismatch', "'pipeline' option must be specified as an array");
  assertLength(pipeline);
  const isMatch = (stage: unknown) => isDocument(stage) && isDocument(stage.$match);
  const end = pipeline.findIndex((stage) => !isMatch(stage));
  const matches: Document[] = end === -1 ? pipeline : pipeline.slice(0, end);
  const filters = matches.map(({ $match }) => $match).filter((each) => Object.keys(each).length > 0);
  const filter = filters.length > 1 ? { $and: filters } : (filters[0] ?? {});
  const rest: Document[] = pipeline.slice(matches.length);
  const [next] = rest;
  if (!isDocument(next) || !('$sort' in next))
    return { read: { filter, sort: [], limit: limitAfter(rest, 0) ?? 0 }, rest };
  const sort = readSort(next.$sort);
  if (sort.length === 0) throw new CommandError(15976, '$sort stage must have at least one sort key');
  return { read: { filter, sort, limit: limitAfter(rest, 1) ?? 0 }, rest: rest.slice(1) };
}

/**
 * The documents that a pipeline over a collection begins with, and the remaining stages. `name`:
 * not a view's. Throws CommandError.
 */
export function startOf(
  name: string,
  pipeline: readonly Document[],
  { scope, filter: own, hint }: { scope: CommandScope; filter: FilterScope; hint?: unknown },
): { documents: Iterable<Document>; rest: Document[]; read: Start | null } {
  const collection = scope.store.collection(name);
  const near = geoNearStage(pipeline[0], collection, { scope, filter: own });
  if (near !== null) return { documents: near, rest: pipeline.slice(1), read: null };
  const { read, rest } = split(pipeline);
  const documents = function* () {
    if (collection === undefined) compileFilter(read.filter, { ...own, special: { name: null } });
    else {
      const onUse = (index: Index) => scope.counters.use(collection, index);
      const found = readDocuments(scope.store, collection, { ...own, ...read, hint, onUse });
      yield* found.map(({ document }) => document);
    }
  };
  return { documents: documents(), rest, read };
}
