/**
 * Points, arcs and rings on the unit sphere. Everything is closed: points within TOUCH of an arc
 * lie on it. Arcs are the shorter ones of great circles, shorter than half of one.
 */
import { spend } from '../command-time.ts';
import { sideOf, TRIAGE_ERROR } from './orientation.ts';

export type Vector = readonly [x: number, y: number, z: number];

/** Radians, a tenth of a micrometre on the earth: larger than the rounding of coordinates. */
export const TOUCH = 2e-14;

export function vectorOf(lng: number, lat: number): Vector {
  const [phi, theta] = [(lat * Math.PI) / 180, (lng * Math.PI) / 180];
  // At the poles and at 180°, one point has many coordinates but must have one vector.
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

/** A normal of the plane through two points, precise even if they are close together. */
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

/** Whether two arcs cross in their interiors. */
export function arcsCross(a: Vector, b: Vector, other: readonly [Vector, Vector]): boolean {
  const [c, d] = other;
  const acb = -Math.sign(sideOf(a, b, c));
  if (acb === 0 || acb !== Math.sign(sideOf(a, b, d))) return false;
  return acb === -Math.sign(sideOf(c, d, b)) && acb === Math.sign(sideOf(c, d, a));
}

/** Whether two arcs have a point in common. */
export function arcsMeet(a: Vector, b: Vector, other: readonly [Vector, Vector]): boolean {
  return arcsCross(a, b, other) || arcsTouch(a, b, other);
}

/** Whether an end of one arc lies on the other. */
export function arcsTouch(a: Vector, b: Vector, [c, d]: readonly [Vector, Vector]): boolean {
  const isOn = (p: Vector, from: Vector, to: Vector) => angleToArc(p, from, to) <= TOUCH;
  return isOn(a, c, d) || isOn(b, c, d) || isOn(c, a, b) || isOn(d, a, b);
}

/**
 * How far a ring turns left along its way, radians: 2π less the area left of it. Its sign is
 * reliable except for rings of half the sphere, since each angle is measured at its corner.
 */
function turnLeft(vertices: readonly Vector[]): number {
  spend(vertices.length);
  let sum = 0;
  let a = vertices.at(-2) as Vector;
  let b = vertices.at(-1) as Vector;
  let before = normalOf(a, b);
  for (const c of vertices) {
    const after = normalOf(b, c);
    const angle = Math.atan2(length(cross(before, after)), dot(before, after));
    sum += sideOf(a, b, c) < 0 ? -angle : angle;
    [a, b, before] = [b, c, after];
  }
  return sum;
}

/** Points with known positions relative to a ring; for any point, one is far from antipodal. */
const ORIGINS: readonly Vector[] = [unit([0.00457, 1, 0.0321]), unit([0.71, -0.5, -0.4997])];

/** A closed ring and its interior. */
export class Ring {
  /** Without duplicates; the enclosed area is on the left. */
  readonly vertices: readonly Vector[];
  /** The ring encloses more than half of the sphere. */
  readonly isLarge: boolean;
  readonly #isInside: readonly boolean[];

  /** `vertices`: without duplicates. Encloses the smaller side, or with `isStrict` the left one. */
  constructor(vertices: readonly Vector[], isStrict = false) {
    const isLeftLarge = turnLeft(vertices) < 0;
    this.isLarge = isStrict && isLeftLarge;
    this.vertices = isLeftLarge && !isStrict ? vertices.toReversed() : vertices;
    this.#isInside = ORIGINS.map((origin) => this.#isOriginInside(origin));
  }

  *arcs(): Generator<readonly [Vector, Vector]> {
    const { vertices } = this;
    spend(vertices.length);
    for (let i = 0; i < vertices.length; i++)
      yield [vertices[i] as Vector, vertices[(i + 1) % vertices.length] as Vector];
  }

  /** For a path to a corner: whether it arrives between the corner's edges, and which others it crosses. */
  #isOriginInside(origin: Vector): boolean {
    const [before, corner, after] = this.vertices as unknown as [Vector, Vector, Vector];
    const isOdd = this.#isCrossed(origin, corner, 1);
    return isOdd !== isTurnedBetween(origin, { from: after, to: before, around: corner });
  }

  /**
   * Whether the path between two points crosses the ring an odd number of times, without a corner's
   * edges.
   */
  #isCrossed(from: Vector, to: Vector, corner: number | null = null): boolean {
    const { vertices } = this;
    spend(vertices.length);
    const normal = cross(from, to);
    const sideOfWay = (p: Vector) => {
      const rough = dot(normal, p);
      return rough > TRIAGE_ERROR || rough < -TRIAGE_ERROR ? rough : sideOf(from, to, p);
    };
    let isOdd = false;
    let a = vertices.at(-1) as Vector;
    let isLeft = sideOfWay(a) >= 0;
    for (let i = 0; i < vertices.length; i++) {
      const b = vertices[i] as Vector;
      // A vertex on the path counts as left of it, so that its two edges count once.
      const isNextLeft = sideOfWay(b) >= 0;
      if (isLeft !== isNextLeft && (corner === null || (i !== corner && i !== corner + 1))) {
        const [fromSide, toSide] = [sideOf(a, b, from), sideOf(a, b, to)];
        if (isNextLeft ? fromSide > 0 && toSide <= 0 : fromSide <= 0 && toSide > 0) isOdd = !isOdd;
      }
      [a, isLeft] = [b, isNextLeft];
    }
    return isOdd;
  }

  /** Whether a point lies on the ring. */
  touches(p: Vector): boolean {
    for (const [a, b] of this.arcs()) if (angleToArc(p, a, b) <= TOUCH) return true;
    return false;
  }

  /** Whether a point is enclosed; undefined for points on the ring. */
  encloses(p: Vector): boolean {
    const which = dot(p, ORIGINS[0] as Vector) > -0.3 ? 0 : 1;
    return this.#isInside[which] !== this.#isCrossed(ORIGINS[which] as Vector, p);
  }
}

/** Whether turning left around a point from one direction to another passes `p`. */
function isTurnedBetween(
  p: Vector,
  { from, to, around }: { from: Vector; to: Vector; around: Vector },
): boolean {
  const turns = [sideOf(p, around, from) >= 0, sideOf(to, around, p) >= 0, sideOf(from, around, to) > 0];
  return turns.filter(Boolean).length >= 2;
}
