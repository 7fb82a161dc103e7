/** `aggregate`, including its final `$out` or `$merge`. */
import { type Document, UUID } from 'bson';
import { CommandError } from '../command-error.ts';
import { readVariables } from '../query/command-variables.ts';
import { evaluate, evaluation } from '../query/expressions.ts';
import { compileFilter } from '../query/filter.ts';
import { compilePipeline, updatePipeline } from '../query/pipeline.ts';
import { applyUpdate, type Update } from '../query/updates/updates.ts';
import type { Collection } from '../storage/documents-store.ts';
import { encodeDocument } from '../values/bson-documents.ts';
import { documentOf, entriesOf } from '../values/field-order.ts';
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
import { explain } from './explain.ts';
import { figureStage } from './figures.ts';
import { type Start, split, startOf } from './pipeline-start.ts';
import { assertNoView, resolveView } from './views.ts';

/** Stages that need all input before they emit the first document. */
const BLOCKING = new Set(
  '$sort $group $sortByCount $bucket $bucketAuto $facet $sample $densify $fill $setWindowFields $count'.split(
    ' ',
  ),
);

function aggregate(command: Document, scope: CommandScope): Document {
  const { pipeline, cursor, explain: isExplained } = command;
  if (isExplained === true) return explain({ explain: command, verbosity: 'queryPlanner' }, scope);
  const variables = readVariables(command.let);
  const stages: Document[] = Array.isArray(pipeline) ? pipeline : [];
  if (stages.some((stage) => isDocument(stage) && '$changeStream' in stage))
    throw new CommandError(40573, 'The $changeStream stage is only supported on replica sets');
  if (stages.slice(1).some((stage) => isDocument(stage) && '$documents' in stage))
    throw new CommandError(40602, '$documents is only valid as the first stage in a pipeline.');
  if (!isDocument(cursor)) throw new CommandError('FailedToParse', "The 'cursor' option is required");
  const isOfDatabase = plainNumber(command.aggregate) === 1;
  const name = isOfDatabase ? '$cmd.aggregate' : collectionName(command, scope);
  if (isOfDatabase && !('$documents' in (stages[0] ?? {})))
    throw new CommandError('InvalidNamespace', 'aggregate must name a collection');
  const target = writerOf(stages.at(-1), scope);
  const collation = collationOf(command, scope.store.collection(name));
  const filter = { variables, collation };
  const figures = figureStage(stages[0], name, scope);
  const wanted: unknown = target === null ? pipeline : stages.slice(0, -1);
  assertNoNear(split(wanted).read.filter);
  const { base, pipeline: shown } = resolveView(name, scope.store);
  const { documents, rest, read } =
    figures === null
      ? startOf(base, [...shown, ...(wanted as Document[])], { scope, filter, hint: command.hint })
      : { documents: figures, rest: (wanted as Document[]).slice(1), read: null };
  const run = compilePipeline(rest, readerOf(scope));
  const quick = read === null ? null : quickCount(base, { read, rest }, scope);
  const made = quick ?? run(documents, filter);
  if (target !== null) target(made);
  const result = target === null ? made : [];
  const isHeld =
    read === null ||
    base !== name ||
    read.sort.length > 0 ||
    rest.some((stage) => BLOCKING.has(Object.keys(stage)[0] ?? ''));
  return scope.cursors.first(
    { documents: result[Symbol.iterator](), isHeld },
    { namespace: namespaceOf(name, scope), batchSize: cursor.batchSize, isSingle: false },
  );
}

/** Throws CommandError for `$near`, whose order would be lost in an aggregation. */
function assertNoNear(filter: Document): void {
  for (const [name, value] of Object.entries(filter)) {
    if (name === '$and' && Array.isArray(value)) value.filter(isDocument).forEach(assertNoNear);
    if (isDocument(value) && ('$near' in value || '$nearSphere' in value)) compileFilter({ [name]: value });
  }
}

/** countDocuments of a whole collection, as drivers send it: no documents are read. */
function quickCount(
  name: string,
  { read, rest }: { read: Start; rest: Document[] },
  { store }: CommandScope,
): Document[] | null {
  const [group] = rest;
  if (rest.length !== 1 || Object.keys(read.filter).length > 0 || !isDocument(group?.$group)) return null;
  const { _id: id, ...outputs } = group.$group;
  const [[output, sum] = ['', null], ...more] = Object.entries(outputs);
  if (more.length > 0 || !isDocument(sum) || sum.$sum !== 1 || (id !== null && typeof id !== 'number'))
    return null;
  const count = store.collection(name)?.documents ?? 0;
  return count === 0 ? [] : [{ _id: id, [output]: count }];
}

const WHEN_MATCHED = ['replace', 'keepExisting', 'merge', 'fail'];
const WHEN_NOT_MATCHED = ['insert', 'discard', 'fail'];

function assertOneOf(name: string, value: unknown, values: readonly string[]): void {
  if (value === undefined || values.includes(value as string)) return;
  throw new CommandError(
    'BadValue',
    `Enumeration value '${String(value)}' for field '${name}' is not a valid value`,
  );
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
    if (Array.isArray(merge.whenMatched)) updatePipeline(merge.whenMatched, {});
    else assertOneOf('whenMatched', merge.whenMatched, WHEN_MATCHED);
    assertOneOf('whenNotMatched', merge.whenNotMatched, WHEN_NOT_MATCHED);
    return (documents) => mergeInto(name, { documents, merge }, scope);
  }
  return null;
}

/** The target collection, which must be in this database. */
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

/** Replaces a collection's documents, keeping its indexes. */
function replaceCollection(name: string, documents: Iterable<Document>, scope: CommandScope): void {
  const { store, writing } = scope;
  const old = store.collection(name);
  const made = createCollection(`tmp.agg_out.${new UUID().toHexString()}`, scope, old?.options ?? {});
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
  // The same command must not read merged documents again.
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
      const change = mergeUpdate(merge, document);
      const next = applyUpdate(change, found);
      if (next !== null) scope.writing.replace(collection as Collection, found, next);
    }
  }
}

function mergeUpdate({ whenMatched = 'merge', let: asked }: Document, document: Document): Update {
  if (Array.isArray(whenMatched)) {
    const variables = evaluate(document, asked ?? { new: '$$ROOT' }, evaluation()) as Document;
    return updatePipeline(whenMatched, { variables });
  }
  if (whenMatched === 'replace') return (there) => ({ ...document, _id: there._id });
  if (whenMatched === 'merge')
    return (there) =>
      documentOf([...entriesOf(there), ...entriesOf(document), ['_id', document._id ?? there._id]]);
  throw new CommandError('BadValue', "Enumeration value for field 'whenMatched' is not a valid value");
}

export const AGGREGATE_COMMANDS: Readonly<Record<string, Command>> = { aggregate };
