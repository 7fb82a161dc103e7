/**
 * The side of a great circle that a point lies on, without rounding errors: even a ring as thin as
 * coordinates allow has an inside. Methods of Shewchuk (1997) and of the S2 library: an estimate
 * with an error bound first, whole numbers if that does not decide.
 */
import { spend } from '../command-time.ts';
import type { Vector } from './sphere.ts';

/** For unit vectors, by the analysis of S2's `s2pred::TriageSign`: 1.8274 × 2⁻⁵¹, rounded up. */
export const TRIAGE_ERROR = 1e-15;
/** Likewise for `StableSign`, 3.2321 × 2⁻⁵², multiplied by the product of two lengths. */
const STABLE_ERROR = 8e-16;
/** Products below it have lost digits. */
const SMALLEST = 1e-290;
const EXACT_STEPS = 40;

/** Above 0: `c` is left of the path from `a` to `b`; 0: on its great circle. The magnitude has no meaning. */
export function sideOf(a: Vector, b: Vector, c: Vector): number {
  const rough =
    (a[1] * b[2] - a[2] * b[1]) * c[0] +
    (a[2] * b[0] - a[0] * b[2]) * c[1] +
    (a[0] * b[1] - a[1] * b[0]) * c[2];
  if (rough > TRIAGE_ERROR || rough < -TRIAGE_ERROR) return rough;
  return stableSide(a, b, c) || exactSide(a, b, c);
}

/** 0: unknown. Uses the triangle's two shorter sides, from their corner, to lose least precision. */
function stableSide(a: Vector, b: Vector, c: Vector): number {
  const [ab, bc, ca] = [distance(a, b), distance(b, c), distance(c, a)];
  const [from, to, corner, product] =
    ab >= bc && ab >= ca ? [a, b, c, ca * bc] : bc >= ca ? [b, c, a, ab * ca] : [c, a, b, bc * ab];
  const [x1, y1, z1] = [from[0] - corner[0], from[1] - corner[1], from[2] - corner[2]];
  const [x2, y2, z2] = [to[0] - corner[0], to[1] - corner[1], to[2] - corner[2]];
  const [x, y, z] = corner;
  const determinant = (y1 * z2 - z1 * y2) * x + (z1 * x2 - x1 * z2) * y + (x1 * y2 - y1 * x2) * z;
  return Math.abs(determinant) > STABLE_ERROR * product + SMALLEST ? determinant : 0;
}

function distance(a: Vector, b: Vector): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

function exactSide(a: Vector, b: Vector, c: Vector): number {
  spend(EXACT_STEPS);
  const [ax, ay, az, bx, by, bz, cx, cy, cz] = wholeNumbers([...a, ...b, ...c]) as Nine;
  const determinant = (ay * bz - az * by) * cx + (az * bx - ax * bz) * cy + (ax * by - ay * bx) * cz;
  return determinant > 0n ? 1 : determinant < 0n ? -1 : 0;
}

type Nine = [bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint];

const double = new DataView(new ArrayBuffer(8));

/** Numbers as integer multiples of one power of two. */
function wholeNumbers(numbers: readonly number[]): bigint[] {
  const parts = numbers.map((number) => {
    double.setFloat64(0, number);
    const high = double.getUint32(0);
    const exponent = (high >>> 20) & 0x7ff;
    const fraction = (BigInt(high & 0xfffff) << 32n) | BigInt(double.getUint32(4));
    const size = exponent === 0 ? fraction : fraction | (1n << 52n);
    return { whole: number < 0 ? -size : size, exponent: Math.max(1, exponent) };
  });
  const least = parts.reduce(
    (low, { whole, exponent }) => (whole === 0n ? low : Math.min(low, exponent)),
    2047,
  );
  return parts.map(({ whole, exponent }) => (whole === 0n ? 0n : whole << BigInt(exponent - least)));
}
