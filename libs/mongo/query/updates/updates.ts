/** Updates of one document: operators, pipelines and replacements, with MongoDB's semantics. */
import type { Document, ObjectId } from 'bson';
import { CommandError } from '../../command-error.ts';
import { decodeDocument, encodeDocument, type RawDocument } from '../../values/bson-documents.ts';
import { namesOf, setField, withFirst } from '../../values/field-order.ts';
import { isDocument, valueAt } from '../../values/field-paths.ts';
import { equalValues } from '../../values/key-order.ts';
import { compileFilter, type Filter, type FilterScope, holdsOperators } from '../filter.ts';
import { updatePipeline } from '../pipeline.ts';
import { UPDATE_OPERATORS } from './update-operators.ts';
import { type Slot, slotsOf } from './update-paths.ts';

export interface UpdateOptions extends FilterScope {
  /** The statement's filter: target of `$`, and initial fields of an upsert. */
  readonly filter: Document;
  readonly arrayFilters?: readonly Document[];
  readonly now: Date;
  readonly newId: () => ObjectId;
}

/** Returns the updated document; `isInsert`: applied to the initial document of an upsert. */
export type Update = (document: Document, isInsert: boolean) => Document;

/** Throws CommandError if it is not an update. */
export function compileUpdate(update: unknown, options: UpdateOptions): Update {
  if (Array.isArray(update)) {
    const run = updatePipeline(update, options);
    return (document, isInsert) => withIdOf(document, run(document, isInsert));
  }
  if (!isDocument(update))
    throw new CommandError('FailedToParse', 'Update argument must be either an object or an array');
  const [first] = Object.keys(update);
  if (first?.startsWith('$')) return compileOperators(update, options);
  const dollar = Object.keys(update).find((name) => name.startsWith('$'));
  if (dollar !== undefined)
    throw new CommandError(
      'DollarPrefixedFieldName',
      `The dollar ($) prefixed field '${dollar}' in '${dollar}' is not allowed in the context of an update's ` +
        'replacement document. Consider using an aggregation pipeline with $replaceWith.',
    );
  return (document) => withIdOf(document, { ...update });
}

/** A replacement without `_id` keeps the `_id` of the document. */
function withIdOf(document: Document, replacement: Document): Document {
  return '_id' in replacement || !('_id' in document) ? replacement : { _id: document._id, ...replacement };
}

function compileOperators(update: Document, options: UpdateOptions): Update {
  const filters = readArrayFilters(options.arrayFilters ?? [], options);
  const steps = Object.entries(update).flatMap(([operator, fields]) => {
    const compile = Object.hasOwn(UPDATE_OPERATORS, operator) ? UPDATE_OPERATORS[operator] : undefined;
    if (compile === undefined) throw new CommandError('FailedToParse', `Unknown modifier: ${operator}`);
    if (!isDocument(fields))
      throw new CommandError('FailedToParse', `Modifiers operate on fields: {${operator}: {<field>: ...}}`);
    return Object.entries(fields).map(([path, operand]) => ({
      operator,
      path,
      apply: compile(operand, { path, options }),
      operand,
    }));
  });
  assertNoConflicts(
    steps.flatMap(({ operator, path, operand }) =>
      operator === '$rename' ? [path, String(operand)] : [path],
    ),
  );
  assertUsed(
    filters,
    steps.map(({ path }) => path),
  );
  steps.sort((a, b) => (a.path < b.path ? -1 : 1));
  return (document, isInsert) => {
    const changes: { slot: Slot; apply: (slot: Slot) => void }[] = [];
    const changed = new Map<object, Set<string>>();
    for (const { operator, path, apply, operand } of steps) {
      if (operator === '$setOnInsert' && !isInsert) continue;
      if (operator === '$rename') {
        rename(document, path, String(operand));
        continue;
      }
      const creates = !REMOVING.has(operator);
      const context = { document, filters, filter: options.filter, scope: options, creates, path };
      for (const slot of slotsOf(path.split('.'), context)) {
        if (path.includes('$')) noteChange(changed, slot, path);
        changes.push({ slot, apply });
      }
    }
    // Elements are selected by their values before the update.
    for (const { slot, apply } of changes) apply(slot);
    return document;
  };
}

/** Throws CommandError if two paths with `$` lead to the same field. */
function noteChange(changed: Map<object, Set<string>>, { parent, name }: Slot, path: string): void {
  const names = changed.get(parent) ?? new Set();
  if (names.has(name))
    throw new CommandError('ConflictingUpdateOperators', `Update created a conflict at '${path}'`);
  changed.set(parent, names.add(name));
}

/** Operators that do not create a missing field. */
const REMOVING = new Set(['$unset', '$pull', '$pullAll', '$pop']);

function rename(document: Document, from: string, to: string): void {
  const value = valueAt(document, from.split('.'));
  if (value === undefined) return;
  const context = { document, filters: new Map(), filter: {}, path: from };
  for (const slot of slotsOf(from.split('.'), { ...context, creates: false }))
    delete (slot.parent as Document)[slot.name];
  for (const slot of slotsOf(to.split('.'), { ...context, creates: true, path: to })) put(slot, value);
}

function put({ parent, name }: Slot, value: unknown): void {
  setField(parent as Document, name, value);
}

function assertNoConflicts(paths: readonly string[]): void {
  const sorted = paths.toSorted();
  sorted.forEach((path, i) => {
    const above = sorted.slice(0, i).find((other) => path === other || path.startsWith(`${other}.`));
    if (above === undefined) return;
    throw new CommandError(
      'ConflictingUpdateOperators',
      `Updating the path '${path}' would create a conflict at '${above}'`,
    );
  });
}

function readArrayFilters(filters: readonly Document[], scope: FilterScope): Map<string, Filter> {
  const compiled = new Map<string, Filter>();
  for (const filter of filters) {
    const name = identifierOf(filter);
    if (name === undefined) throw new CommandError('FailedToParse', 'An array filter needs a field name');
    if (compiled.has(name))
      throw new CommandError('FailedToParse', `Found multiple array filters of the name ${name}`);
    compiled.set(name, compileFilter(filter, { collation: scope.collation ?? null }));
  }
  return compiled;
}

function identifierOf(filter: Document): string | undefined {
  for (const [name, value] of Object.entries(filter)) {
    if (!name.startsWith('$')) return name.split('.')[0];
    const inner = Array.isArray(value)
      ? value.map(identifierOf).find((each) => each !== undefined)
      : undefined;
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function assertUsed(filters: ReadonlyMap<string, Filter>, paths: readonly string[]): void {
  for (const name of filters.keys()) {
    if (paths.some((path) => path.includes(`$[${name}]`))) continue;
    throw new CommandError('FailedToParse', `The array filter '${name}' was not used in the update`);
  }
}

/** Applies an update without changing `before`; null: no change. Throws CommandError. */
export function applyUpdate(
  update: Update,
  before: { readonly bytes: RawDocument; readonly document: Document },
): { bytes: Uint8Array; document: Document } | null {
  const after = update(decodeDocument(before.bytes), false);
  if (!('_id' in after) || !equalValues(after._id, before.document._id))
    throw new CommandError('ImmutableField', "The update would modify the immutable field '_id'");
  const changed = encodeDocument(idFirst(after));
  return Buffer.compare(changed, before.bytes) === 0 ? null : { bytes: changed, document: after };
}

function idFirst(document: Document): Document {
  return namesOf(document)[0] === '_id' ? document : withFirst('_id', document._id, document);
}

/** The document that an upsert inserts. */
export function upsertDocument(update: Update, { filter, newId }: UpdateOptions): Document {
  const start: Document = {};
  seed(filter, start);
  const made = update(start, true);
  return idFirst({ ...made, _id: made._id === undefined ? newId() : made._id });
}

/** Copies the equality conditions of a filter. */
function seed(filter: Document, start: Document): void {
  for (const [name, value] of Object.entries(filter)) {
    if (name === '$and' && Array.isArray(value)) for (const each of value) seed(each, start);
    if (name.startsWith('$')) continue;
    const operand = seedValue(value);
    if (operand === undefined) continue;
    const context = { document: start, filters: new Map(), filter: {}, creates: true, path: name };
    for (const slot of slotsOf(name.split('.'), context)) put(slot, operand);
  }
}

function seedValue(value: unknown): unknown {
  if (!holdsOperators(value))
    return isDocument(value) || typeof value !== 'object' || value === null ? value : plainValue(value);
  if ('$eq' in value) return value.$eq;
  const [only, ...others] = (value.$in ?? value.$all ?? []) as unknown[];
  return others.length === 0 ? only : undefined;
}

/** A pattern requires no specific value. */
function plainValue(value: object): unknown {
  return '_bsontype' in value && value._bsontype === 'BSONRegExp' ? undefined : value;
}
