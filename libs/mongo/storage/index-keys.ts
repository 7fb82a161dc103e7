/** The keys of a document in an index. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { compileFilter } from '../query/filter.ts';
import { readCollation } from '../values/collations.ts';
import { leavesAt } from '../values/field-paths.ts';
import { keyOf } from '../values/key-order.ts';
import { isWildcard } from '../wildcard/wildcard-index.ts';
import { elementsOf, type Index, type IndexKind, orNull, product } from './index-values.ts';
import { specialKeysIn } from './special-keys.ts';

export function indexOf(spec: Document, { id, isMultikey }: { id: number; isMultikey: boolean }): Index {
  // A server lists `_ftsx` after the terms of a text index; it is not a field.
  const entries = Object.entries(spec.key as Document).filter(([path]) => path !== '_ftsx');
  const fields = entries.map(([path, direction]) => ({
    path: path.split('.'),
    isDescending: Number(direction) < 0,
    kind: kindOf(path, direction),
  }));
  const collation = readCollation(spec.collation);
  const partial = spec.partialFilterExpression;
  return {
    id,
    name: spec.name,
    spec,
    fields,
    descending: fields.map(({ isDescending }) => isDescending),
    isUnique: Boolean(spec.unique),
    isSparse: Boolean(spec.sparse),
    isSpecial: fields.some(({ kind }) => kind !== 'plain'),
    isHidden: Boolean(spec.hidden),
    collation,
    partial: partial ? compileFilter(partial, { collation }) : null,
    isMultikey,
  };
}

function kindOf(path: string, direction: unknown): IndexKind {
  if (typeof direction === 'string') return direction as IndexKind;
  return isWildcard(path, direction) ? 'wildcard' : 'plain';
}

/** Each once. Throws CommandError for arrays in two fields of the index. */
export function keysIn(index: Index, document: Document): Buffer[] {
  if (index.partial !== null && !index.partial(document)) return [];
  if (index.isSpecial) return specialKeysIn(index, document);
  const perField = index.fields.map(({ path }) => leavesAt(document, path));
  if (index.isSparse && perField.every((leaves) => leaves.every((leaf) => leaf === undefined))) return [];
  const values = perField.map((leaves) => leaves.flatMap(elementsOf));
  const many = index.fields.filter((_, i) => (values[i] as unknown[]).length > 1);
  if (many.length === 0)
    return [
      keyOf(
        values.map(([value = null]) => orNull(value)),
        index.descending,
        index.collation,
      ),
    ];
  const [first, second] = many;
  // Allowed below the same array; such large numbers of keys are too rare to be handled separately.
  if (first !== undefined && second !== undefined && first.path[0] !== second.path[0]) {
    const names = many.map(({ path }) => path.join('.'));
    throw new CommandError(
      'CannotIndexParallelArrays',
      `cannot index parallel arrays [${names.join('] [')}]`,
    );
  }
  index.isMultikey = true;
  const keys = product(values).map((list) => keyOf(list.map(orNull), index.descending, index.collation));
  return [...new Map(keys.map((key) => [key.toString('latin1'), key])).values()];
}

const ID_INDEX = { v: 2, key: { _id: 1 }, name: '_id_', unique: true };

/** The index of `_id`, by the options of its collection. */
export function idIndex({ collation, clusteredIndex, expireAfterSeconds }: Document): Index {
  const spec = {
    ...ID_INDEX,
    ...(collation === undefined ? {} : { collation }),
    ...(clusteredIndex === undefined ? {} : { name: clusteredIndex.name, clustered: true }),
    ...(expireAfterSeconds === undefined ? {} : { expireAfterSeconds }),
  };
  return indexOf(spec, { id: 0, isMultikey: false });
}
