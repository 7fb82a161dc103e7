/** Long and Decimal128 as exact decimal numbers. */
import { Decimal128, type Long } from 'bson';

const PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:E([+-]?\d+))?$/;
const DOUBLE = new DataView(new ArrayBuffer(8));

export interface NotFinite {
  readonly kind: 'not finite';
  /** NaN or an infinity. */
  readonly number: number;
}

export function readDecimal(value: Decimal128 | Long): ExactNumber | NotFinite {
  const text = value.toString();
  const [, sign, whole = '', fraction = '', exponent = '0'] = PARTS.exec(text) ?? [];
  if (sign === undefined) return { kind: 'not finite', number: Number(text) };
  const digits = BigInt(whole + fraction);
  return new ExactNumber(sign === '' ? digits : -digits, Number(exponent) - fraction.length);
}

/** `coefficient` × 10 ^ `exponent`. */
class ExactNumber {
  readonly kind = 'finite';
  readonly coefficient: bigint;
  readonly exponent: number;

  constructor(coefficient: bigint, exponent: number) {
    this.coefficient = coefficient;
    this.exponent = exponent;
  }

  get isNegative(): boolean {
    return this.coefficient < 0n;
  }

  /** Without zeros at the end and without the sign. */
  get digits(): string {
    return String(this.coefficient).replace('-', '').replace(/0+$/, '');
  }

  /** The power of ten of the first digit. */
  get magnitude(): number {
    return String(this.coefficient).replace('-', '').length - 1 + this.exponent;
  }

  toNumber(): number {
    return Number(`${this.coefficient}e${this.exponent}`);
  }

  /** The greatest double that is not above it. */
  floor(): number {
    const nearest = this.toNumber();
    return this.compareTo(nearest) < 0 ? doubleBelow(nearest) : nearest;
  }

  isExactly(double: number): boolean {
    return this.compareTo(double) === 0;
  }

  /** Below 0: it is less than the double, which is not NaN. */
  compareTo(double: number): number {
    if (!Number.isFinite(double)) return double > 0 ? -1 : 1;
    // Whole numbers, the most common, need no shift.
    const [mantissa, power] = Number.isSafeInteger(double) ? [BigInt(double), 0] : partsOf(double);
    const left =
      this.coefficient * 10n ** BigInt(Math.max(this.exponent, 0)) * 2n ** BigInt(Math.max(-power, 0));
    const right = mantissa * 2n ** BigInt(Math.max(power, 0)) * 10n ** BigInt(Math.max(-this.exponent, 0));
    return left < right ? -1 : left > right ? 1 : 0;
  }
}

/** `mantissa` × 2 ^ `power`. */
function partsOf(double: number): [mantissa: bigint, power: number] {
  DOUBLE.setFloat64(0, double);
  const bits = DOUBLE.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const mantissa = exponent === 0 ? fraction : fraction | (1n << 52n);
  return [bits >> 63n ? -mantissa : mantissa, Math.max(exponent, 1) - 1075];
}

function doubleBelow(double: number): number {
  if (double === Number.POSITIVE_INFINITY) return Number.MAX_VALUE;
  if (double === 0) return -Number.MIN_VALUE;
  DOUBLE.setFloat64(0, double);
  DOUBLE.setBigInt64(0, DOUBLE.getBigInt64(0) + (double > 0 ? -1n : 1n));
  return DOUBLE.getFloat64(0);
}

/** Digits of a Decimal128. */
const PRECISION = 34;

/** The nearest Decimal128; ties go to the even digit. */
export function toDecimal128(coefficient: bigint, exponent: number): Decimal128 {
  let digits = coefficient < 0n ? -coefficient : coefficient;
  let power = exponent;
  const excess = String(digits).length - PRECISION;
  if (excess > 0) {
    const unit = 10n ** BigInt(excess);
    const [rest, half] = [digits % unit, unit / 2n];
    digits /= unit;
    if (rest > half || (rest === half && digits % 2n === 1n)) digits++;
    power += excess;
  }
  return Decimal128.fromString(`${coefficient < 0n ? '-' : ''}${digits}E${power}`);
}
