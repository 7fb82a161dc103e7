/**
 * Cells of an index: those of S2 on the sphere, and those of a grid on the plane. A range of cells has a
 * range of numbers.
 */
import { createRequire } from 'node:module';
import type { S2Cap, S2Cell, S2CellId, S2Point } from 'nodes2ts';
import type { Pair } from './locations.ts';
import { Shape } from './shapes.ts';
import { angleBetween, type Vector } from './sphere.ts';

const require = createRequire(import.meta.url);
let library: typeof import('nodes2ts') | null = null;

/** Loaded on demand: most databases have no locations. */
function s2(): typeof import('nodes2ts') {
  library ??= require('nodes2ts') as typeof import('nodes2ts');
  return library;
}

/** First and last cell id of a range, as bytes. */
export type CellRange = readonly [Buffer, Buffer];

const MAX_CELLS = 20;
/** Level of the smallest cells of a stored line or area; smaller ones than this, some 75 cm, gain nothing. */
const FINEST_LEVEL = 23;

function bytesOf(id: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(id);
  return bytes;
}

const pointOf = ([x, y, z]: Vector) => new (s2().S2Point)(x, y, z);
const vectorAt = ({ x, y, z }: S2Point): Vector => [x, y, z];

function capOf({ center, radius }: Shape['bound']): S2Cap {
  return radius >= Math.PI
    ? s2().S2Cap.full()
    : s2().S2Cap.fromAxisAngle(pointOf(center), s2().S1Angle.radians(radius + 1e-12));
}

/**
 * The cells that cover a shape, or the circle around one with many edges. A circle around each cell
 * is compared with the shape, so that each edge is compared once.
 */
function coveringOf(shape: Shape): S2CellId[] {
  const cap = capOf(shape.bound);
  const coverer = new (s2().S2RegionCoverer)().setMaxCells(MAX_CELLS).setMaxLevel(FINEST_LEVEL);
  if (!shape.isSimple) return coverer.getCoveringCells(cap);
  let last: { readonly cell: S2Cell; readonly place: Place } | null = null;
  const placeOf = (cell: S2Cell) => {
    if (last?.cell !== cell) last = { cell, place: placeIn(shape, cell) };
    return last.place;
  };
  return coverer.getCoveringCells({
    getCapBound: () => cap,
    getRectBound: () => s2().S2LatLngRect.full(),
    containsC: (cell) => placeOf(cell) === 'inside',
    mayIntersectC: (cell) => placeOf(cell) !== 'outside',
  });
}

type Place = 'inside' | 'outside' | 'between';

function placeIn(shape: Shape, cell: S2Cell): Place {
  const center = vectorAt(cell.getCenter());
  const corners = [0, 1, 2, 3].map((k) => vectorAt(cell.getVertex(k)));
  const radius = Math.max(...corners.map((corner) => angleBetween(center, corner))) + 1e-12;
  if (angleBetween(center, shape.bound.center) > shape.bound.radius + radius) return 'outside';
  const edge = shape.angleToEdge(center);
  if (shape.encloses(center)) return edge > radius ? 'inside' : 'between';
  return edge > radius ? 'outside' : 'between';
}

/** Cells under which a stored shape is found. */
export function cellsOf(shape: Shape): Buffer[] {
  const { points, lines, polygons } = shape;
  const own = points.map((point) => s2().S2CellId.fromPoint(pointOf(point)));
  const others = lines.length + polygons.length === 0 ? [] : coveringOf(new Shape({ lines, polygons }));
  return [...new Set([...own, ...others].map(({ id }) => id))].map(bytesOf);
}

/** The cells of stored shapes that meet one of these, and the larger cells around those. */
function rangesOf(cells: readonly S2CellId[]): CellRange[] {
  const around = new Set<bigint>();
  for (const cell of cells)
    for (let level = 0; level < cell.level(); level++) around.add(cell.parentL(level).id);
  return [
    ...cells.map((cell) => [bytesOf(cell.rangeMin().id), bytesOf(cell.rangeMax().id)] as const),
    ...[...around].map((id) => [bytesOf(id), bytesOf(id)] as const),
  ];
}

export function rangesOfShape(shape: Shape): CellRange[] {
  return rangesOf(coveringOf(shape));
}

/** Cells of a circle with a radius in radians. */
export function rangesOfCap(center: Vector, radius: number): CellRange[] {
  const cells = new (s2().S2RegionCoverer)()
    .setMaxCells(MAX_CELLS)
    .getCoveringCells(capOf({ center, radius }));
  return rangesOf(cells);
}

/** The bits of a grid cell's number come from either coordinate in turn. */
export interface Grid {
  readonly min: number;
  readonly max: number;
  readonly bits: number;
}

function columnOf(value: number, { min, max, bits }: Grid): number {
  const cells = 2 ** bits;
  return Math.min(cells - 1, Math.max(0, Math.floor(((value - min) / (max - min)) * cells)));
}

export function gridCell([x, y]: Pair, grid: Grid): Buffer {
  let [id, column, row] = [0n, BigInt(columnOf(x, grid)), BigInt(columnOf(y, grid))];
  for (let bit = 0; bit < grid.bits; bit++) {
    id |= ((column & 1n) << BigInt(2 * bit + 1)) | ((row & 1n) << BigInt(2 * bit));
    [column, row] = [column >> 1n, row >> 1n];
  }
  return bytesOf(id);
}

interface Square {
  readonly id: bigint;
  readonly level: number;
  readonly column: number;
  readonly row: number;
}

/** The cells of a rectangle. */
export function rangesOfBox([low, high]: readonly [Pair, Pair], grid: Grid): CellRange[] {
  const [left, right] = [columnOf(low[0], grid), columnOf(high[0], grid)];
  const [bottom, top] = [columnOf(low[1], grid), columnOf(high[1], grid)];
  const done: Square[] = [];
  let open: Square[] = [{ id: 0n, level: 0, column: 0, row: 0 }];
  while (open.length > 0 && done.length + open.length * 4 <= MAX_CELLS * 4) {
    const next: Square[] = [];
    for (const square of open) {
      const size = 2 ** (grid.bits - square.level);
      const [x, y] = [square.column * size, square.row * size];
      if (x > right || y > top || x + size <= left || y + size <= bottom) continue;
      const isInside = x >= left && y >= bottom && x + size - 1 <= right && y + size - 1 <= top;
      if (isInside || square.level === grid.bits) done.push(square);
      else next.push(...quartersOf(square));
    }
    open = next;
  }
  return [...done, ...open].map(({ id, level }) => {
    const bits = BigInt(2 * (grid.bits - level));
    return [bytesOf(id << bits), bytesOf(((id + 1n) << bits) - 1n)] as const;
  });
}

function quartersOf({ id, level, column, row }: Square): Square[] {
  return [0, 1, 2, 3].map((quarter) => ({
    id: id * 4n + BigInt(quarter),
    level: level + 1,
    column: column * 2 + (quarter >> 1),
    row: row * 2 + (quarter & 1),
  }));
}
