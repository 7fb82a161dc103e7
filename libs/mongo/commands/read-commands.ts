/** `find`, `count`, `distinct`, `getMore` and `killCursors`. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { readVariables } from '../query/command-variables.ts';
import { compileProjection } from '../query/projection.ts';
import { MemoryBudget, readSort, weightOf } from '../query/sorting.ts';
import type { SortSpec } from '../storage/plan.ts';
import { planQuery } from '../storage/query-plan.ts';
import { Tail } from '../storage/tail.ts';
import { encodeDocument } from '../values/bson-documents.ts';
import type { Collation } from '../values/collations.ts';
import { isDocument, leavesAt } from '../values/field-paths.ts';
import { textKeyOf } from '../values/key-order.ts';
import { plainNumber } from '../values/numbers.ts';
import {
  type Command,
  type CommandScope,
  collationOf,
  collectionName,
  find,
  namespaceOf,
} from './command-scope.ts';
import { viewOf } from './views.ts';

/** Maximum bytes of `distinct` values, so that they fit into one reply. */
const MAX_DISTINCT_BYTES = 15 * 2 ** 20;
/** Fields of `find` that change its result and are not supported. */
const UNKNOWN_TO_FIND = ['min', 'max', 'returnKey', 'showRecordId'];

function findCommand(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const collection = scope.store.collection(name);
  const unknown = UNKNOWN_TO_FIND.find((field) => command[field] !== undefined && command[field] !== false);
  if (unknown !== undefined)
    throw new CommandError(
      'CommandNotSupported',
      `the field '${unknown}' of find is not supported by this engine`,
    );
  const { filter = {}, projection, batchSize } = command;
  const variables = readVariables(command.let);
  const collation = collationOf(command, collection);
  const sort = readSort(command.sort);
  const show =
    projection === undefined ? null : compileProjection(projection, { variables, collation, filter });
  if (command.tailable || command.awaitData)
    return tail(command, scope, { name, sort, show, variables, collation });
  const { hint } = command;
  const found = find(name, scope, { filter, sort, hint, variables, collation, ...window(command) });
  const documents = found.map(({ bytes, document }) => (show === null ? bytes : show(document)));
  const isHeld =
    collection !== undefined &&
    (viewOf(collection.options) !== null ||
      !planQuery(collection, { filter, sort, collation, hint }).isSorted);
  const isSingle = Boolean(command.singleBatch);
  return scope.cursors.first(
    { documents, isHeld },
    { namespace: namespaceOf(name, scope), batchSize, isSingle },
  );
}

interface Tailing {
  readonly name: string;
  readonly sort: SortSpec;
  readonly show: ((document: Document) => Document) | null;
  readonly variables: Document;
  readonly collation: Collation | null;
}

/** A cursor that waits at the end of a capped collection for new documents. Throws CommandError. */
function tail(command: Document, scope: CommandScope, { name, sort, show, ...more }: Tailing): Document {
  const { filter = {}, batchSize, awaitData, tailable, singleBatch } = command;
  if (!tailable)
    throw new CommandError('FailedToParse', "Cannot set 'awaitData' without also setting 'tailable'");
  if (singleBatch)
    throw new CommandError('FailedToParse', "cannot use tailable option with the 'singleBatch' option");
  if (sort.some(([path, direction]) => path !== '$natural' || direction < 0))
    throw new CommandError('BadValue', 'cannot use tailable option with a sort other than {$natural: 1}');
  const namespace = namespaceOf(name, scope);
  const collection = scope.store.collection(name);
  if (collection !== undefined && collection.options.capped !== true)
    throw new CommandError(
      'BadValue',
      `error processing query: ns=${namespace} tailable cursor requested on non capped collection`,
    );
  const documents = new Tail(scope.store, name, {
    ...more,
    filter,
    awaitsData: Boolean(awaitData),
    show: ({ bytes, document }) => (show === null ? bytes : encodeDocument(show(document))),
  });
  const isThere = collection !== undefined;
  return scope.cursors.first(
    { documents: isThere ? documents : [].values(), isHeld: false },
    { namespace, batchSize, isSingle: false },
  );
}

/** Throws CommandError. */
function window({ skip = 0, limit = 0 }: Document): { skip: number; limit: number } {
  const [from, count] = [plainNumber(skip), plainNumber(limit)];
  if (!(from >= 0))
    throw new CommandError('BadValue', `Skip value must be non-negative, but received: ${from}`);
  return { skip: from, limit: Math.abs(count) };
}

function count(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const query = command.query ?? {};
  if (!isDocument(query))
    throw new CommandError(
      'TypeMismatch',
      "BSON field 'count.query' is the wrong type, expected type 'object'",
    );
  const range = window(command);
  const collection = scope.store.collection(name);
  const collation = collationOf(command, collection);
  const all = collection?.documents ?? 0;
  // The count is known without reading.
  if (Object.keys(query).length === 0 && viewOf(collection?.options) === null) {
    const left = Math.max(0, all - range.skip);
    return { n: range.limit === 0 ? left : Math.min(left, range.limit), ok: 1 };
  }
  let n = 0;
  for (const _ of find(name, scope, { filter: query, collation, hint: command.hint, ...range })) n++;
  return { n, ok: 1 };
}

function distinct(command: Document, scope: CommandScope): Document {
  const name = collectionName(command, scope);
  const collation = collationOf(command, scope.store.collection(name));
  const { key, query, hint } = command;
  if (typeof key !== 'string') throw new CommandError('TypeMismatch', "Field 'key' must be of type string");
  const path = key.split('.');
  const values = new Map<string, unknown>();
  const budget = new MemoryBudget('distinct');
  let bytes = 0;
  for (const { document } of find(name, scope, { filter: query ?? {}, collation, hint })) {
    for (const value of leavesAt(document, path).flat()) {
      const text = textKeyOf(value, collation);
      if (value === undefined || values.has(text)) continue;
      budget.take(weightOf(value) + text.length);
      bytes += text.length;
      if (bytes > MAX_DISTINCT_BYTES) throw new CommandError(17217, 'distinct too big, 16mb cap');
      values.set(text, value);
    }
  }
  return { values: [...values.values()], ok: 1 };
}

function getMore(command: Document, scope: CommandScope): Document {
  return scope.cursors.more(command, namespaceOf(String(command.collection), scope));
}

export const READ_COMMANDS: Readonly<Record<string, Command>> = {
  find: findCommand,
  count,
  distinct,
  getMore,
  killCursors: ({ cursors }, scope) => scope.cursors.kill(cursors ?? []),
};
