/** Geometries on the sphere: containment, intersection and distance. */
import { spend } from '../command-time.ts';
import {
  angleBetween,
  angleToArc,
  arcsCross,
  arcsMeet,
  arcsTouch,
  type Ring,
  TOUCH,
  unit,
  type Vector,
} from './sphere.ts';

/** A ring and its holes. */
export interface Polygon {
  readonly outer: Ring;
  readonly holes: readonly Ring[];
}

/** Edges of lines and rings; shapes with more are found by their bounding circle. */
const MOST_COVERED = 5000;

export interface Parts {
  readonly points?: readonly Vector[];
  readonly lines?: readonly (readonly Vector[])[];
  readonly polygons?: readonly Polygon[];
}

type Arc = readonly [Vector, Vector];

export class Shape {
  readonly points: readonly Vector[];
  readonly lines: readonly (readonly Vector[])[];
  readonly polygons: readonly Polygon[];
  /** A cap that contains the shape; with radius π the whole sphere. */
  readonly bound: { readonly center: Vector; readonly radius: number };

  constructor({ points = [], lines = [], polygons = [] }: Parts) {
    this.points = points;
    this.lines = lines;
    this.polygons = polygons;
    this.bound = this.#bound();
  }

  /** The union of several shapes. */
  static all(shapes: readonly Shape[]): Shape {
    return new Shape({
      points: shapes.flatMap(({ points }) => points),
      lines: shapes.flatMap(({ lines }) => lines),
      polygons: shapes.flatMap(({ polygons }) => polygons),
    });
  }

  *#vertices(): Generator<Vector> {
    yield* this.points;
    for (const line of this.lines) yield* line;
    for (const { outer } of this.polygons) yield* outer.vertices;
  }

  /** Lines of the shape, and edges of its polygons. */
  *#arcs(): Generator<Arc> {
    for (const line of this.lines) {
      spend(line.length);
      for (let i = 1; i < line.length; i++) yield [line[i - 1] as Vector, line[i] as Vector];
    }
    for (const polygon of this.polygons) for (const ring of ringsOf(polygon)) yield* ring.arcs();
  }

  #bound(): Shape['bound'] {
    let [x, y, z] = [0, 0, 0];
    for (const [dx, dy, dz] of this.#vertices()) [x, y, z] = [x + dx, y + dy, z + dz];
    const isBalanced = x === 0 && y === 0 && z === 0;
    const center: Vector = isBalanced ? [1, 0, 0] : unit([x, y, z]);
    let radius = 0;
    for (const vertex of this.#vertices()) radius = Math.max(radius, angleBetween(center, vertex));
    // Within less than a hemisphere no arc and no smaller side of a ring leaves the cap.
    const isSmall = radius < 1.5 && !this.polygons.some(({ outer }) => outer.isLarge);
    return { center, radius: isSmall ? radius + TOUCH : Math.PI };
  }

  #isFar({ bound }: Shape): boolean {
    return angleBetween(this.bound.center, bound.center) > this.bound.radius + bound.radius + TOUCH;
  }

  /** Whether it has few enough edges to compare with cells. */
  get isSimple(): boolean {
    const rings = this.polygons.flatMap(ringsOf);
    const edges = [...this.lines, ...rings.map(({ vertices }) => vertices)];
    return edges.reduce((sum, { length }) => sum + length, 0) <= MOST_COVERED;
  }

  /** Whether a point is part of the shape. */
  holds(p: Vector): boolean {
    if (angleBetween(this.bound.center, p) > this.bound.radius + TOUCH) return false;
    spend(this.points.length + 1);
    return (
      this.points.some((each) => angleBetween(each, p) <= TOUCH) ||
      this.polygons.some((polygon) => polygonHolds(polygon, p)) ||
      this.#touches(p)
    );
  }

  #touches(p: Vector): boolean {
    for (const [a, b] of this.#arcs()) if (angleToArc(p, a, b) <= TOUCH) return true;
    return false;
  }

  /** Whether two shapes have a common point. */
  meets(other: Shape): boolean {
    if (this.#isFar(other)) return false;
    // A part without edges in the other one can only meet it at a vertex.
    for (const vertex of this.#vertices()) if (other.holds(vertex)) return true;
    for (const vertex of other.#vertices()) if (this.holds(vertex)) return true;
    const others = [...other.#arcs()];
    for (const [a, b] of this.#arcs()) {
      spend(others.length);
      for (const arc of others) if (arcsMeet(a, b, arc)) return true;
    }
    return false;
  }

  /** Whether the shape lies within the polygons of another. */
  isWithin(region: Shape): boolean {
    if (this.#isFar(region)) return false;
    if (!this.points.every((p) => region.holds(p))) return false;
    const within = (arc: Arc) => region.polygons.some((polygon) => polygonHoldsArc(polygon, arc));
    for (const arc of this.#arcs()) if (!within(arc)) return false;
    return this.polygons.every((own) => !region.polygons.some(({ holes }) => holes.some(isHoleIn(own))));
  }

  /** The angle between a point and the nearest point of the shape, radians. */
  angleTo(p: Vector): number {
    return this.encloses(p) ? 0 : this.angleToEdge(p);
  }

  /** Whether a point is in one of its polygons; for points on an edge either answer is allowed. */
  encloses(p: Vector): boolean {
    return this.polygons.some(
      ({ outer, holes }) => outer.encloses(p) && !holes.some((hole) => hole.encloses(p)),
    );
  }

  /** The angle between a point and the nearest point, line or edge, radians. */
  angleToEdge(p: Vector): number {
    let nearest = Number.POSITIVE_INFINITY;
    spend(this.points.length);
    for (const each of this.points) nearest = Math.min(nearest, angleBetween(each, p));
    for (const [a, b] of this.#arcs()) nearest = Math.min(nearest, angleToArc(p, a, b));
    return nearest;
  }

  /** The angle between a point and the farthest vertex of the shape, radians. */
  angleToEnd(p: Vector): number {
    let farthest = 0;
    for (const vertex of this.#vertices()) farthest = Math.max(farthest, angleBetween(vertex, p));
    return farthest;
  }
}

function ringsOf({ outer, holes }: Polygon): readonly Ring[] {
  return [outer, ...holes];
}

function polygonHolds(polygon: Polygon, p: Vector): boolean {
  if (ringsOf(polygon).some((ring) => ring.touches(p))) return true;
  return polygon.outer.encloses(p) && !polygon.holes.some((hole) => hole.encloses(p));
}

function polygonHoldsArc(polygon: Polygon, [a, b]: Arc): boolean {
  const middle = unit([a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
  if (![a, b, middle].every((p) => polygonHolds(polygon, p))) return false;
  // Because of rounding, arcs that share an end, or where one ends on the other, seem to cross.
  const isCrossed = (arc: Arc) => arcsCross(a, b, arc) && !arcsTouch(a, b, arc);
  return !ringsOf(polygon).some((ring) => ring.arcs().some(isCrossed));
}

/** Whether a hole lies in the area of a polygon, assuming their edges do not cross. */
function isHoleIn(own: Polygon): (hole: Ring) => boolean {
  return (hole) => {
    const inner = new Set(hole.vertices.filter((vertex) => !own.outer.touches(vertex)));
    const isCovered = inner.size > 0 && [...inner].every((vertex) => own.outer.encloses(vertex));
    return isCovered && !own.holes.some((other) => [...inner].every((vertex) => other.encloses(vertex)));
  };
}
