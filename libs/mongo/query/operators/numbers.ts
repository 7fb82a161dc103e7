/** Operators on numbers with double results, on bits, and on the values of one list. */
import { Decimal128, Long } from 'bson';
import { CommandError } from '../../command-error.ts';
import {
  asDouble,
  asInteger,
  type BsonNumber,
  isNumber,
  plainNumber,
  wholeNumber,
} from '../../values/numbers.ts';
import { isNil, typeNameOf } from '../../values/type-names.ts';
import type { Operator } from './operator.ts';

export function numberOf(name: string, value: unknown, code = 28765): BsonNumber {
  if (isNumber(value)) return value;
  throw new CommandError(code, `${name} only supports numeric types, not ${typeNameOf(value)}`);
}

/** A double, or a Decimal128 if an operand is one. */
function real(result: number, operands: readonly BsonNumber[]): unknown {
  if (operands.some((each) => each instanceof Decimal128)) return Decimal128.fromString(String(result));
  return asDouble(result);
}

interface Domain {
  readonly code: number;
  readonly says: string;
  holds(x: number): boolean;
}

function unary(name: string, work: (x: number) => number, domain?: Domain): [string, Operator] {
  const run = ([value]: unknown[]) => {
    if (isNil(value)) return null;
    const number = numberOf(name, value);
    const x = plainNumber(number);
    if (domain !== undefined && !Number.isNaN(x) && !domain.holds(x))
      throw new CommandError(domain.code, `${name}'s argument must be ${domain.says}, but is ${x}`);
    return real(work(x), [number]);
  };
  return [name, { from: 1, to: 1, work: run }];
}

const isPositive = (code: number): Domain => ({ code, says: 'a positive number', holds: (x) => x > 0 });
const isWithin = (low: number, high: number): Domain => ({
  code: 50989,
  says: `in [${low},${high}]`,
  holds: (x) => x >= low && x <= high,
});
const finite: Domain = { code: 50989, says: 'in (-inf,inf)', holds: Number.isFinite };

function logarithm([value, base]: unknown[]): unknown {
  if (isNil(value) || isNil(base)) return null;
  const [number, by] = [numberOf("$log's argument", value, 28756), numberOf("$log's base", base, 28757)];
  const [x, b] = [plainNumber(number), plainNumber(by)];
  if (!(x > 0 || Number.isNaN(x)))
    throw new CommandError(28758, `$log's argument must be a positive number, but is ${x}`);
  if (!((b > 0 && b !== 1) || Number.isNaN(b)))
    throw new CommandError(28759, `$log's base must be a positive number not equal to 1, but is ${b}`);
  return real(Math.log(x) / Math.log(b), [number, by]);
}

function angleOf([y, x]: unknown[]): unknown {
  if (isNil(y) || isNil(x)) return null;
  const numbers = [numberOf('$atan2', y, 51044), numberOf('$atan2', x, 51045)] as const;
  return real(Math.atan2(plainNumber(numbers[0]), plainNumber(numbers[1])), numbers);
}

/** 32- or 64-bit integers; the result has the wider type. */
function bits(name: string, start: bigint, work: (a: bigint, b: bigint) => bigint): [string, Operator] {
  const run = (values: unknown[]) => {
    if (values.some(isNil)) return null;
    const wholes = values.map((value) => bitsOf(name, value));
    return asInteger(
      wholes.reduce(work, start),
      values.some((value) => value instanceof Long),
    );
  };
  return [name, { work: run }];
}

function bitsOf(name: string, value: unknown): bigint {
  const whole =
    typeNameOf(value) === 'int' || value instanceof Long ? wholeNumber(value as BsonNumber) : null;
  if (whole !== null) return whole;
  throw new CommandError(
    'TypeMismatch',
    `${name} only supports int and long operands, not ${typeNameOf(value)}`,
  );
}

/** Operators with operands in a row. */
export const NUMBERS: Readonly<Record<string, Operator>> = Object.fromEntries([
  unary('$exp', Math.exp),
  unary('$ln', Math.log, isPositive(28766)),
  unary('$log10', Math.log10, isPositive(28761)),
  unary('$sqrt', Math.sqrt, { code: 28714, says: 'greater than or equal to 0', holds: (x) => x >= 0 }),
  unary('$degreesToRadians', (x) => (x * Math.PI) / 180),
  unary('$radiansToDegrees', (x) => (x * 180) / Math.PI),
  unary('$sin', Math.sin, finite),
  unary('$cos', Math.cos, finite),
  unary('$tan', Math.tan, finite),
  unary('$asin', Math.asin, isWithin(-1, 1)),
  unary('$acos', Math.acos, isWithin(-1, 1)),
  unary('$atan', Math.atan),
  unary('$sinh', Math.sinh),
  unary('$cosh', Math.cosh),
  unary('$tanh', Math.tanh),
  unary('$asinh', Math.asinh),
  unary('$acosh', Math.acosh, isWithin(1, Number.POSITIVE_INFINITY)),
  unary('$atanh', Math.atanh, isWithin(-1, 1)),
  ['$log', { from: 2, to: 2, work: logarithm }],
  ['$atan2', { from: 2, to: 2, work: angleOf }],
  bits('$bitAnd', -1n, (a, b) => a & b),
  bits('$bitOr', 0n, (a, b) => a | b),
  bits('$bitXor', 0n, (a, b) => a ^ b),
  [
    '$bitNot',
    {
      from: 1,
      to: 1,
      work: ([value]: unknown[]) =>
        isNil(value) ? null : asInteger(~bitsOf('$bitNot', value), value instanceof Long),
    },
  ],
] as [string, Operator][]);
