/**
 * Arithmetic with MongoDB's types: an Int32 that overflows becomes a Long; the result is a Double
 * if an operand is one, and a Decimal128 likewise.
 */
import { Decimal128, Double, Long } from 'bson';
import { CommandError } from '../command-error.ts';
import { readDecimal, toDecimal128 } from './decimal-numbers.ts';
import { TAG, tagOf } from './key-order.ts';
import { isInt, numberTypeOf } from './type-names.ts';

export type BsonNumber = number | Double | Long | Decimal128;
export type Operation = 'add' | 'subtract' | 'multiply';

export function isNumber(value: unknown): value is BsonNumber {
  return tagOf(value) === TAG.number;
}

/** The nearest JavaScript number; NaN for other values. */
export function plainNumber(value: unknown): number {
  if (typeof value === 'number') return value;
  if (value instanceof Double) return value.value;
  if (value instanceof Long) return Number(value.toBigInt());
  return value instanceof Decimal128 ? Number(value.toString()) : Number.NaN;
}

/** The value as a 64-bit integer; null: not an integer. A Decimal128 is rounded, as by a server. */
export function wholeNumber(value: BsonNumber): bigint | null {
  if (value instanceof Long) return value.toBigInt();
  const number = plainNumber(value);
  const near = value instanceof Decimal128 ? Math.round(number) : number;
  if (!Number.isInteger(near)) return null;
  const whole = BigInt(near);
  return BigInt.asIntN(64, whole) === whole ? whole : null;
}

/** Truth value of an expression. */
export function isTrue(value: unknown): boolean {
  return !(
    value === undefined ||
    value === null ||
    value === false ||
    (tagOf(value) === TAG.number && plainNumber(value) === 0)
  );
}

/** A Double, whatever its value. */
export function asDouble(value: number): number | Double {
  return isInt(value) ? new Double(value) : value;
}

/** An Int32 if it fits, else a Long. Throws CommandError beyond 64 bits. */
export function asInteger(value: bigint, isLong: boolean): number | Long {
  if (!isLong && BigInt.asIntN(32, value) === value) return Number(value);
  if (BigInt.asIntN(64, value) === value) return Long.fromBigInt(value);
  throw new CommandError('Overflow', 'integer overflow');
}

const DOUBLES: Readonly<Record<Operation, (a: number, b: number) => number>> = {
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
};
const INTEGERS: Readonly<Record<Operation, (a: bigint, b: bigint) => bigint>> = {
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
};

/** `a` + `b` etc. Whole numbers beyond 64 bits become a Double, as in aggregations. */
export function calculate(operation: Operation, a: BsonNumber, b: BsonNumber): BsonNumber {
  const types = [numberTypeOf(a), numberTypeOf(b)];
  if (types.includes('decimal')) return calculateDecimal(operation, a, b);
  if (types.includes('double')) return asDouble(DOUBLES[operation](plainNumber(a), plainNumber(b)));
  if (typeof a === 'number' && typeof b === 'number') {
    const result = DOUBLES[operation](a, b);
    if (Number.isSafeInteger(result)) return isInt(result) ? result : Long.fromNumber(result + 0);
  }
  const result = INTEGERS[operation](bigOf(a), bigOf(b));
  if (BigInt.asIntN(64, result) !== result) return asDouble(Number(result));
  return asInteger(result, types.includes('long'));
}

function bigOf(value: BsonNumber): bigint {
  return value instanceof Long ? value.toBigInt() : BigInt(plainNumber(value));
}

export function asDecimal(value: BsonNumber): Decimal128 {
  if (value instanceof Decimal128) return value;
  if (value instanceof Long) return Decimal128.fromString(value.toString());
  const number = plainNumber(value);
  // 15 digits, as the server keeps for a double.
  return Decimal128.fromString(
    isInt(number) || !Number.isFinite(number) ? String(number) : number.toPrecision(15),
  );
}

function calculateDecimal(operation: Operation, a: BsonNumber, b: BsonNumber): Decimal128 {
  const [left, right] = [readDecimal(asDecimal(a)), readDecimal(asDecimal(b))];
  if (left.kind !== 'finite' || right.kind !== 'finite') {
    return Decimal128.fromString(String(DOUBLES[operation](plainNumber(a), plainNumber(b))));
  }
  if (operation === 'multiply') {
    return toDecimal128(left.coefficient * right.coefficient, left.exponent + right.exponent);
  }
  const exponent = Math.min(left.exponent, right.exponent);
  const scaled = [left, right].map((each) => each.coefficient * 10n ** BigInt(each.exponent - exponent));
  return toDecimal128(INTEGERS[operation](scaled[0] as bigint, scaled[1] as bigint), exponent);
}

/** `a` / `b`: a Double, or a Decimal128 if one is. Throws CommandError for division by zero. */
export function divide(a: BsonNumber, b: BsonNumber): BsonNumber {
  if (plainNumber(b) === 0) throw new CommandError('BadValue', "can't $divide by zero");
  if (!(a instanceof Decimal128) && !(b instanceof Decimal128))
    return asDouble(plainNumber(a) / plainNumber(b));
  const [left, right] = [readDecimal(asDecimal(a)), readDecimal(asDecimal(b))];
  if (left.kind !== 'finite' || right.kind !== 'finite') {
    return Decimal128.fromString(String(plainNumber(a) / plainNumber(b)));
  }
  // The digits of a Decimal128 and two more for rounding.
  const shift = 36 + String(right.coefficient).length;
  const whole = left.coefficient * 10n ** BigInt(shift);
  const quotient = whole / right.coefficient;
  if (quotient * right.coefficient !== whole)
    return toDecimal128(quotient, left.exponent - right.exponent - shift);
  const digits = String(quotient);
  const zeros = Math.min(shift, digits.length - digits.replace(/0+$/, '').length);
  return toDecimal128(quotient / 10n ** BigInt(zeros), left.exponent - right.exponent - shift + zeros);
}

/**
 * A value as a number of a type: the widest of `like`, or the named one. Throws CommandError if it
 * does not fit.
 */
export function toType(value: BsonNumber | string, like: readonly BsonNumber[], name?: string): BsonNumber {
  const types = like.map(numberTypeOf);
  const type = name ?? (['decimal', 'double', 'long'] as const).find((each) => types.includes(each)) ?? 'int';
  if (type === 'decimal') return typeof value === 'string' ? Decimal128.fromString(value) : asDecimal(value);
  if (type === 'double') return asDouble(Number(typeof value === 'string' ? value : plainNumber(value)));
  if (type !== 'int' && type !== 'long') throw new CommandError('BadValue', `Unknown type name: ${type}`);
  const whole = value instanceof Long ? value.toBigInt() : wholeOf(value);
  if (name === 'int' && BigInt.asIntN(32, whole) !== whole)
    throw new CommandError(241, 'Conversion would overflow target type in $convert with no onError value');
  return asInteger(whole, type === 'long');
}

function wholeOf(value: BsonNumber | string): bigint {
  if (typeof value === 'string' && /^[+-]?\d+$/.test(value)) return BigInt(value);
  const number = Math.trunc(typeof value === 'string' ? Number.NaN : plainNumber(value));
  if (Number.isFinite(number)) return BigInt(number);
  throw new CommandError(241, 'A value that is not a whole number in $convert with no onError value');
}
