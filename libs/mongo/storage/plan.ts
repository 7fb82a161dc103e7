/** Plans of queries: the index to read, and its ranges. */
import type { BSONRegExp, Document } from 'bson';
import type { Near } from '../geo/regions.ts';
import type { TextSearch } from '../text/text-index.ts';
import type { Collation } from '../values/collations.ts';
import type { KeyRange } from './documents-store.ts';
import type { Index } from './index-values.ts';

/** Documents come by their distance. */
export interface Nearest {
  readonly near: Near;
  readonly path: readonly string[];
  /** Values of the index's fields before the location. */
  readonly prefixes: readonly unknown[][];
}

/** How an index is read. */
export interface Scan {
  readonly index: Index;
  /** Sorted. */
  readonly ranges: readonly KeyRange[];
  readonly used?: Used | undefined;
}

/** Bounds of the keys that are read of an index. */
export interface Used {
  /** Number of leading fields with equality conditions. */
  readonly equal: number;
  /** Whether the field after them has a range. */
  readonly hasRange: boolean;
  readonly demands: ReadonlyMap<string, Demand>;
}

export interface Plan {
  /** Null: all documents in natural order, unless there are branches. */
  readonly index: Index | null;
  /** Sorted ranges of keys, which contain at least all matches. */
  readonly ranges: readonly KeyRange[];
  readonly isReverse: boolean;
  /** Whether documents come in the requested order. */
  readonly isSorted: boolean;
  readonly used?: Used | undefined;
  /** The index of each branch of `$or`, read in order; duplicates are dropped. */
  readonly branches?: readonly Scan[];
  /** Without an index: the row after which the scan starts. */
  readonly after?: number;
  /** The ranges are chosen while documents are read, nearest first. */
  readonly nearest?: Nearest;
  /** The ranges contain all candidates of this search. */
  readonly search?: TextSearch;
}

/** A condition of a filter on one field. */
export interface Demand {
  /** Allowed values; null: any. */
  values: unknown[] | null;
  low: { value: unknown; isOpen: boolean } | null;
  high: { value: unknown; isOpen: boolean } | null;
  /** Allowed values, and literal prefixes of regular expressions; null: any. */
  spans: readonly (Beginning | { readonly value: unknown })[] | null;
}

/** Texts that a regular expression with a fixed beginning may match. */
export interface Beginning {
  readonly beginning: string;
  readonly regex: BSONRegExp;
}

export type SortSpec = readonly (readonly [path: string, direction: 1 | -1])[];

export interface Question {
  readonly filter: Document;
  readonly sort: SortSpec;
  readonly collation: Collation | null;
  /** The name or the key of the index to read; undefined: any. */
  readonly hint?: unknown;
}

export interface Query extends Question {
  readonly demands: ReadonlyMap<string, Demand>;
}
