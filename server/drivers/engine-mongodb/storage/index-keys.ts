/** Which keys a document has in an index. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { compileFilter, type Filter } from '../query/filter.ts';
import { type Collation, readCollation } from '../values/collations.ts';
import { leavesAt } from '../values/field-paths.ts';
import { keyOf } from '../values/key-order.ts';

export interface IndexField {
  readonly path: readonly string[];
  readonly isDescending: boolean;
}

/** An index of a collection; that of `_id` has no table of its own. */
export interface Index {
  readonly id: number;
  readonly name: string;
  /** Specification as given, returned by `listIndexes`. */
  readonly spec: Document;
  readonly fields: readonly IndexField[];
  readonly descending: readonly boolean[];
  readonly isUnique: boolean;
  readonly isSparse: boolean;
  /** Kept up to date, and used by no query. */
  readonly isHidden: boolean;
  /** Which texts are the same key; null: those of the same bytes. */
  readonly collation: Collation | null;
  /** Which documents are in it; null: all. */
  readonly partial: Filter | null;
  /** A document has more than one key, so a range holds only one of two conditions. */
  isMultikey: boolean;
}

export function indexOf(spec: Document, { id, isMultikey }: { id: number; isMultikey: boolean }): Index {
  const fields = Object.entries(spec.key as Document).map(([path, direction]) => ({
    path: path.split('.'),
    isDescending: Number(direction) < 0,
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
    isHidden: Boolean(spec.hidden),
    collation,
    partial: partial ? compileFilter(partial, { collation }) : null,
    isMultikey,
  };
}

/** Each once. Throws CommandError for arrays in two fields of the index. */
export function keysIn(index: Index, document: Document): Buffer[] {
  if (index.partial !== null && !index.partial(document)) return [];
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
  // Below the same array they are fine, and so many keys as elements are rare enough not to be told apart.
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

/** An empty array has a key of its own, which no `null` finds. */
const EMPTY_ARRAY = Symbol('empty array');

function elementsOf(leaf: unknown): unknown[] {
  if (!Array.isArray(leaf)) return [leaf];
  return leaf.length === 0 ? [EMPTY_ARRAY] : leaf;
}

function orNull(value: unknown): unknown {
  if (value === EMPTY_ARRAY) return undefined;
  return value === undefined ? null : value;
}

function product(lists: readonly (readonly unknown[])[]): unknown[][] {
  return lists.reduce<unknown[][]>(
    (rows, list) =>
      rows.flatMap((row) => (list.length === 0 ? [null] : list).map((value) => [...row, value])),
    [[]],
  );
}
