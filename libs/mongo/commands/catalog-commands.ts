/** Collections, indexes and figures about them. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { compileFilter } from '../query/filter.ts';
import type { Collection } from '../storage/documents-store.ts';
import type { Index } from '../storage/index-values.ts';
import { readValidator } from '../storage/validation.ts';
import { isSameCollation, readCollation } from '../values/collations.ts';
import { isDocument } from '../values/field-paths.ts';
import { equalValues } from '../values/key-order.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';
import {
  assertName,
  assertRoom,
  type Command,
  type CommandScope,
  collectionFor,
  collectionName,
  createCollection,
  namespaceOf,
} from './command-scope.ts';
import { listedSpec } from './figures.ts';
import { assertExpiry, readSpec } from './index-specs.ts';
import { assertNoView, readView, viewOf } from './views.ts';

const MAX_INDEXES = 64;
/** Options of `create`; without effect here, or sent with any command. */
const CREATE_OPTIONS = new Set(
  (
    'create viewOn pipeline capped size max clusteredIndex expireAfterSeconds validator validationLevel validationAction storageEngine indexOptionDefaults writeConcern comment collation autoIndexId idIndex ' +
    'lsid txnNumber startTransaction autocommit maxTimeMS readConcern apiVersion apiStrict apiDeprecationErrors'
  ).split(' '),
);
const COLL_MOD_OPTIONS = new Set(
  (
    'collMod viewOn pipeline index validator validationLevel validationAction writeConcern comment lsid maxTimeMS ' +
    'readConcern apiVersion apiStrict apiDeprecationErrors'
  ).split(' '),
);

function there(command: Document, scope: CommandScope): Collection {
  const name = collectionName(command, scope);
  const collection = scope.store.collection(name);
  if (collection !== undefined) return collection;
  throw new CommandError('NamespaceNotFound', `ns does not exist: ${namespaceOf(name, scope)}`);
}

function create(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const collation = readCollation(command.collation);
  const isKnown = (field: string) => CREATE_OPTIONS.has(field) || field.startsWith('$');
  const unknown = Object.keys(command).find((field) => !isKnown(field) && command[field] !== false);
  if (unknown !== undefined)
    throw new CommandError('InvalidOptions', `'${unknown}' of create is not supported by this engine`);
  if (scope.store.collection(name) !== undefined)
    throw new CommandError('NamespaceExists', `Collection ${namespaceOf(name, scope)} already exists.`);
  const view = readView(name, command, scope.store);
  if (view === null && command.pipeline !== undefined)
    throw new CommandError('InvalidOptions', "'pipeline' requires 'viewOn' to also be specified");
  const own = { ...readCapped(command), ...readClustered(command), ...readValidator(command, collation) };
  if (view !== null && Object.keys(own).length > 0)
    throw new CommandError('InvalidOptions', `a view cannot have '${Object.keys(own)[0]}'`);
  const options = view === null ? own : { ...view };
  createCollection(name, scope, collation === null ? options : { ...options, collation: collation.spec });
  return { ok: 1 };
}

/** The limits of a capped collection. Throws CommandError. */
function readCapped({ capped, size, max }: Document): Document {
  const invalid = (why: string) => new CommandError('InvalidOptions', why);
  if (!capped) {
    if (size === undefined && max === undefined) return {};
    throw invalid("the fields 'size' and 'max' are for a collection with 'capped: true'");
  }
  if (size === undefined) throw invalid("the 'size' field is required when 'capped' is true");
  const [bytes, most] = [size, max ?? 1].map((each) => (isNumber(each) ? plainNumber(each) : Number.NaN));
  if (!((bytes as number) >= 1)) throw invalid("'size' of a capped collection must be a number of bytes");
  if (!((most as number) >= 1)) throw invalid("'max' of a capped collection must be a number of documents");
  return { capped: true, size: roundedSize(bytes as number), ...(max === undefined ? {} : { max: most }) };
}

/** A size rounded like a server's: at least 4 KiB, else a multiple of 256 bytes. */
function roundedSize(bytes: number): number {
  return Math.max(4096, Math.ceil(bytes / 256) * 256);
}

/** The options of a collection that stores its documents in order of `_id`. Throws CommandError. */
function readClustered({ clusteredIndex, expireAfterSeconds: seconds, capped }: Document): Document {
  const invalid = (why: string) => new CommandError('InvalidOptions', why);
  if (clusteredIndex === undefined) {
    if (seconds === undefined) return {};
    throw invalid("'expireAfterSeconds' is only supported when the 'clusteredIndex' option is specified");
  }
  if (!isDocument(clusteredIndex))
    throw new CommandError('TypeMismatch', "'clusteredIndex' must be an object");
  const { key, unique, name = '_id_', v = 2 } = clusteredIndex;
  if (unique === undefined)
    throw new CommandError(
      40414,
      "BSON field 'create.clusteredIndex.unique' is missing but a required field",
    );
  if (unique !== true) throw new CommandError(5979700, 'The clusteredIndex option requires unique: true');
  if (!equalValues(key, { _id: 1 }))
    throw new CommandError(
      'InvalidIndexSpecificationOption',
      "The clusteredIndex option supports only the key '{_id: 1}'",
    );
  if (capped) throw invalid("a collection is either 'capped' or has a 'clusteredIndex'");
  const expiry = seconds === undefined ? {} : { expireAfterSeconds: seconds };
  assertExpiry({ key, ...expiry });
  return { clusteredIndex: { v, key, name, unique: true }, ...expiry };
}

const COLL_MOD_INDEX = new Set(['name', 'keyPattern', 'expireAfterSeconds', 'hidden']);

/** Changes the validator of a collection, and the expiry of an index. */
function collMod(command: Document, scope: CommandScope): Document {
  const collection = there(command, scope);
  const { index: asked } = command;
  const isKnown = (field: string) => COLL_MOD_OPTIONS.has(field) || field.startsWith('$');
  const unknown = Object.keys(command).find((field) => !isKnown(field));
  if (unknown !== undefined)
    throw new CommandError('InvalidOptions', `'${unknown}' of collMod is not supported by this engine`);
  if (command.viewOn !== undefined || command.pipeline !== undefined)
    return modifyView(collection, command, scope);
  const changed = readValidator(command, collection.indexes[0]?.collation ?? null);
  const noted = asked === undefined ? {} : modifyIndex(collection, asked, scope);
  if (Object.keys(changed).length === 0) return { ...noted, ok: 1 };
  const { validator, ...options } = { ...collection.options, ...changed };
  const isGone = validator === undefined || Object.keys(validator).length === 0;
  scope.store.setOptions(collection, isGone ? options : { ...options, validator });
  return { ...noted, ok: 1 };
}

function modifyView(collection: Collection, command: Document, scope: CommandScope): Document {
  const { viewOn, pipeline } = command;
  if (viewOf(collection.options) === null)
    throw new CommandError(
      'InvalidOptions',
      `'viewOn' and 'pipeline' are for views, and ${collection.name} is not a view`,
    );
  if (viewOn === undefined || pipeline === undefined)
    throw new CommandError(
      'InvalidOptions',
      "Must specify both 'viewOn' and 'pipeline' when modifying a view",
    );
  const view = readView(collection.name, command, scope.store);
  scope.store.setOptions(collection, { ...collection.options, ...view });
  return { ok: 1 };
}

function modifyIndex(collection: Collection, asked: unknown, { store }: CommandScope): Document {
  if (!isDocument(asked)) throw new CommandError('TypeMismatch', "'index' of collMod must be an object");
  const { name, keyPattern, expireAfterSeconds: seconds, hidden } = asked;
  const unknown = Object.keys(asked).find((field) => !COLL_MOD_INDEX.has(field));
  if (unknown !== undefined)
    throw new CommandError('InvalidOptions', `'index.${unknown}' of collMod is not supported by this engine`);
  if ((name === undefined) === (keyPattern === undefined))
    throw new CommandError('InvalidOptions', 'collMod needs either the name or the keyPattern of an index');
  if (seconds === undefined && hidden === undefined)
    throw new CommandError('InvalidOptions', 'no expireAfterSeconds or hidden field');
  const index = chosenIndex(collection, name ?? keyPattern);
  if (index.id === 0) throw new CommandError('BadValue', 'the index of _id cannot be changed');
  const { hidden: wasHidden = false, ...kept } = index.spec;
  const isHidden = hidden === undefined ? wasHidden : Boolean(hidden);
  const spec = {
    ...kept,
    ...(seconds === undefined ? {} : { expireAfterSeconds: seconds }),
    ...(isHidden ? { hidden: true } : {}),
  };
  assertExpiry(spec);
  store.setSpec(collection, index, spec);
  return {
    ...(seconds === undefined
      ? {}
      : { expireAfterSeconds_old: index.spec.expireAfterSeconds, expireAfterSeconds_new: seconds }),
    ...(hidden === undefined ? {} : { hidden_old: wasHidden, hidden_new: isHidden }),
  };
}

function drop(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const collection = scope.store.collection(name);
  if (collection === undefined) return { ok: 1 };
  const nIndexesWas = collection.indexes.length;
  scope.store.drop(collection);
  return { nIndexesWas, ns: namespaceOf(name, scope), ok: 1 };
}

/** Names include the database and the collection. */
function renameCollection(
  { renameCollection: from, to, dropTarget }: Document,
  scope: CommandScope,
): Document {
  const [source, target] = [from, to].map((each) => {
    const [database, ...name] = String(each).split('.');
    if (database === scope.databaseName) return name.join('.');
    throw new CommandError(
      'Unauthorized',
      `not authorized on ${database} to execute command { renameCollection: … }`,
    );
  }) as [string, string];
  const { store } = scope;
  assertNoView(source, scope);
  assertName(target, scope);
  const collection = store.collection(source);
  if (source === target) throw new CommandError('IllegalOperation', "Can't rename a collection to itself");
  if (collection === undefined)
    throw new CommandError(
      'NamespaceNotFound',
      `Source collection ${namespaceOf(source, scope)} does not exist`,
    );
  const there = store.collection(target);
  if (there !== undefined && !dropTarget)
    throw new CommandError('NamespaceExists', 'target namespace exists');
  if (there !== undefined) store.drop(there);
  store.rename(collection, target);
  return { ok: 1 };
}

function dropDatabase(_command: Document, scope: CommandScope): Document {
  scope.store.dropAll();
  scope.cursors.killAll();
  return { dropped: scope.databaseName, ok: 1 };
}

function listCollections(command: Document, scope: CommandScope): Document {
  const { filter = {}, nameOnly, cursor } = command;
  const test = compileFilter(filter);
  const documents = scope.store
    .collections()
    .map(({ name, uuid, options }) => ({
      name,
      type: viewOf(options) === null ? 'collection' : 'view',
      ...(nameOnly
        ? {}
        : {
            options,
            info: viewOf(options) === null ? { readOnly: false, uuid } : { readOnly: true },
            ...(options.clusteredIndex || viewOf(options) !== null
              ? {}
              : { idIndex: { v: 2, key: { _id: 1 }, name: '_id_' } }),
          }),
    }))
    .filter(test);
  return scope.cursors.first(
    { documents: documents.values(), isHeld: true },
    { namespace: namespaceOf('$cmd.listCollections', scope), batchSize: cursor?.batchSize, isSingle: false },
  );
}

function listIndexes(command: Document, scope: CommandScope): Document {
  const { indexes, name } = there(command, scope);
  const documents = indexes.map(listedSpec);
  return scope.cursors.first(
    { documents: documents.values(), isHeld: true },
    { namespace: namespaceOf(name, scope), batchSize: command.cursor?.batchSize, isSingle: false },
  );
}

function createIndexes(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const isNew = scope.store.collection(name) === undefined;
  const collection = collectionFor(name, scope);
  const numIndexesBefore = collection.indexes.length;
  if (!Array.isArray(command.indexes) || command.indexes.length === 0)
    throw new CommandError('BadValue', 'Must specify at least one index to create');
  for (const asked of command.indexes) createIndex(collection, readSpec(asked, collection), scope);
  const numIndexesAfter = collection.indexes.length;
  const note = numIndexesAfter === numIndexesBefore ? { note: 'all indexes already exist' } : {};
  return { numIndexesBefore, numIndexesAfter, createdCollectionAutomatically: isNew, ...note, ok: 1 };
}

function createIndex(collection: Collection, spec: Document, scope: CommandScope): void {
  if (equalValues(spec.key, { _id: 1 })) return;
  const same = collection.indexes.find((other) => isAlike(other.spec, spec));
  const namesake = collection.indexes.find(({ name }) => name === spec.name);
  if (namesake !== undefined && !isAlike(namesake.spec, spec))
    throw conflict(
      'IndexKeySpecsConflict',
      'An existing index has the same name as the requested index. When index names are not specified, they ' +
        'are auto generated and can cause conflicts. Please refer to our documentation',
      { spec, other: namesake.spec },
    );
  if (same !== undefined) {
    if (equalValues(sorted(same.spec), sorted(spec))) return;
    throw conflict(
      'IndexOptionsConflict',
      same === namesake
        ? 'An equivalent index already exists with the same name but different options'
        : `Index already exists with a different name: ${same.name}`,
      { spec, other: same.spec },
    );
  }
  const isText = ({ fields }: Index) => fields.some(({ kind }) => kind === 'text');
  if (spec.textIndexVersion !== undefined && collection.indexes.some(isText))
    throw new CommandError('CannotCreateIndex', 'only one text index per collection allowed');
  if (collection.indexes.length >= MAX_INDEXES)
    throw new CommandError('CannotCreateIndex', `add index fails, too many indexes for ${collection.name}`);
  assertRoom(scope);
  scope.writing.createIndex(collection, spec);
  scope.counters.begin(collection, spec.name);
}

/** Whether two indexes cannot coexist, because they differ only in their names. */
function isAlike(one: Document, other: Document): boolean {
  const isSame = (name: string) => equalValues(one[name] ?? null, other[name] ?? null);
  return (
    isSame('key') &&
    isSame('partialFilterExpression') &&
    Boolean(one.unique) === Boolean(other.unique) &&
    Boolean(one.sparse) === Boolean(other.sparse) &&
    isSameCollation(readCollation(one.collation), readCollation(other.collation))
  );
}

function conflict(
  code: 'IndexKeySpecsConflict' | 'IndexOptionsConflict',
  what: string,
  { spec, other }: { spec: Document; other: Document },
): CommandError {
  const [wanted, there] = [JSON.stringify(spec), JSON.stringify(other)];
  return new CommandError(code, `${what}. Requested index: ${wanted}, existing index: ${there}`);
}

/** Options that are listed even if they were not given. */
const AS_LISTED = new Set(['v', 'collation', '2dsphereIndexVersion']);

/** Options in a fixed order, without default values. */
function sorted(spec: Document): Document {
  return Object.fromEntries(
    Object.entries(spec)
      .filter(([name, value]) => value !== false && !AS_LISTED.has(name))
      .sort(),
  );
}

function dropIndexes(command: Document, scope: CommandScope): Document {
  const collection = there(command, scope);
  const nIndexesWas = collection.indexes.length;
  const { index: wanted } = command;
  const chosen =
    wanted === '*'
      ? collection.indexes.slice(1)
      : [wanted].flat().map((each) => chosenIndex(collection, each));
  for (const index of chosen) {
    if (index.id === 0) throw new CommandError('InvalidOptions', 'cannot drop _id index');
    scope.store.dropIndex(collection, index);
  }
  return { nIndexesWas, ok: 1 };
}

function chosenIndex({ indexes }: Collection, wanted: unknown) {
  const found = indexes.find(
    ({ name, spec }) => name === wanted || (isDocument(wanted) && equalValues(spec.key, wanted)),
  );
  if (found !== undefined) return found;
  const shown = isDocument(wanted) ? `key: ${JSON.stringify(wanted)}` : `name [${String(wanted)}]`;
  throw new CommandError('IndexNotFound', `index not found with ${shown}`);
}

/** Commands that write. */
export const CATALOG_CHANGES: Readonly<Record<string, Command>> = {
  create,
  collMod,
  drop,
  dropDatabase,
  renameCollection,
  createIndexes,
  dropIndexes,
  deleteIndexes: dropIndexes,
};

export const CATALOG_QUESTIONS: Readonly<Record<string, Command>> = {
  listCollections,
  listIndexes,
  // Drivers get it from their connection; queries over HTTP do not.
  ping: () => ({ ok: 1 }),
};
