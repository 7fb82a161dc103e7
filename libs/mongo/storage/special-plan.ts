/** How a geospatial or hashed index serves a query. */
import type { Document } from 'bson';
import { type CellRange, rangesOfBox, rangesOfCap, rangesOfShape } from '../geo/cells.ts';
import { type Bounds, type Near, nearOf, readRegion } from '../geo/regions.ts';
import { holdsOperators } from '../query/filter.ts';
import { readSearch } from '../text/text-index.ts';
import { isSameCollation } from '../values/collations.ts';
import { holdsText, keyOf } from '../values/key-order.ts';
import { afterPrefix, type KeyRange } from './documents-store.ts';
import type { Index, IndexField } from './index-values.ts';
import type { Plan, Query } from './plan.ts';
import { gridOf, hashValue } from './special-keys.ts';

const MAX_PREFIXES = 100;
/** `$near` and `$text` always use their index. */
const MUST = 5000;

type Found = { plan: Plan; score: number } | null;

export function planSpecial(index: Index, query: Query): Found {
  const at = index.fields.findIndex(({ kind }) => kind !== 'plain');
  const field = index.fields[at] as IndexField;
  const prefixes = prefixesOf(index, query, at);
  if (prefixes === null) return null;
  if (field.kind === 'text') return planText(index, query, prefixes);
  if (field.kind === 'hashed') return planHashed(index, query, { at, prefixes });
  const path = field.path.join('.');
  for (const operators of operatorsOf(query.filter, path)) {
    const near = nearOf(operators);
    if (near !== null && serves(field, near)) {
      const nearest = { near, path: field.path, prefixes };
      return { plan: { index, ranges: [], isReverse: false, isSorted: false, nearest }, score: MUST };
    }
  }
  const cells = [...operatorsOf(query.filter, path)].flatMap((operators) =>
    regionCells(index, field, operators),
  );
  const [first] = cells;
  if (first === undefined) return null;
  const isSorted = query.sort.length === 0;
  const ranges = rangesOfCells(index, prefixes, first);
  return { plan: { index, ranges, isReverse: false, isSorted }, score: 7 + at * 10 };
}

/** Whether an index can find locations near such a point. */
export function serves({ kind }: IndexField, { isSpherical, isLegacy }: Near): boolean {
  return kind === '2dsphere' ? isSpherical : kind === '2d' && isLegacy;
}

/** The operators of a filter for a path, at its top and in `$and`. */
function* operatorsOf(filter: Document, path: string): Generator<Document> {
  const { [path]: operators, $and: all } = filter;
  if (holdsOperators(operators)) yield operators;
  if (Array.isArray(all)) for (const each of all) yield* operatorsOf(each, path);
}

/** The query's equal values for the fields before a special one; null: some are missing. */
export function prefixesOf(index: Index, { demands, collation }: Query, at: number): unknown[][] | null {
  let prefixes: unknown[][] = [[]];
  for (const { path } of index.fields.slice(0, at)) {
    const values = demands.get(path.join('.'))?.values;
    if (!values || prefixes.length * values.length > MAX_PREFIXES) return null;
    if (!isSameCollation(index.collation, collation) && values.some(holdsText)) return null;
    prefixes = prefixes.flatMap((prefix) => values.map((value) => [...prefix, value]));
  }
  return prefixes;
}

function planText(index: Index, { filter, sort }: Query, prefixes: unknown[][]): Found {
  const asked = textIn(filter);
  if (asked === undefined) return null;
  const search = readSearch(asked, index.spec);
  const ranges = prefixes.flatMap((prefix) =>
    search.terms.map((term) => {
      const low = keyOf([...prefix, term], index.descending, index.collation);
      return { low, high: afterPrefix(low) };
    }),
  );
  const isSorted = sort.length === 0;
  return { plan: { index, ranges: inOrder(ranges), isReverse: false, isSorted, search }, score: MUST };
}

/** The `$text` of a filter, at its top or in `$and`. */
function textIn({ $text: text, $and: all }: Document): unknown {
  if (text !== undefined || !Array.isArray(all)) return text;
  return all.map(textIn).find((each) => each !== undefined);
}

function planHashed(
  index: Index,
  { demands, sort, collation }: Query,
  { at, prefixes }: { at: number; prefixes: unknown[][] },
): Found {
  const values = demands.get((index.fields[at] as IndexField).path.join('.'))?.values;
  // Texts are hashed by their bytes.
  if (!values || values.length > MAX_PREFIXES || (collation !== null && values.some(holdsText))) return null;
  const ranges = prefixes.flatMap((prefix) =>
    values.map((value) => {
      const low = keyOf([...prefix, hashValue(value)], index.descending, index.collation);
      return { low, high: afterPrefix(low) };
    }),
  );
  const isSorted = sort.length === 0;
  return { plan: { index, ranges: inOrder(ranges), isReverse: false, isSorted }, score: 8 + at * 10 };
}

function regionCells(index: Index, field: IndexField, operators: Document): CellRange[][] {
  const name = ['$geoWithin', '$within', '$geoIntersects'].find((each) => each in operators);
  if (name === undefined) return [];
  const cells = cellsOfBounds(readRegion(name, operators[name]).bounds, field, index);
  return cells === null ? [] : [cells];
}

/** Null: the index cannot serve these bounds. */
function cellsOfBounds(bounds: Bounds, { kind }: IndexField, index: Index): CellRange[] | null {
  if (kind === '2d') return bounds.kind === 'box' ? rangesOfBox(bounds.box, gridOf(index)) : null;
  if (bounds.kind === 'shape') return rangesOfShape(bounds.shape);
  return bounds.kind === 'cap' ? rangesOfCap(bounds.center, bounds.radius) : null;
}

export function rangesOfCells(
  index: Index,
  prefixes: readonly unknown[][],
  cells: readonly CellRange[],
): KeyRange[] {
  const key = (prefix: unknown[], cell: Buffer) =>
    keyOf([...prefix, cell], index.descending, index.collation);
  return inOrder(
    prefixes.flatMap((prefix) =>
      cells.map(([low, high]) => ({ low: key(prefix, low), high: afterPrefix(key(prefix, high)) })),
    ),
  );
}

/** Sorted, without duplicates. */
function inOrder(ranges: readonly { low: Buffer; high: Uint8Array }[]): KeyRange[] {
  const sorted = ranges.toSorted((one, other) => Buffer.compare(one.low, other.low));
  return sorted.filter(
    ({ low }, i) => i === 0 || !low.equals((sorted[i - 1] as (typeof sorted)[number]).low),
  );
}
