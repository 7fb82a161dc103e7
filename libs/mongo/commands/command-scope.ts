/** Dependencies of a database's commands. */
import type { Document } from 'bson';
import type { Clock } from '../clock.ts';
import { CommandError } from '../command-error.ts';
import { compileFilter } from '../query/filter.ts';
import { type CollectionReader, compilePipeline } from '../query/pipeline.ts';
import type { Cursors } from '../storage/cursors.ts';
import { type ReadOptions, readDocuments } from '../storage/documents-reading.ts';
import type { Collection, DocumentsStore } from '../storage/documents-store.ts';
import type { DocumentsWriting } from '../storage/documents-writing.ts';
import type { Index } from '../storage/index-values.ts';
import type { FoundDocument } from '../storage/stored-rows.ts';
import { encodeDocument } from '../values/bson-documents.ts';
import { type Collation, readCollation } from '../values/collations.ts';
import type { OperationCounters } from './figures.ts';
import { startOf } from './pipeline-start.ts';
import { MAX_VIEW_DEPTH, resolveView, stagesOfRead, tooDeep, viewOf } from './views.ts';

const MAX_NAMESPACE_BYTES = 255;
const NO_KEY = new Uint8Array();

export interface CommandScope {
  readonly store: DocumentsStore;
  readonly writing: DocumentsWriting;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly counters: OperationCounters;
  readonly databaseName: string;
  /** Depth of nested views. */
  readonly viewDepth?: number;
}

export type Command = (command: Document, scope: CommandScope) => Document;

/** The name of the collection that a command is about. Throws CommandError. */
export function collectionName(command: Document, scope: CommandScope): string {
  const [[field, name] = ['', undefined]] = Object.entries(command);
  if (typeof name !== 'string')
    throw new CommandError(
      'InvalidNamespace',
      `collection name has invalid type: the field '${field}' must be a string`,
    );
  if (name === '')
    throw new CommandError('InvalidNamespace', `Invalid namespace specified '${scope.databaseName}.'`);
  return name;
}

export function namespaceOf(name: string, { databaseName }: CommandScope): string {
  return `${databaseName}.${name}`;
}

/** The collection with that name, created if missing. Throws CommandError. */
export function collectionFor(name: string, scope: CommandScope): Collection {
  return scope.store.collection(name) ?? createCollection(name, scope, {});
}

/** Throws CommandError for an invalid name of a collection. */
export function assertName(name: string, scope: CommandScope): void {
  const namespace = namespaceOf(name, scope);
  const isBad =
    name === '' || name.includes('$') || name.includes('\0') || name.startsWith('.') || name.endsWith('.');
  if (isBad || name.startsWith('system.') || Buffer.byteLength(namespace) > MAX_NAMESPACE_BYTES)
    throw new CommandError('InvalidNamespace', `Invalid namespace specified '${namespace}'`);
}

/** SQLite scans all tables of a file to create or drop one. */
const MAX_TABLES = 10_000;

/** Throws CommandError if another collection or index would be too many. */
export function assertRoom({ store }: CommandScope): void {
  if (store.tables < MAX_TABLES) return;
  throw new CommandError(
    'OperationFailed',
    `a database has at most ${MAX_TABLES} collections and indexes together: drop unused collections or indexes`,
  );
}

export function createCollection(name: string, scope: CommandScope, options: Document): Collection {
  assertName(name, scope);
  assertRoom(scope);
  return scope.store.create(name, options);
}

/** The documents of a collection or view; none if it does not exist. */
export function* find(name: string, scope: CommandScope, options: ReadOptions): Generator<FoundDocument> {
  const collection = scope.store.collection(name);
  if (collection === undefined) compileFilter(options.filter, { ...options, special: { name: null } });
  else if (viewOf(collection.options) === null) {
    const onUse = (index: Index) => scope.counters.use(collection, index);
    yield* readDocuments(scope.store, collection, { ...options, onUse });
  } else yield* findInView(name, deeper(scope), options);
}

function* findInView(
  name: string,
  scope: CommandScope,
  { variables = {}, collation = null, ...options }: ReadOptions,
): Generator<FoundDocument> {
  const { base, pipeline } = resolveView(name, scope.store);
  const filter = { variables, collation };
  const { documents, rest } = startOf(base, [...pipeline, ...stagesOfRead(options)], {
    scope,
    filter,
    hint: options.hint,
  });
  const run = compilePipeline(rest, readerOf(scope));
  let rowNumber = 0;
  for (const document of run(documents, filter))
    yield { rowNumber: ++rowNumber, key: NO_KEY, bytes: encodeDocument(document), document };
}

function deeper(scope: CommandScope): CommandScope {
  const viewDepth = (scope.viewDepth ?? 0) + 1;
  if (viewDepth > MAX_VIEW_DEPTH) throw tooDeep();
  return { ...scope, viewDepth };
}

export function readerOf(scope: CommandScope): CollectionReader {
  return {
    read: (name, filter, of) => find(name, scope, { filter, ...of }).map(({ document }) => document),
  };
}

/** The collation of a command or statement, or else of the collection. Throws CommandError. */
export function collationOf({ collation }: Document, collection: Collection | undefined): Collation | null {
  if (collation !== undefined) return readCollation(collation);
  return collection?.indexes[0]?.collation ?? null;
}
