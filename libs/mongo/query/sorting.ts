/** Sorting in memory, of bounded size. */
import { Binary, type Document } from 'bson';
import { CommandError } from '../command-error.ts';
import type { SortSpec } from '../storage/plan.ts';
import type { Collation } from '../values/collations.ts';
import { isDocument, leavesAt } from '../values/field-paths.ts';
import { compareValues, keyOf } from '../values/key-order.ts';
import { metaValue } from '../values/metadata.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';

/** Memory limit of a command, bytes; same as a real server's stage. */
const MAX_MEMORY_BYTES = 100 * 2 ** 20;

/** Throws CommandError when a command exceeds its memory. */
export class MemoryBudget {
  readonly #name: string;
  #bytes = 0;

  /** `name`: of the stage, for the message. */
  constructor(name: string) {
    this.#name = name;
  }

  take(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_MEMORY_BYTES)
      throw new CommandError(
        'QueryExceededMemoryLimitNoDiskUseAllowed',
        `${this.#name} exceeded the memory limit of ${MAX_MEMORY_BYTES} bytes`,
      );
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** Approximate memory of a value, bytes. */
export function weightOf(value: unknown): number {
  if (typeof value === 'string') return 24 + value.length;
  if (typeof value !== 'object' || value === null) return 8;
  if (value instanceof Binary) return 200 + value.length();
  let bytes = 56;
  if (Array.isArray(value)) for (const each of value) bytes += weightOf(each);
  else if (isDocument(value))
    for (const key of Object.keys(value)) bytes += 16 + key.length + weightOf(value[key]);
  return bytes;
}

/** Prefix of a sort path for `$meta`; no field has such a name. */
const META = '$meta:';

/** Throws CommandError. */
export function readSort(sort: unknown): SortSpec {
  if (sort === undefined || sort === null) return [];
  if (!isDocument(sort)) throw new CommandError('TypeMismatch', `Expected field sort to be of type object`);
  return Object.entries(sort).map(([path, value]) => {
    if (isDocument(value) && '$meta' in value) return [`${META}${String(value.$meta)}`, -1] as const;
    if (!isNumber(value)) throw new CommandError(15974, `Illegal key in $sort specification: ${path}`);
    const direction = plainNumber(value);
    if (direction !== 1 && direction !== -1)
      throw new CommandError(15975, '$sort key ordering must be 1 (for ascending) or -1 (for descending)');
    return [path, direction] as const;
  });
}

/** The document from which readSort() creates it. */
export function writeSort(sort: SortSpec): Document {
  return Object.fromEntries(
    sort.map(([path, direction]) => {
      const isMeta = path.startsWith(META);
      return isMeta ? [path, { $meta: path.slice(META.length) }] : [path, direction];
    }),
  );
}

/** Bytes in order, or the values themselves if a collation orders them. */
export type SortKey = Buffer | readonly unknown[];

/** A sort order. */
export interface SortOrder {
  keyOf(document: Document): SortKey;
  /** Below 0: `one` precedes `other`. */
  compare(one: SortKey, other: SortKey): number;
}

export function sortOrder(sort: SortSpec, collation: Collation | null = null): SortOrder {
  const descending = sort.map(([, direction]) => direction < 0);
  if (collation === null)
    return {
      keyOf: (document) => keyOf(sortValues(document, sort, null), descending),
      compare: (one, other) => Buffer.compare(one as Buffer, other as Buffer),
    };
  return {
    keyOf: (document) => sortValues(document, sort, collation),
    compare: (one, other) => {
      for (const [i, [, direction]] of sort.entries()) {
        const order = direction * compareValues(one[i], other[i], collation);
        if (order !== 0) return order;
      }
      return 0;
    },
  };
}

/** Sort keys of a document: the smallest element of an array, or the largest when descending. */
function sortValues(document: Document, sort: SortSpec, collation: Collation | null): unknown[] {
  return sort.map(([path, direction]) => {
    if (path.startsWith(META)) return metaValue(document, path.slice(META.length)) ?? null;
    const elements = leavesAt(document, path.split('.')).flatMap((leaf) =>
      Array.isArray(leaf) && leaf.length > 0 ? leaf : [leaf],
    );
    if (elements.length < 2) return Array.isArray(elements[0]) ? undefined : (elements[0] ?? null);
    return elements.reduce(
      (best, each) => (direction * compareValues(each ?? null, best, collation) < 0 ? (each ?? null) : best),
      elements[0] ?? null,
    );
  });
}

interface Sorted<T> {
  readonly key: SortKey;
  readonly bytes: number;
  readonly item: T;
}

export interface Sorting<T> {
  /** The limit; null: none. */
  readonly limit: number | null;
  keyOf(item: T): SortKey;
  compare: SortOrder['compare'];
  bytesOf(item: T): number;
}

/** Bytes collected before documents beyond the limit are dropped. */
const CUT_BYTES = 16 * 2 ** 20;

/** The sorted items, stable. Throws CommandError if too large. */
export function sortItems<T>(items: Iterable<T>, sorting: Sorting<T>): T[] {
  const { limit, keyOf: keyOfItem, compare, bytesOf } = sorting;
  const budget = new MemoryBudget('Sort');
  let list: Sorted<T>[] = [];
  let uncut = 0;
  const cut = () => {
    list.sort((a, b) => compare(a.key, b.key));
    uncut = 0;
    if (limit === null || list.length <= limit) return;
    for (const { bytes } of list.slice(limit)) budget.give(bytes);
    list = list.slice(0, limit);
  };
  for (const item of items) {
    const key = keyOfItem(item);
    const bytes = bytesOf(item) + (Buffer.isBuffer(key) ? key.length : weightOf(key)) + 100;
    budget.take(bytes);
    uncut += bytes;
    list.push({ key, bytes, item });
    if (limit !== null && (uncut > CUT_BYTES || list.length > limit * 2 + 1000)) cut();
  }
  cut();
  return list.map(({ item }) => item);
}
