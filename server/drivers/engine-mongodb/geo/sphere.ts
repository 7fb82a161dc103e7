/**
 * Points, arcs and rings on the unit sphere. Everything is closed: what is within TOUCH of an arc lies on it.
 * Arcs are the shorter ones of great circles, shorter than half of one.
 */
import { spend } from '../command-time.ts';

export type Vector = readonly [x: number, y: number, z: number];

/** Radians, a tenth of a micrometre on the earth: larger than the rounding of coordinates. */
export const TOUCH = 2e-14;
/** Radians a point may be off an edge for the interior to begin there; a centimetre on the earth. */
const INWARD = 1.5e-9;
const FULL_CIRCLE = 2 * Math.PI;

export function vectorOf(lng: number, lat: number): Vector {
  const [phi, theta] = [(lat * Math.PI) / 180, (lng * Math.PI) / 180];
  // At the poles and at 180° one point has many coordinates, and is to be one vector.
  const radius = Math.abs(lat) === 90 ? 0 : Math.cos(phi);
  const isEdge = Math.abs(lng) === 180;
  return [radius * (isEdge ? -1 : Math.cos(theta)), isEdge ? 0 : radius * Math.sin(theta), Math.sin(phi)];
}

function dot(a: Vector, b: Vector): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

function cross(a: Vector, b: Vector): Vector {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

/** A normal of the plane through two points, precise where they are near each other too. */
function normalOf(a: Vector, b: Vector): Vector {
  const sum: Vector = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
  const difference: Vector = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
  return cross(sum, difference);
}

function length(a: Vector): number {
  return Math.hypot(a[0], a[1], a[2]);
}

export function unit(a: Vector): Vector {
  const size = length(a) || 1;
  return [a[0] / size, a[1] / size, a[2] / size];
}

/** The angle between two points, radians. */
export function angleBetween(a: Vector, b: Vector): number {
  const chord = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  return chord < 1.9 ? 2 * Math.asin(chord / 2) : Math.atan2(length(cross(a, b)), dot(a, b));
}

/** The angle between a point and the nearest point of an arc, radians. */
export function angleToArc(p: Vector, a: Vector, b: Vector): number {
  const normal = normalOf(a, b);
  const size = length(normal);
  if (size > 0 && dot(cross(normal, a), p) >= 0 && dot(cross(b, normal), p) >= 0)
    return Math.asin(Math.min(1, Math.abs(dot(p, normal)) / size));
  return Math.min(angleBetween(p, a), angleBetween(p, b));
}

/** Above 0: `c` is left of the way from `a` to `b`. */
function side(a: Vector, b: Vector, c: Vector): number {
  return dot(normalOf(a, b), c);
}

/** Whether two arcs cross within both of them. */
export function arcsCross(a: Vector, b: Vector, other: readonly [Vector, Vector]): boolean {
  const [c, d] = other;
  const acb = -side(a, b, c);
  const bda = side(a, b, d);
  if (acb * bda <= 0) return false;
  const cbd = -side(c, d, b);
  const dac = side(c, d, a);
  return acb * cbd > 0 && acb * dac > 0;
}

/** Whether two arcs have a point in common. */
export function arcsMeet(a: Vector, b: Vector, other: readonly [Vector, Vector]): boolean {
  return arcsCross(a, b, other) || arcsTouch(a, b, other);
}

/** Whether an end of an arc lies on the other one. */
export function arcsTouch(a: Vector, b: Vector, [c, d]: readonly [Vector, Vector]): boolean {
  const isOn = (p: Vector, from: Vector, to: Vector) => angleToArc(p, from, to) <= TOUCH;
  return isOn(a, c, d) || isOn(b, c, d) || isOn(c, a, b) || isOn(d, a, b);
}

/** The signed area of a triangle, steradians. */
function excess(a: Vector, b: Vector, c: Vector): number {
  // The differences keep the digits of small triangles.
  const [toB, toC] = [b, c].map((p): Vector => [p[0] - a[0], p[1] - a[1], p[2] - a[2]]) as [Vector, Vector];
  return 2 * Math.atan2(dot(a, cross(toB, toC)), 1 + dot(a, b) + dot(b, c) + dot(c, a));
}

/** The area left of a ring, between 0 and 4π. */
export function areaLeft(vertices: readonly Vector[]): number {
  const [first] = vertices as [Vector];
  let area = 0;
  for (let i = 1; i + 1 < vertices.length; i++)
    area += excess(first, vertices[i] as Vector, vertices[i + 1] as Vector);
  const all = 2 * FULL_CIRCLE;
  return ((area % all) + all) % all;
}

/** Points whose place relative to a ring is known; one of them is far from antipodal to any other point. */
const ORIGINS: readonly Vector[] = [unit([0.00457, 1, 0.0321]), unit([0.71, -0.5, -0.4997])];

/** A closed ring and what it encloses. */
export class Ring {
  /** Each once, what is enclosed at the left. */
  readonly vertices: readonly Vector[];
  readonly #isInside: readonly boolean[];

  /** `vertices`: each once. What is enclosed is the smaller side, or the left one with `isStrict`. */
  constructor(vertices: readonly Vector[], isStrict = false) {
    const isRight = !isStrict && areaLeft(vertices) > FULL_CIRCLE;
    this.vertices = isRight ? vertices.toReversed() : vertices;
    const inner = this.#innerPoint();
    this.#isInside = ORIGINS.map((origin) => !this.#isCrossed(origin, inner));
  }

  *arcs(): Generator<readonly [Vector, Vector]> {
    const { vertices } = this;
    spend(vertices.length);
    for (let i = 0; i < vertices.length; i++)
      yield [vertices[i] as Vector, vertices[(i + 1) % vertices.length] as Vector];
  }

  /** One just left of the middle of the longest edge. */
  #innerPoint(): Vector {
    let [from, to, longest] = [this.vertices[0] as Vector, this.vertices[1] as Vector, 0];
    for (const [a, b] of this.arcs()) {
      const size = angleBetween(a, b);
      if (size > longest) [from, to, longest] = [a, b, size];
    }
    const middle = unit([from[0] + to[0], from[1] + to[1], from[2] + to[2]]);
    const left = unit(normalOf(from, to));
    const off = Math.min(INWARD, longest / 1000);
    return unit([middle[0] + off * left[0], middle[1] + off * left[1], middle[2] + off * left[2]]);
  }

  /** Whether the way between two points crosses the ring an odd number of times. */
  #isCrossed(from: Vector, to: Vector): boolean {
    const { vertices } = this;
    spend(vertices.length);
    const normal = normalOf(from, to);
    let isOdd = false;
    let a = vertices.at(-1) as Vector;
    let aSide = dot(normal, a);
    for (const b of vertices) {
      const bSide = dot(normal, b);
      // A vertex on the way belongs to its left, so that it counts once for both of its edges.
      if (aSide >= 0 !== bSide >= 0) {
        const edge = normalOf(a, b);
        const [fromSide, toSide] = [dot(edge, from), dot(edge, to)];
        const isUp = bSide >= 0;
        if (isUp ? fromSide > 0 && toSide <= 0 : fromSide <= 0 && toSide > 0) isOdd = !isOdd;
      }
      [a, aSide] = [b, bSide];
    }
    return isOdd;
  }

  /** Whether a point lies on the ring. */
  touches(p: Vector): boolean {
    for (const [a, b] of this.arcs()) if (angleToArc(p, a, b) <= TOUCH) return true;
    return false;
  }

  /** Whether a point is enclosed; of points on the ring either may be said. */
  encloses(p: Vector): boolean {
    const which = dot(p, ORIGINS[0] as Vector) > -0.3 ? 0 : 1;
    return this.#isInside[which] !== this.#isCrossed(ORIGINS[which] as Vector, p);
  }
}
