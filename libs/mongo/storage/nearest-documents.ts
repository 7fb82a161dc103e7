/** Documents by distance from a point: in growing circles, read from an index of cells. */
import type { Document } from 'bson';
import { DOCUMENT_STEPS, spend } from '../command-time.ts';
import { type CellRange, rangesOfBox, rangesOfCap } from '../geo/cells.ts';
import { type Location, locationsOf, type Pair } from '../geo/locations.ts';
import type { Near } from '../geo/regions.ts';
import { vectorOf } from '../geo/sphere.ts';
import type { Filter } from '../query/filter.ts';
import { MemoryBudget, weightOf } from '../query/sorting.ts';
import { decodeDocument } from '../values/bson-documents.ts';
import { leavesAt } from '../values/field-paths.ts';
import { setMetadata } from '../values/metadata.ts';
import type { Collection, DocumentsStore } from './documents-store.ts';
import type { Index } from './index-values.ts';
import type { Nearest } from './plan.ts';
import { gridOf } from './special-keys.ts';
import { rangesOfCells } from './special-plan.ts';
import type { FoundDocument } from './stored-rows.ts';

/** The distance of a document, and its nearest location. */
export interface Distance {
  readonly distance: number;
  readonly location: unknown;
}

export type NearDocument = FoundDocument & Distance;

/** The first circle, radians; some 12 m. */
const FIRST_RADIUS = 2e-6;
const GROWTH = 6;
/** Documents read directly if there are no more than this. */
const FEW = 200;

/** Growing circles; the last one contains everything within the maximum distance. */
function* circlesOf(
  near: Near,
  index: Index,
  isSmall: boolean,
): Generator<{ radius: number; cells: CellRange[] }> {
  const grid = index.fields.some(({ kind }) => kind === '2d') ? gridOf(index) : null;
  // On the plane, a circle with this radius contains the whole grid.
  const whole = near.isSpherical
    ? Math.PI
    : 4 * ((grid?.max ?? 180) - (grid?.min ?? -180)) + outside(near, grid);
  const most = Math.min(whole, near.max * near.unit);
  const first = Math.max(near.isSpherical ? FIRST_RADIUS : whole * 1e-6, near.min * near.unit);
  for (let radius = isSmall ? most : Math.min(most, first); ; radius = Math.min(most, radius * GROWTH)) {
    yield { radius: radius / near.unit, cells: cellsWithin(near, radius, grid) };
    if (radius >= most) return;
  }
}

function outside({ center }: Near, grid: { min: number; max: number } | null): number {
  if (grid === null) return 0;
  return center.reduce((sum, each) => sum + Math.max(0, grid.min - each, each - grid.max), 0);
}

function cellsWithin(near: Near, radius: number, grid: ReturnType<typeof gridOf> | null): CellRange[] {
  if (grid === null) return rangesOfCap(vectorOf(...near.center), radius);
  const [x, y] = near.center;
  if (!near.isSpherical) return rangesOfBox(boxAround(near.center, radius, radius), grid);
  // Degrees of a circle on the sphere: near a pole all longitudes, across 180° too.
  const height = (radius * 180) / Math.PI;
  const cosine = Math.cos((Math.min(90, Math.abs(y) + height) * Math.PI) / 180);
  const width =
    cosine <= Math.sin(Math.min(radius, Math.PI / 2))
      ? 360
      : (Math.asin(Math.sin(radius) / cosine) * 180) / Math.PI;
  const isAcross = Math.abs(x) + width > 180;
  return rangesOfBox(boxAround(near.center, isAcross ? 360 : width, height), grid);
}

function boxAround([x, y]: Pair, width: number, height: number): readonly [Pair, Pair] {
  const more = 1e-9;
  return [
    [x - width - more, y - height - more],
    [x + width + more, y + height + more],
  ];
}

/** The nearest of a document's locations; null: none near enough. */
function distanceOf(document: Document, path: readonly string[], near: Near): Distance | null {
  let best: Distance | null = null;
  for (const location of leavesAt(document, path).flatMap(locationsOf)) {
    const distance = near.distanceTo(location as Location);
    if (distance !== undefined && (best === null || distance < best.distance))
      best = { distance, location: location.value };
  }
  return best === null || best.distance < near.min || best.distance > near.max ? null : best;
}

export interface NearestRead {
  readonly index: Index;
  readonly nearest: Nearest;
  readonly test: Filter;
}

/** Nearest first. Throws CommandError if too many documents are buffered while nearer ones are read. */
export function* nearestDocuments(
  store: DocumentsStore,
  collection: Collection,
  { index, nearest, test }: NearestRead,
): Generator<NearDocument> {
  const { near, path, prefixes } = nearest;
  const seen = new Set<number>();
  const budget = new MemoryBudget('$near');
  let waiting: NearDocument[] = [];
  for (const { radius, cells } of circlesOf(near, index, collection.documents <= FEW)) {
    for (const range of rangesOfCells(index, prefixes, cells)) {
      spend(DOCUMENT_STEPS);
      for (const row of store.scanIndex(collection, index, { ...range, isReverse: false })) {
        spend(DOCUMENT_STEPS);
        if (seen.has(row.rowNumber)) continue;
        seen.add(row.rowNumber);
        const document = decodeDocument(row.bytes);
        const distance = distanceOf(document, path, near);
        if (distance === null || !test(document)) continue;
        budget.take(row.bytes.length + weightOf(document));
        setMetadata(document, { geoNearDistance: distance.distance });
        waiting.push({ ...row, document, ...distance });
      }
    }
    waiting.sort((one, other) => one.distance - other.distance);
    const isLast = radius >= near.max || radius * near.unit >= Math.PI;
    const count = waiting.findIndex(({ distance }) => distance > radius);
    const ready = count === -1 || isLast ? waiting : waiting.slice(0, count);
    waiting = waiting.slice(ready.length);
    yield* ready;
  }
  yield* waiting;
}
