/** Parses `$geoWithin`, `$geoIntersects` and `$near`, and matches locations. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import { isDocument } from '../values/field-paths.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';
import {
  isGeoJson,
  isOnEarth,
  type Location,
  legacyPair,
  type Pair,
  readGeoJson,
  shown,
} from './locations.ts';
import type { Shape } from './shapes.ts';
import { type Vector, vectorOf } from './sphere.ts';

/** Metres; MongoDB's radius of the earth. */
const EARTH_RADIUS = 6_378_100;
/** Tolerance of distances because of the precision of coordinates, radians. */
const SLACK = 1e-13;

const bad = (message: string) => new CommandError('BadValue', message);

/** Where documents may be, so that an index reads no others: a shape, a cap, or a box of the plane. */
export type Bounds =
  | { readonly kind: 'shape'; readonly shape: Shape }
  | { readonly kind: 'cap'; readonly center: Vector; readonly radius: number }
  | { readonly kind: 'box'; readonly box: readonly [Pair, Pair] };

export interface Region {
  holds(location: Location): boolean;
  readonly bounds: Bounds;
}

/** Regions by their operands, shared by a filter and the plan of its query. */
const known = new WeakMap<Document, { readonly operator: string; readonly region: Region }>();

/** Throws CommandError. */
export function readRegion(operator: string, operand: unknown): Region {
  if (!isDocument(operand)) throw bad(`${operator} requires an object`);
  const there = known.get(operand);
  if (there?.operator === operator) return there.region;
  const region = regionOf(operator, operand);
  known.set(operand, { operator, region });
  return region;
}

function regionOf(operator: string, operand: Document): Region {
  const [name = '', ...more] = Object.keys(operand).filter((each) => each !== '$uniqueDocs');
  if (more.length > 0) throw bad(`${operator} takes one shape, not ${name} and ${more.join(', ')}`);
  const read = Object.hasOwn(SHAPES, name) ? SHAPES[name] : undefined;
  if (read === undefined) throw bad(`unknown geo specifier: ${name}: ${shown(operand[name])}`);
  if (operator === '$geoIntersects') {
    if (name !== '$geometry') throw bad(`$geoIntersects not supported with provided geometry: ${name}`);
    const shape = readGeoJson(operand.$geometry);
    return { holds: (location) => location.shape?.meets(shape) ?? false, bounds: { kind: 'shape', shape } };
  }
  return read(operand[name]);
}

function numberOf(value: unknown, what: string): number {
  const number = isNumber(value) ? plainNumber(value) : Number.NaN;
  if (number >= 0) return number;
  throw bad(`${what} must be a non-negative number`);
}

function pairsOf(value: unknown, name: string): Pair[] {
  const list: unknown[] = Array.isArray(value) ? value : isDocument(value) ? Object.values(value) : [];
  return list.map((each) => {
    const pair = legacyPair(each);
    if (pair === null) throw bad(`Point must be an array or object: ${name}`);
    return pair;
  });
}

function circleOf(value: unknown, name: string): { center: Pair; radius: number } {
  if (!Array.isArray(value) || value.length !== 2) throw bad(`${name} needs a center and a radius`);
  const center = isGeoJson(value[0]) ? legacyPair(value[0].coordinates) : legacyPair(value[0]);
  if (center === null) throw bad(`the center of ${name} must be a point`);
  return { center, radius: numberOf(value[1], `the radius of ${name}`) };
}

const SHAPES: Readonly<Record<string, (operand: unknown) => Region>> = {
  $geometry: (operand) => {
    const shape = readGeoJson(operand);
    if (shape.points.length + shape.lines.length > 0)
      throw bad(`$geoWithin not supported with provided geometry: ${shown(operand)}`);
    return {
      holds: (location) => location.shape?.isWithin(shape) ?? false,
      bounds: { kind: 'shape', shape },
    };
  },
  $box: (operand) => {
    const [one, other, ...more] = pairsOf(operand, '$box');
    if (one === undefined || other === undefined || more.length > 0) throw bad('$box needs two corners');
    const low: Pair = [Math.min(one[0], other[0]), Math.min(one[1], other[1])];
    const high: Pair = [Math.max(one[0], other[0]), Math.max(one[1], other[1])];
    const holds = ([x, y]: Pair) => x >= low[0] && x <= high[0] && y >= low[1] && y <= high[1];
    return flat(holds, [low, high]);
  },
  $center: (operand) => {
    const { center, radius } = circleOf(operand, '$center');
    const [x, y] = center;
    const box = [[x - radius, y - radius] as const, [x + radius, y + radius] as const] as const;
    return flat((pair) => flatDistance(pair, center) <= radius, box);
  },
  $centerSphere: (operand) => {
    const { center: pair, radius } = circleOf(operand, '$centerSphere');
    if (!isOnEarth(pair)) throw bad('Spherical center must be valid coordinates');
    const center = vectorOf(...pair);
    const holds = ({ shape }: Location) => shape !== null && shape.angleToEnd(center) <= radius + SLACK;
    return { holds, bounds: { kind: 'cap', center, radius } };
  },
  $polygon: (operand) => {
    const corners = pairsOf(operand, '$polygon');
    if (corners.length < 3) throw bad('Polygon must have at least 3 points');
    const xs = corners.map(([x]) => x);
    const ys = corners.map(([, y]) => y);
    const least = (list: number[]) => list.reduce((a, b) => Math.min(a, b));
    const most = (list: number[]) => list.reduce((a, b) => Math.max(a, b));
    return flat(
      (pair) => polygonHolds(corners, pair),
      [
        [least(xs), least(ys)],
        [most(xs), most(ys)],
      ],
    );
  },
};

function flat(test: (pair: Pair) => boolean, box: readonly [Pair, Pair]): Region {
  return { holds: ({ pair }) => pair !== null && test(pair), bounds: { kind: 'box', box } };
}

function flatDistance([x, y]: Pair, [toX, toY]: Pair): number {
  return Math.hypot(x - toX, y - toY);
}

/** Points on the edges are inside. */
function polygonHolds(corners: readonly Pair[], [x, y]: Pair): boolean {
  spend(corners.length);
  let isInside = false;
  let [fromX, fromY] = corners.at(-1) as Pair;
  for (const [toX, toY] of corners) {
    const turn = (toX - fromX) * (y - fromY) - (toY - fromY) * (x - fromX);
    const isBeside = (x - fromX) * (x - toX) <= 0 && (y - fromY) * (y - toY) <= 0;
    if (turn === 0 && isBeside) return true;
    if (fromY > y !== toY > y && turn > 0 === toY > fromY) isInside = !isInside;
    [fromX, fromY] = [toX, toY];
  }
  return isInside;
}

/** The centre and the maximum distance of a search for near documents. */
export interface Near {
  /** False: on the plane, which only `2d` indexes serve. */
  readonly isSpherical: boolean;
  /** False: its point is GeoJSON, which needs an index of type `2dsphere`. */
  readonly isLegacy: boolean;
  readonly center: Pair;
  /** In the unit of `distanceTo`. */
  readonly min: number;
  readonly max: number;
  /** Radians per unit; 1 on the plane. */
  readonly unit: number;
  /** Metres, radians or units of the plane; undefined: unknown. */
  distanceTo(location: Location): number | undefined;
}

export interface NearOptions {
  readonly point: unknown;
  readonly isSphere: boolean;
  readonly max: unknown;
  readonly min: unknown;
}

/** Throws CommandError. */
export function readNear({ point, isSphere, max, min }: NearOptions): Near {
  const isLegacy = !isGeoJson(point);
  const center = isLegacy ? legacyPair(point) : point.type === 'Point' ? legacyPair(point.coordinates) : null;
  if (center === null) throw bad(`$near requires a point, given ${shown(point)}`);
  const isSpherical = isSphere || !isLegacy;
  if (isSpherical && !isOnEarth(center)) throw bad('$near: longitude/latitude is out of bounds');
  const unit = isLegacy ? 1 : 1 / EARTH_RADIUS;
  const vector = isSpherical ? vectorOf(...center) : null;
  const limit = (value: unknown, name: string) => (value === undefined ? undefined : numberOf(value, name));
  return {
    isSpherical,
    isLegacy,
    center,
    unit,
    min: limit(min, 'minDistance') ?? 0,
    max: limit(max, 'maxDistance') ?? Number.POSITIVE_INFINITY,
    distanceTo: ({ shape, pair }) => {
      if (vector !== null) return shape === null ? undefined : shape.angleTo(vector) / unit;
      return pair === null ? undefined : flatDistance(pair, center);
    },
  };
}

/** `$near` or `$nearSphere` of a field's operators; null: they have neither. Throws CommandError. */
export function nearOf(operators: Document): Near | null {
  const name = '$near' in operators ? '$near' : '$nearSphere' in operators ? '$nearSphere' : null;
  if (name === null) return null;
  const operand = operators[name];
  const isGeometry = isDocument(operand) && '$geometry' in operand;
  if (isGeometry && ('$maxDistance' in operators || '$minDistance' in operators))
    throw bad(`${name} takes the distances inside it if its point is GeoJSON`);
  const point = isGeometry ? operand.$geometry : operand;
  // A third number is the maximum distance.
  const third = Array.isArray(point) ? point[2] : undefined;
  const { $maxDistance: max = third, $minDistance: min } = isGeometry ? operand : operators;
  return readNear({ point, isSphere: name === '$nearSphere', max, min });
}
