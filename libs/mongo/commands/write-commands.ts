/** `insert`, `update`, `delete` and `findAndModify`. */
import { calculateObjectSize, type Document, ObjectId } from 'bson';
import { CommandError } from '../command-error.ts';
import { DOCUMENT_STEPS, OutOfTime, spend } from '../command-time.ts';
import { readVariables } from '../query/command-variables.ts';
import type { FilterScope } from '../query/filter.ts';
import { compileProjection } from '../query/projection.ts';
import { readSort } from '../query/sorting.ts';
import {
  applyUpdate,
  compileUpdate,
  type Update,
  type UpdateOptions,
  upsertDocument,
} from '../query/updates/updates.ts';
import type { Collection } from '../storage/documents-store.ts';
import { assertId } from '../storage/documents-writing.ts';
import type { FoundDocument } from '../storage/stored-rows.ts';
import { decodeDocument, encodeDocument, type RawDocument } from '../values/bson-documents.ts';
import { plainNumber } from '../values/numbers.ts';
import {
  type Command,
  type CommandScope,
  collationOf,
  collectionFor,
  collectionName,
  find,
} from './command-scope.ts';

const MAX_STATEMENTS = 100_000;
/** Bytes of errors reported in full; later ones have only their code, like a server's. */
const MAX_TOLD_BYTES = 2 ** 20;

/** Runs the statements of a command in order; errors of single statements go into the reply. */
function each<T>(
  statements: readonly T[],
  { ordered = true }: Document,
  work: (statement: T, index: number) => void,
): Document {
  if (!Array.isArray(statements))
    throw new CommandError('TypeMismatch', 'the statements of a write command must be an array');
  if (statements.length === 0 || statements.length > MAX_STATEMENTS)
    throw new CommandError('InvalidLength', `A write must have 1 to ${MAX_STATEMENTS} statements`);
  const writeErrors: Document[] = [];
  let toldBytes = 0;
  for (const [index, statement] of statements.entries()) {
    spend(DOCUMENT_STEPS);
    try {
      work(statement, index);
    } catch (error) {
      // A full disk and the time limit affect all statements.
      const isOfAll = error instanceof OutOfTime || !(error instanceof CommandError);
      if (isOfAll || error.codeName === 'OutOfDiskSpace') throw error;
      toldBytes += calculateObjectSize({ errmsg: error.message, ...error.more });
      const told = toldBytes <= MAX_TOLD_BYTES ? { errmsg: error.message, ...error.more } : { errmsg: '' };
      writeErrors.push({ index, code: error.code, ...told });
      if (ordered) break;
    }
  }
  return writeErrors.length === 0 ? {} : { writeErrors };
}

function insert(command: Document, scope: CommandScope): Document {
  const collection = collectionFor(collectionName(command, scope), scope);
  let n = 0;
  const errors = each<RawDocument>(command.documents, command, (bytes) => {
    scope.writing.insert(collection, bytes);
    n++;
  });
  return { n, ...errors, ok: 1 };
}

function updateOptions(
  statement: Document,
  { variables, collation = null }: FilterScope,
  { clock }: CommandScope,
): UpdateOptions {
  const { q, query, arrayFilters, c } = statement;
  return {
    filter: q ?? query ?? {},
    ...(arrayFilters === undefined ? {} : { arrayFilters }),
    variables: { ...variables, ...c },
    collation,
    now: new Date(clock.now()),
    newId: () => new ObjectId(),
  };
}

function upsert(
  name: string,
  scope: CommandScope,
  { change, options }: { change: Update; options: UpdateOptions },
): Document {
  const document = upsertDocument(change, options);
  assertId(document._id);
  scope.writing.insert(collectionFor(name, scope), encodeDocument(document));
  return document;
}

function update(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const totals = { n: 0, nModified: 0 };
  const upserted: Document[] = [];
  const variables = readVariables(command.let);
  const errors = each<Document>(command.updates, command, (statement, index) => {
    const collation = collationOf(statement, scope.store.collection(name));
    const options = updateOptions(statement, { variables, collation }, scope);
    const isReplacement = !Array.isArray(statement.u) && !Object.keys(statement.u ?? {})[0]?.startsWith('$');
    if (statement.multi && isReplacement)
      throw new CommandError('FailedToParse', 'multi update is not supported for replacement-style update');
    const change = compileUpdate(statement.u, options);
    const { sort, hint, multi } = statement;
    const read = { filter: options.filter, sort: readSort(sort), hint, limit: multi ? 0 : 1 };
    const done = new Set<number>();
    let modified = 0;
    for (const found of find(name, scope, { ...options, ...read })) {
      // An index returns a document again if its key has grown.
      if (done.has(found.rowNumber)) continue;
      done.add(found.rowNumber);
      if (modify(name, scope, { found, change }) !== null) modified++;
    }
    // A failed statement is not counted, as by a server, even if it changed some documents before.
    totals.n += done.size;
    totals.nModified += modified;
    if (done.size > 0 || !statement.upsert) return;
    upserted.push({ index, _id: upsert(name, scope, { change, options })._id });
    totals.n++;
  });
  return { ...totals, ...(upserted.length > 0 ? { upserted } : {}), ...errors, ok: 1 };
}

/** The document after the update; null: unchanged. */
function modify(
  name: string,
  { store, writing }: CommandScope,
  { found, change }: { found: FoundDocument; change: Update },
): Document | null {
  const next = applyUpdate(change, found);
  if (next === null) return null;
  writing.replace(store.collection(name) as Collection, found, next);
  return next.document;
}

function remove(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const variables = readVariables(command.let);
  let n = 0;
  const errors = each<Document>(command.deletes, command, (statement) => {
    const collection = scope.store.collection(name);
    const collation = collationOf(statement, collection);
    const limit = plainNumber(statement.limit);
    if (limit !== 0 && limit !== 1)
      throw new CommandError('FailedToParse', `The limit of a delete must be 0 or 1`);
    const read = { filter: statement.q, limit, variables, collation, hint: statement.hint };
    for (const found of find(name, scope, read)) {
      scope.writing.remove(collection as Collection, found);
      n++;
    }
  });
  return { n, ...errors, ok: 1 };
}

function findAndModify(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const isRemoval = Boolean(command.remove);
  if (isRemoval === (command.update !== undefined)) {
    throw new CommandError(
      'FailedToParse',
      isRemoval
        ? 'Cannot specify both an update and remove=true'
        : 'Either an update or remove=true must be specified',
    );
  }
  if (isRemoval && command.new)
    throw new CommandError(
      'FailedToParse',
      "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
    );
  const variables = readVariables(command.let);
  const collation = collationOf(command, scope.store.collection(name));
  const options = updateOptions(command, { variables, collation }, scope);
  const show = (document: Document) => {
    const projection = command.fields
      ? compileProjection(command.fields, { variables, collation, filter: options.filter })
      : null;
    return projection === null ? document : projection(document);
  };
  const change = isRemoval ? null : compileUpdate(command.update, options);
  const [found] = find(name, scope, {
    ...options,
    sort: readSort(command.sort),
    hint: command.hint,
    limit: 1,
  });
  if (found !== undefined) {
    if (change === null) scope.writing.remove(scope.store.collection(name) as Collection, found);
    const after =
      change === null ? null : (modify(name, scope, { found, change }) ?? decodeDocument(found.bytes));
    const value = command.new && after !== null ? after : found.document;
    const lastErrorObject = { n: 1, ...(isRemoval ? {} : { updatedExisting: true }) };
    return { lastErrorObject, value: show(value), ok: 1 };
  }
  if (change === null) return { lastErrorObject: { n: 0 }, value: null, ok: 1 };
  if (!command.upsert) return { lastErrorObject: { n: 0, updatedExisting: false }, value: null, ok: 1 };
  const made = upsert(name, scope, { change, options });
  return {
    lastErrorObject: { n: 1, updatedExisting: false, upserted: made._id },
    value: command.new ? show(made) : null,
    ok: 1,
  };
}

export const WRITE_COMMANDS: Readonly<Record<string, Command>> = {
  insert,
  update,
  delete: remove,
  findAndModify,
  findandmodify: findAndModify,
};
