/** Locations in documents and queries: GeoJSON, and pairs of coordinates of older versions. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { OutOfTime, spend } from '../command-time.ts';
import { isDocument } from '../values/field-paths.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';
import { type Polygon, Shape } from './shapes.ts';
import { angleBetween, angleToArc, arcsMeet, Ring, TOUCH, type Vector, vectorOf } from './sphere.ts';

export type Pair = readonly [x: number, y: number];

/** A stored location. */
export interface Location {
  /** Null: the coordinates are outside the valid longitudes and latitudes. */
  readonly shape: Shape | null;
  /** Planar coordinates; null: the location is not a single point. */
  readonly pair: Pair | null;
  readonly value: unknown;
}

const HALF_CIRCLE = Math.PI - 1e-9;
/** Maximum pairs of edges compared per ring; half a second of work. */
const MOST_COMPARED = 50_000_000;
const MEET_STEPS = 10;
const STRICT_WINDING = 'urn:x-mongodb:crs:strictwinding:EPSG:4326';
const CRS = ['EPSG:4326', 'urn:ogc:def:crs:OGC:1.3:CRS84', STRICT_WINDING];

const bad = (message: string) => new CommandError('BadValue', message);

const MAX_SHOWN = 200;

/** A value in the message of an error. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** The locations of a value or of its elements. Other values are skipped. */
export function locationsOf(value: unknown): Location[] {
  const one = locationOf(value);
  if (one !== null) return [one];
  return Array.isArray(value) ? value.map(locationOf).filter((each) => each !== null) : [];
}

function locationOf(value: unknown): Location | null {
  try {
    return readLocation(value);
  } catch (error) {
    if (error instanceof CommandError && !(error instanceof OutOfTime)) return null;
    throw error;
  }
}

/** Null: not a location. Throws CommandError for an invalid one. */
export function readLocation(value: unknown): Location | null {
  if (isGeoJson(value)) {
    const shape = readGeoJson(value);
    const pair = value.type === 'Point' ? pairOf(value.coordinates) : null;
    return { shape, pair, value };
  }
  const pair = legacyPair(value);
  if (pair === null) return null;
  const shape = isOnEarth(pair) ? new Shape({ points: [vectorOf(...pair)] }) : null;
  return { shape, pair, value };
}

export function isGeoJson(value: unknown): value is Document {
  return (
    isDocument(value) && typeof value.type === 'string' && ('coordinates' in value || 'geometries' in value)
  );
}

/** `[x, y]`, or a document whose first two fields are numbers; null: neither. */
export function legacyPair(value: unknown): Pair | null {
  const list = Array.isArray(value) ? value : isDocument(value) ? Object.values(value) : [];
  return list.length >= 2 && list.slice(0, 2).every(isNumber) ? pairOf(list) : null;
}

export function isOnEarth([lng, lat]: Pair): boolean {
  return Math.abs(lng) <= 180 && Math.abs(lat) <= 90;
}

function pairOf(value: unknown): Pair {
  if (!Array.isArray(value) || value.length < 2 || !value.slice(0, 2).every(isNumber))
    throw bad('Point must be an array or object of at least two numbers');
  const [x, y] = value.map(plainNumber) as [number, number];
  if (!Number.isFinite(x) || !Number.isFinite(y)) throw bad('Point coordinates must be finite numbers');
  return [x, y];
}

function readPoint(value: unknown): Vector {
  spend(MEET_STEPS);
  const pair = pairOf(value);
  if (!isOnEarth(pair)) throw bad(`longitude/latitude is out of bounds, lng: ${pair[0]} lat: ${pair[1]}`);
  return vectorOf(...pair);
}

function listOf<T>(value: unknown, read: (each: unknown) => T): T[] {
  if (!Array.isArray(value) || value.length === 0)
    throw bad('GeoJSON coordinates must be an array of coordinates');
  return value.map(read);
}

/** Throws CommandError for antipodal points, which many great circles connect. */
function assertNoHalves(path: readonly Vector[]): void {
  const isHalf = (point: Vector, i: number) =>
    i > 0 && angleBetween(point, path[i - 1] as Vector) > HALF_CIRCLE;
  if (path.some(isHalf)) throw bad('Adjacent vertices must not be antipodal');
}

/** Points without consecutive duplicates. */
function distinct(points: readonly Vector[]): Vector[] {
  const path: Vector[] = [];
  for (const point of points)
    if (path.length === 0 || angleBetween(point, path.at(-1) as Vector) > TOUCH) path.push(point);
  return path;
}

function isSame(a: Vector, b: Vector): boolean {
  return a.every((each, i) => each === b[i]);
}

function readLine(value: unknown): Vector[] {
  const path = distinct(listOf(value, readPoint));
  assertNoHalves(path);
  if (path.length >= 2) return path;
  throw bad('GeoJSON LineString must have at least 2 vertices');
}

function readRing(value: unknown, isStrict: boolean): Ring {
  const points = listOf(value, readPoint);
  const [first, last] = [points[0] as Vector, points.at(-1) as Vector];
  if (!isSame(first, last)) throw bad(`Loop is not closed: ${shown(value)}`);
  const vertices = distinct(points.slice(0, -1));
  while (vertices.length > 1 && angleBetween(vertices.at(-1) as Vector, first) <= TOUCH) vertices.pop();
  if (vertices.length < 3) throw bad(`Loop must have at least 3 different vertices: ${shown(value)}`);
  assertNoHalves([...vertices, first]);
  if (new Set(vertices.map(String)).size < vertices.length)
    throw bad('Loop is not valid: Duplicate vertices');
  const ring = new Ring(vertices, isStrict);
  assertSimple(ring);
  return ring;
}

type Edge = readonly [Vector, Vector];

/** Whether the second of two consecutive edges goes back over the first. */
function turnsBack([a, b]: Edge, [, c]: Edge): boolean {
  return angleToArc(c, a, b) <= TOUCH || angleToArc(a, b, c) <= TOUCH;
}

/** Throws CommandError if edges meet, except at the corner between two. */
function assertSimple(ring: Ring): void {
  const edges = [...ring.arcs()].map((arc, i) => {
    const [a, b] = arc;
    // An arc extends beyond its ends by less than this.
    const over = ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2) / 4 + 1e-13;
    const [low, high] = [Math.min(a[0], b[0]) - over, Math.max(a[0], b[0]) + over];
    const [left, right] = [Math.min(a[1], b[1]) - over, Math.max(a[1], b[1]) + over];
    return {
      arc,
      i,
      low,
      high,
      left,
      right,
      under: Math.min(a[2], b[2]) - over,
      top: Math.max(a[2], b[2]) + over,
    };
  });
  edges.sort((one, other) => one.low - other.low);
  let allowed = MOST_COMPARED;
  let seen = allowed;
  edges.forEach((edge, at) => {
    spend((seen - allowed) / 4 + 1);
    seen = allowed;
    for (let next = at + 1; next < edges.length; next++) {
      const other = edges[next] as (typeof edges)[number];
      if (other.low > edge.high) return;
      const apart = Math.abs(edge.i - other.i);
      if (--allowed < 0) throw bad('Loop is not valid: too many of its edges lie side by side');
      if (other.left > edge.right || other.right < edge.left) continue;
      if (other.under > edge.top || other.top < edge.under) continue;
      spend(MEET_STEPS);
      const isNext = apart === 1 || apart === edges.length - 1;
      const [one, two] = other.i === (edge.i + 1) % edges.length ? [edge, other] : [other, edge];
      if (isNext ? turnsBack(one.arc, two.arc) : arcsMeet(...edge.arc, other.arc))
        throw bad(
          `Loop is not valid: Edges ${Math.min(edge.i, other.i)} and ${Math.max(edge.i, other.i)} cross`,
        );
    }
  });
}

function readPolygon(value: unknown, isStrict: boolean): Polygon {
  const [outer, ...holes] = listOf(value, (each) => readRing(each, isStrict)) as [Ring, ...Ring[]];
  if (isStrict && holes.length > 0) throw bad('Only one simple loop is allowed in a big polygon');
  const isInside = (hole: Ring) => hole.vertices.every((p) => outer.encloses(p) || outer.touches(p));
  if (holes.every(isInside)) return { outer, holes };
  throw bad('Secondary loops not contained by first exterior loop - secondary loops must be holes');
}

function readMember(value: unknown): Shape {
  if (isGeoJson(value) && value.type === 'GeometryCollection')
    throw bad(`GeometryCollections cannot be nested: ${shown(value)}`);
  return readGeoJson(value);
}

/** Throws CommandError for an invalid geometry. */
export function readGeoJson(value: unknown): Shape {
  if (!isGeoJson(value)) throw bad(`unknown geo specifier: ${shown(value)}`);
  const { type, coordinates, geometries, crs } = value;
  const name = crs?.properties?.name;
  if (crs !== undefined && !CRS.includes(name)) throw bad(`Unknown CRS name: ${String(name)}`);
  const isStrict = name === STRICT_WINDING;
  switch (type) {
    case 'Point':
      return new Shape({ points: [readPoint(coordinates)] });
    case 'MultiPoint':
      return new Shape({ points: listOf(coordinates, readPoint) });
    case 'LineString':
      return new Shape({ lines: [readLine(coordinates)] });
    case 'MultiLineString':
      return new Shape({ lines: listOf(coordinates, readLine) });
    case 'Polygon':
      return new Shape({ polygons: [readPolygon(coordinates, isStrict)] });
    case 'MultiPolygon':
      return new Shape({ polygons: listOf(coordinates, (each) => readPolygon(each, false)) });
    case 'GeometryCollection':
      return Shape.all(listOf(geometries, readMember));
    default:
      throw bad(`unknown GeoJSON type: ${String(type)}`);
  }
}
