/** Indexes, and the values of a document in them. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import type { Filter } from '../query/filter.ts';
import type { Collation } from '../values/collations.ts';

/** An index stores a field's values, or what a special index derives from them. */
export type IndexKind = 'plain' | '2dsphere' | '2d' | 'hashed' | 'text' | 'wildcard';

export interface IndexField {
  readonly path: readonly string[];
  readonly isDescending: boolean;
  readonly kind: IndexKind;
}

/** An index of a collection; that of `_id` has no table. */
export interface Index {
  readonly id: number;
  readonly name: string;
  /** Specification as given, returned by `listIndexes`. */
  readonly spec: Document;
  readonly fields: readonly IndexField[];
  readonly descending: readonly boolean[];
  readonly isUnique: boolean;
  readonly isSparse: boolean;
  /** The index has a special field (text, 2dsphere, …). */
  readonly isSpecial: boolean;
  /** Kept up to date, but used by no query. */
  readonly isHidden: boolean;
  /** Defines which texts are equal; null: equal bytes. */
  readonly collation: Collation | null;
  /** Which documents are included; null: all. */
  readonly partial: Filter | null;
  /** A document may have several keys, so a range covers only one of two conditions. */
  isMultikey: boolean;
}

/** An empty array has a separate key, which `null` does not match. */
const EMPTY_ARRAY = Symbol('empty array');

export function elementsOf(leaf: unknown): unknown[] {
  if (!Array.isArray(leaf)) return [leaf];
  return leaf.length === 0 ? [EMPTY_ARRAY] : leaf;
}

export function orNull(value: unknown): unknown {
  if (value === EMPTY_ARRAY) return undefined;
  return value === undefined ? null : value;
}

/** Maximum keys of one document in one index, as on a server. */
const MAX_KEYS = 100_000;

/** Throws CommandError for too many. */
export function product(lists: readonly (readonly unknown[])[], most = MAX_KEYS): unknown[][] {
  const count = lists.reduce((number, list) => number * Math.max(1, list.length), 1);
  if (count > most)
    throw new CommandError(
      'CannotBuildIndexKeys',
      `an index can have at most ${most} keys per document, not ${count}: do not index such a long array`,
    );
  return lists.reduce<unknown[][]>(
    (rows, list) =>
      rows.flatMap((row) => (list.length === 0 ? [null] : list).map((value) => [...row, value])),
    [[]],
  );
}
