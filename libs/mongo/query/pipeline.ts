/** Aggregation pipelines: mingo's stages, and ours where types, memory or other collections matter. */
import { type Document, Long } from 'bson';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import type { Collation } from '../values/collations.ts';
import { isDocument, valueAt, withValueAt } from '../values/field-paths.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';
import { collationOf } from './expression-kinds.ts';
import { asCommandError, assertNoScripts, evaluate, evaluation, plainDeep } from './expressions.ts';
import { compileFilter, type FilterScope } from './filter.ts';
import { type Evaluation, mingo } from './mingo-library.ts';
import { compileProjection } from './projection.ts';
import { MemoryBudget, readSort, sortItems, sortOrder, weightOf } from './sorting.ts';
import { addFields, replaceRoots } from './stages/add-fields.ts';
import { groupOfBuckets } from './stages/bucket-stage.ts';
import { assertDensifiable } from './stages/densify-limit.ts';
import { filledDocuments } from './stages/fill-stage.ts';
import { walkedDocuments } from './stages/graph-lookup.ts';
import { groupDocuments } from './stages/group-stage.ts';
import { windowedDocuments } from './stages/window-stage.ts';
import type { Update } from './updates/updates.ts';

/** Cost of copying a document for one element. */
const UNWIND_STEPS = 10;

/** Maximum stages of a pipeline, as on a server. */
const MAX_STAGES = 1000;

type Documents = Iterable<Document>;
type Stage = (documents: Documents, argument: never, options: Evaluation) => Documents;

/** Other collections of the same database. */
export interface CollectionReader {
  read(name: string, filter: Document, scope: FilterScope): Documents;
}

function scopeOf(options: Evaluation): FilterScope {
  const { local } = options as { local?: { variables?: Document } };
  return { variables: { ...options.variables, ...local?.variables }, collation: collationOf(options) };
}

function* unwound(documents: Documents, argument: Document | string): Generator<Document> {
  const {
    path,
    includeArrayIndex: indexName,
    preserveNullAndEmptyArrays: keepsEmpty,
  } = isDocument(argument) ? argument : { path: argument };
  if (typeof path !== 'string' || !path.startsWith('$'))
    throw new CommandError(28818, `the path of $unwind must begin with a '$': ${String(path)}`);
  const parts = path.slice(1).split('.');
  const withIndex = (document: Document, index: number | null) =>
    indexName ? { ...document, [indexName]: index === null ? null : Long.fromNumber(index) } : document;
  for (const document of documents) {
    const value = valueAt(document, parts);
    if (Array.isArray(value)) {
      for (const [index, each] of value.entries()) {
        spend(UNWIND_STEPS);
        yield withIndex(withValueAt(document, parts, each), index);
      }
      if (value.length === 0 && keepsEmpty) yield withIndex(withValueAt(document, parts, undefined), null);
    } else if (value !== undefined && value !== null) yield withIndex(document, null);
    else if (keepsEmpty) yield withIndex(document, null);
  }
}

/** All documents, if they fit in memory. */
function* bounded(documents: Documents, name: string): Generator<Document> {
  const budget = new MemoryBudget(name);
  for (const document of documents) {
    budget.take(weightOf(document));
    yield document;
  }
}

interface Sort {
  readonly sort: unknown;
  readonly limit?: number | null;
  readonly collation: Collation | null;
}

function sorted<T extends Document>(documents: Iterable<T>, { sort, limit, collation }: Sort): T[] {
  const spec = readSort(sort);
  if (spec.length === 0) throw new CommandError(15976, '$sort stage must have at least one sort key');
  const order = sortOrder(spec, collation);
  return sortItems<T>(documents, { ...order, limit: limit ?? null, bytesOf: weightOf });
}

const sample: Stage = (documents, argument: Document, options) => {
  const { size }: Document = isDocument(argument) ? argument : {};
  if (size === undefined) throw new CommandError(28749, '$sample stage must specify a size');
  if (!isNumber(size)) throw new CommandError(28746, 'size argument to $sample must be a number');
  if (plainNumber(size) < 0) throw new CommandError(28747, 'size argument to $sample must not be negative');
  const draw = () => evaluate({}, { $rand: {} }, options);
  const drawn = bounded(documents, '$sample').map((document) => ({ draw: draw(), document }));
  const limit = plainNumber(size);
  return sorted(drawn, { sort: { draw: 1 }, limit, collation: null }).map(({ document }) => document);
};

const project: Stage = (documents, argument: Document, options) => {
  if (Object.keys(argument).length === 0)
    throw new CommandError(51272, '$project must have at least one field');
  const projection = compileProjection(argument, scopeOf(options));
  return projection === null ? documents : Iterator.from(documents).map(projection);
};

const unset: Stage = (documents, argument: string | string[], options) =>
  project(documents, Object.fromEntries([argument].flat().map((name) => [name, 0])) as never, options);

const count: Stage = (documents, name: unknown, options) => {
  if (typeof name !== 'string' || name === '' || name.startsWith('$') || name.includes('.'))
    throw new CommandError(40156, 'the count field must be a non-empty string');
  return project(
    groupDocuments(documents, { _id: null, [name]: { $sum: 1 } }, options),
    { _id: 0 } as never,
    options,
  );
};

/** A non-negative integer. Throws CommandError. */
function countOf(name: string, value: unknown, code: number): number {
  const count = isNumber(value) ? plainNumber(value) : Number.NaN;
  if (Number.isInteger(count) && count >= 0) return count;
  throw new CommandError(code, `invalid argument to ${name} stage: Expected a non-negative number`);
}

const fields =
  (name: string): Stage =>
  (documents, spec: unknown, options) =>
    addFields(name, documents, { spec, options });

const OWN: Readonly<Record<string, Stage>> = {
  $addFields: fields('$addFields'),
  $set: fields('$set'),
  $replaceRoot: (documents, argument: Document, options) => {
    if (!isDocument(argument) || !('newRoot' in argument))
      throw new CommandError(40231, 'no newRoot specified for the $replaceRoot stage');
    return replaceRoots(documents, { expression: argument.newRoot, options });
  },
  $replaceWith: (documents, expression: unknown, options) => replaceRoots(documents, { expression, options }),
  $bucket: (documents, argument: unknown, options) =>
    sorted(groupDocuments(documents, groupOfBuckets(argument), options), {
      sort: { _id: 1 },
      collation: null,
    }),
  $match: (documents, argument: Document, options) =>
    Iterator.from(documents).filter(compileFilter(argument, scopeOf(options))),
  $project: project,
  $unset: unset,
  $limit: (documents, argument: unknown) => {
    const limit = countOf('$limit', argument, 5107201);
    if (limit === 0) throw new CommandError(15958, 'the limit must be positive');
    return Iterator.from(documents).take(limit);
  },
  $skip: (documents, argument: unknown) => Iterator.from(documents).drop(countOf('$skip', argument, 5107200)),
  $sort: (documents) => documents,
  $group: (documents, argument: Document, options) => groupDocuments(documents, argument, options),
  $sortByCount: (documents, argument: unknown, options) =>
    sorted(groupDocuments(documents, { _id: argument, count: { $sum: 1 } }, options), {
      sort: { count: -1 },
      collation: null,
    }),
  $count: count,
  $fill: (documents, argument: Document, options) => filledDocuments(documents, argument, options),
  $setWindowFields: (documents, argument: unknown, options) =>
    windowedDocuments(documents, argument, options),
  $unwind: (documents, argument: Document) => unwound(documents, argument),
  $sample: sample,
};

/** Stages of mingo, used unchanged. */
const AS_THEY_ARE = ['$documents'];
/** Stages of mingo that know plain numbers only and hold all documents in memory. */
const PLAIN = ['$bucketAuto'];
const UPDATE_STAGES = new Set(['$addFields', '$set', '$project', '$unset', '$replaceRoot', '$replaceWith']);

function lookup(reader: CollectionReader): Stage {
  return (documents, argument: Document, options) => {
    const { from, localField, foreignField, pipeline, let: variables = {}, as } = argument;
    if (typeof from !== 'string')
      throw new CommandError('FailedToParse', "'from' of $lookup must name a collection of this database");
    if (typeof as !== 'string')
      throw new CommandError('FailedToParse', "must specify 'as' field for a $lookup");
    const sub = pipeline === undefined ? null : compilePipeline(pipeline, reader);
    const budget = () => new MemoryBudget('$lookup');
    return Iterator.from(documents).map((document) => {
      const { variables: outer, collation = null } = scopeOf(options);
      const own = evaluate(document, variables, options) as Document;
      const scope = { variables: { ...outer, ...own }, collation };
      const local = localField === undefined ? null : valuesOf(document, localField, options);
      const found = reader.read(from, local === null ? {} : { [foreignField]: { $in: local } }, scope);
      const held = budget();
      const list: Document[] = [];
      for (const each of sub === null ? found : sub(found, scope)) {
        held.take(weightOf(each));
        list.push(each);
      }
      return withValueAt(document, as.split('.'), list);
    });
  };
}

function valuesOf(document: Document, field: string, options: Evaluation): unknown[] {
  const value = evaluate(document, `$${field}`, options) ?? null;
  return Array.isArray(value) ? value : [value];
}

/** Stages that cannot be within a `$facet`. */
const NOT_IN_FACETS = ['$facet', '$out', '$merge', '$geoNear', '$indexStats', '$collStats'];

/** The results, and their input, have the memory limit of one stage each. */
function facet(reader: CollectionReader): Stage {
  return (documents, argument: Document, options) => {
    if (!isDocument(argument) || Object.keys(argument).length === 0)
      throw new CommandError(40169, 'the $facet specification must be a non-empty object');
    for (const pipeline of Object.values(argument).filter(Array.isArray))
      for (const stage of pipeline.filter(isDocument)) {
        const name = NOT_IN_FACETS.find((each) => each in stage);
        if (name !== undefined)
          throw new CommandError(40600, `${name} is not allowed to be used within a $facet stage`);
      }
    const all = [...bounded(documents, '$facet')];
    const budget = new MemoryBudget('$facet');
    const results = Object.entries(argument).map(([name, pipeline]) => {
      const list: Document[] = [];
      for (const document of compilePipeline(pipeline, reader)(all, scopeOf(options))) {
        budget.take(weightOf(document));
        list.push(document);
      }
      return [name, list];
    });
    return [Object.fromEntries(results)];
  };
}

type Lazily = (name: string, prepare: (documents: Documents) => Documents) => Stage;

/** mingo's stage, which supports plain numbers only, with a server's document limit. */
function densify(lazily: Lazily): Stage {
  const stage = lazily('$densify', (documents) => documents);
  return (documents, argument: unknown, options) => {
    const all = [...bounded(documents, '$densify')].map((each) => plainDeep(each) as Document);
    assertDensifiable(all, argument);
    return stage(all, plainDeep(argument) as never, options);
  };
}

function unionWith(reader: CollectionReader): Stage {
  return function* (documents, argument: Document | string, options) {
    const asked: Document = isDocument(argument) ? argument : { coll: argument };
    const { coll, pipeline = [] } = asked;
    if (typeof coll !== 'string' && (coll !== undefined || asked.pipeline === undefined))
      throw new CommandError('FailedToParse', 'the $unionWith stage must name a collection, or be an object');
    yield* documents;
    yield* compilePipeline(pipeline, reader)(
      coll === undefined ? [] : reader.read(coll, {}, {}),
      scopeOf(options),
    );
  } as Stage;
}

/** How many documents the stages from `at` on can use; null: all. */
export function limitAfter(pipeline: readonly Document[], at: number): number | null {
  let skipped = 0;
  for (const stage of pipeline.slice(at)) {
    const { $skip: skip, $limit: limit } = isDocument(stage) ? stage : {};
    const count = plainNumber(skip ?? limit ?? Number.NaN);
    if (!(count >= 0)) return null;
    if (limit !== undefined) return skipped + count;
    skipped += count;
  }
  return null;
}

/** Throws CommandError. */
export function assertLength(pipeline: readonly unknown[]): void {
  if (pipeline.length <= MAX_STAGES) return;
  throw new CommandError(7749501, `Pipeline length must be no longer than ${MAX_STAGES} stages.`);
}

export type Pipeline = (documents: Documents, scope?: FilterScope) => Documents;

/** Throws CommandError if it is not a pipeline, or needs an unsupported stage. */
export function compilePipeline(pipeline: unknown, reader: CollectionReader): Pipeline {
  if (!Array.isArray(pipeline))
    throw new CommandError('TypeMismatch', 'A pipeline must be an array of objects');
  assertLength(pipeline);
  assertNoScripts(pipeline);
  const known = stagesOf(reader);
  for (const stage of pipeline) nameOf(stage, known);
  return (documents, scope = {}) => {
    const options = evaluation(scope);
    return guarded(
      pipeline.reduce<Documents>((input, stage: Document, at) => {
        const name = nameOf(stage, known);
        if (name === '$sort')
          return sorted(input, {
            sort: stage.$sort,
            limit: limitAfter(pipeline, at + 1),
            collation: collationOf(options),
          });
        return (known[name] as Stage)(input, stage[name] as never, options);
      }, documents),
    );
  };
}

function* guarded(documents: Documents): Generator<Document> {
  try {
    yield* documents;
  } catch (error) {
    throw asCommandError(error);
  }
}

function nameOf(stage: unknown, known: Readonly<Record<string, Stage>>): string {
  const [name = '', ...more] = isDocument(stage) ? Object.keys(stage) : [];
  if (name === '' || more.length > 0)
    throw new CommandError(40323, 'A pipeline stage specification object must contain exactly one field.');
  if (Object.hasOwn(known, name)) return name;
  if (name === '$geoNear')
    throw new CommandError(40602, '$geoNear is only valid as the first stage in a pipeline.');
  if (name === '$changeStream')
    throw new CommandError(40573, 'The $changeStream stage is only supported on replica sets');
  throw new CommandError(40324, `Unrecognized pipeline stage name: '${name}'`);
}

function stagesOf(reader: CollectionReader): Record<string, Stage> {
  const lazily: Lazily = (name, prepare) => (documents, argument, options) =>
    mingo().stages[name]?.(mingo().lazy(prepare(documents)), argument, options) ?? [];
  return {
    ...OWN,
    ...Object.fromEntries(AS_THEY_ARE.map((name) => [name, lazily(name, (documents) => documents)])),
    ...Object.fromEntries(
      PLAIN.map((name) => {
        const stage = lazily(name, (documents) =>
          bounded(documents, name).map((each) => plainDeep(each) as Document),
        );
        return [
          name,
          ((documents, argument, options) =>
            stage(documents, plainDeep(argument) as never, options)) as Stage,
        ];
      }),
    ),
    $densify: densify(lazily),
    $facet: facet(reader),
    $graphLookup: (documents, argument: unknown, options) =>
      walkedDocuments(documents, argument, { reader, scope: scopeOf(options), options }),
    $lookup: lookup(reader),
    $unionWith: unionWith(reader),
  };
}

const NO_OTHERS: CollectionReader = {
  read: (name) => {
    throw new CommandError('InvalidOptions', `no other collection may be read here: ${name}`);
  },
};

/** An update that is a pipeline. Throws CommandError. */
export function updatePipeline(pipeline: readonly Document[], scope: FilterScope): Update {
  for (const stage of pipeline) {
    const [name = ''] = Object.keys(stage);
    if (!UPDATE_STAGES.has(name))
      throw new CommandError('InvalidOptions', `${name} is not allowed to be used within an update`);
  }
  const run = compilePipeline(pipeline, NO_OTHERS);
  return (document) => {
    const [result = document] = run([document], scope);
    return result;
  };
}
