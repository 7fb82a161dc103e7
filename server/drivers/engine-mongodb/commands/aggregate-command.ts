/** `aggregate`, with what it writes at its end. */
import { type Document, UUID } from 'bson';
import { newUuid } from '../../../platform/ids.ts';
import { CommandError } from '../command-error.ts';
import { readVariables } from '../query/command-variables.ts';
import { compileFilter } from '../query/filter.ts';
import { compilePipeline } from '../query/pipeline.ts';
import { readSort } from '../query/sorting.ts';
import { applyUpdate, type Update } from '../query/updates.ts';
import type { Collection } from '../storage/documents-store.ts';
import type { SortSpec } from '../storage/plan.ts';
import { encodeDocument } from '../values/bson-documents.ts';
import { isDocument } from '../values/field-paths.ts';
import { plainNumber } from '../values/numbers.ts';
import {
  type Command,
  type CommandScope,
  collationOf,
  collectionFor,
  collectionName,
  createCollection,
  find,
  namespaceOf,
  readerOf,
} from './command-scope.ts';
import { figureStage } from './figures.ts';
import { geoNearStage } from './geo-near.ts';
import { assertNoView, viewOf } from './views.ts';

/** Stages that need all input before they emit the first document. */
const BLOCKING = new Set(
  '$sort $group $sortByCount $bucket $bucketAuto $facet $sample $densify $fill $count'.split(' '),
);

function aggregate(command: Document, scope: CommandScope): Document {
  const { pipeline, cursor } = command;
  const variables = readVariables(command.let);
  const stages: Document[] = Array.isArray(pipeline) ? pipeline : [];
  if (stages.some((stage) => '$changeStream' in stage))
    throw new CommandError(40573, 'The $changeStream stage is only supported on replica sets');
  if (!isDocument(cursor)) throw new CommandError('FailedToParse', "The 'cursor' option is required");
  const isOfDatabase = plainNumber(command.aggregate) === 1;
  const name = isOfDatabase ? '$cmd.aggregate' : collectionName(command, scope);
  if (isOfDatabase && !('$documents' in (stages[0] ?? {})))
    throw new CommandError('InvalidNamespace', 'aggregate must name a collection');
  const target = writerOf(stages.at(-1), scope);
  const collection = scope.store.collection(name);
  const collation = collationOf(command, collection);
  const first =
    figureStage(stages[0], name, scope) ??
    geoNearStage(stages[0], collection, { scope, filter: { variables, collation } });
  const wanted: Document[] = target === null ? pipeline : stages.slice(0, -1);
  const { read, rest } = first === null ? split(wanted) : { read: { filter: {} }, rest: wanted.slice(1) };
  const run = compilePipeline(rest, readerOf(scope));
  const quick = first === null ? quickCount(name, { read, rest }, scope) : null;
  assertNoNear(read.filter);
  const found = () => find(name, scope, { ...read, variables, collation }).map(({ document }) => document);
  const documents = quick ?? run(first ?? found(), { variables, collation });
  if (target !== null) target(documents);
  const result = target === null ? documents : [];
  const isHeld =
    first !== null ||
    viewOf(collection?.options) !== null ||
    (read.sort?.length ?? 0) > 0 ||
    rest.some((stage) => BLOCKING.has(Object.keys(stage)[0] ?? ''));
  return scope.cursors.first(
    { documents: result[Symbol.iterator](), isHeld },
    { namespace: namespaceOf(name, scope), batchSize: cursor.batchSize, isSingle: false },
  );
}

interface Start {
  readonly filter: Document;
  readonly sort?: SortSpec;
}

/** Throws CommandError for `$near`, whose order an aggregation would not keep. */
function assertNoNear(filter: Document): void {
  for (const [name, value] of Object.entries(filter)) {
    if (name === '$and' && Array.isArray(value)) value.filter(isDocument).forEach(assertNoNear);
    if (isDocument(value) && ('$near' in value || '$nearSphere' in value)) compileFilter({ [name]: value });
  }
}

/** Splits off the leading stages that an index can serve. */
function split(pipeline: Document[]): { read: Start; rest: Document[] } {
  if (!Array.isArray(pipeline))
    throw new CommandError('TypeMismatch', "'pipeline' option must be specified as an array");
  const [first, second] = pipeline;
  if (isDocument(first) && isDocument(first.$match)) {
    if (isDocument(second) && '$sort' in second)
      return { read: { filter: first.$match, sort: readSort(second.$sort) }, rest: pipeline.slice(2) };
    return { read: { filter: first.$match }, rest: pipeline.slice(1) };
  }
  if (isDocument(first) && '$sort' in first)
    return { read: { filter: {}, sort: readSort(first.$sort) }, rest: pipeline.slice(1) };
  return { read: { filter: {} }, rest: pipeline };
}

/** The drivers' countDocuments of a whole collection: nothing has to be read for it. */
function quickCount(
  name: string,
  { read, rest }: { read: Start; rest: Document[] },
  { store }: CommandScope,
): Document[] | null {
  const [group] = rest;
  if (viewOf(store.collection(name)?.options) !== null) return null;
  if (rest.length !== 1 || Object.keys(read.filter).length > 0 || !isDocument(group?.$group)) return null;
  const { _id: id, ...outputs } = group.$group;
  const [[output, sum] = ['', null], ...more] = Object.entries(outputs);
  if (more.length > 0 || !isDocument(sum) || sum.$sum !== 1 || (id !== null && typeof id !== 'number'))
    return null;
  const count = store.collection(name)?.documents ?? 0;
  return count === 0 ? [] : [{ _id: id, [output]: count }];
}

type Writer = (documents: Iterable<Document>) => void;

function writerOf(stage: Document | undefined, scope: CommandScope): Writer | null {
  if (isDocument(stage) && '$out' in stage) {
    const name = targetOf('$out', stage.$out, scope);
    return (documents) => replaceCollection(name, documents, scope);
  }
  if (isDocument(stage) && '$merge' in stage) {
    const merge: Document =
      isDocument(stage.$merge) && 'into' in stage.$merge ? stage.$merge : { into: stage.$merge };
    const name = targetOf('$merge', merge.into, scope);
    return (documents) => mergeInto(name, { documents, merge }, scope);
  }
  return null;
}

/** The collection that is written; it must be of this database. */
function targetOf(stage: string, target: unknown, scope: CommandScope): string {
  const { databaseName } = scope;
  const { db = databaseName, coll = target } = isDocument(target) ? target : {};
  if (typeof coll !== 'string' || coll === '')
    throw new CommandError(16990, `${stage} only supports a string or object argument`);
  if (db === databaseName) assertNoView(coll, scope);
  if (db === databaseName) return coll;
  throw new CommandError(
    'Unauthorized',
    `not authorized on ${String(db)} to execute command { ${stage}: "${coll}" }`,
  );
}

/** Replaces a collection by one with all of the documents, keeping its indexes. */
function replaceCollection(name: string, documents: Iterable<Document>, scope: CommandScope): void {
  const { store, writing } = scope;
  const old = store.collection(name);
  const made = createCollection(
    `tmp.agg_out.${new UUID(newUuid()).toHexString()}`,
    scope,
    old?.options ?? {},
  );
  for (const { spec } of old?.indexes.slice(1) ?? []) writing.createIndex(made, spec);
  for (const document of documents) writing.insert(made, encodeDocument(document));
  if (old !== undefined) store.drop(old);
  store.rename(made, name);
}

function mergeInto(
  name: string,
  { documents, merge }: { documents: Iterable<Document>; merge: Document },
  scope: CommandScope,
): void {
  const { on = '_id', whenMatched = 'merge', whenNotMatched = 'insert' } = merge;
  const fields: string[] = [on].flat();
  // Merged documents are not read again by the same command.
  for (const document of [...documents]) {
    const filter = Object.fromEntries(fields.map((field) => [field, { $eq: document[field] ?? null }]));
    const collection = collectionFor(name, scope);
    const [found] =
      '_id' in document || on !== '_id'
        ? find(name, scope, { filter, limit: 1, collation: collationOf({}, collection) })
        : [];
    if (found === undefined) {
      if (whenNotMatched === 'fail')
        throw new CommandError(13113, '$merge found no matching document in the target collection');
      if (whenNotMatched === 'insert') scope.writing.insert(collection, encodeDocument(document));
    } else if (whenMatched === 'fail') {
      throw new CommandError('DuplicateKey', '$merge failed due to a DuplicateKey error');
    } else if (whenMatched !== 'keepExisting') {
      const change = mergeUpdate(whenMatched, document);
      const next = applyUpdate(change, found);
      if (next !== null) scope.writing.replace(collection as Collection, found, next);
    }
  }
}

function mergeUpdate(whenMatched: unknown, document: Document): Update {
  if (whenMatched === 'replace') return (there) => ({ ...document, _id: there._id });
  if (whenMatched === 'merge') return (there) => ({ ...there, ...document, _id: document._id ?? there._id });
  throw new CommandError('BadValue', "Enumeration value for field 'whenMatched' is not a valid value");
}

export const AGGREGATE_COMMANDS: Readonly<Record<string, Command>> = { aggregate };
