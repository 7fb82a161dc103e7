/** Plans of queries: which index is read, and where. */
import type { Document } from 'bson';
import type { Near } from '../geo/regions.ts';
import type { TextSearch } from '../text/text-index.ts';
import type { Collation } from '../values/collations.ts';
import type { KeyRange } from './documents-store.ts';
import type { Index } from './index-values.ts';

/** Documents come by their distance. */
export interface Nearest {
  readonly near: Near;
  readonly path: readonly string[];
  /** Values of the index's fields before that of the location. */
  readonly prefixes: readonly unknown[][];
}

export interface Plan {
  /** Null: all documents in natural order. */
  readonly index: Index | null;
  /** Which keys are read, one range after the other, sorted. They hold at least all that match. */
  readonly ranges: readonly KeyRange[];
  readonly isReverse: boolean;
  /** Whether documents come in the requested order. */
  readonly isSorted: boolean;
  /** How many fields of the index have equal values, and whether the one after them has a range. */
  readonly used?: { readonly equal: number; readonly hasRange: boolean };
  /** Without an index: the row after which the scan begins. */
  readonly after?: number;
  /** The ranges are chosen while documents are read, nearest first. */
  readonly nearest?: Nearest;
  /** The ranges hold all that may match this search. */
  readonly search?: TextSearch;
}

/** Condition of a filter on one field. */
export interface Demand {
  /** Allowed values; null: any. */
  values: unknown[] | null;
  low: { value: unknown; isOpen: boolean } | null;
  high: { value: unknown; isOpen: boolean } | null;
}

export type SortSpec = readonly (readonly [path: string, direction: 1 | -1])[];

export interface Question {
  readonly filter: Document;
  readonly sort: SortSpec;
  readonly collation: Collation | null;
  /** The name or the key of the index that is to be read; undefined: any. */
  readonly hint?: unknown;
}

export interface Query extends Question {
  readonly demands: ReadonlyMap<string, Demand>;
}
