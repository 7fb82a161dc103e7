/** `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`: bits of whole numbers and binary data. */
import { Binary } from 'bson';
import { CommandError } from '../command-error.ts';
import { isNumber, plainNumber, wholeNumber } from '../values/numbers.ts';

/** Numbers have 64 bits; higher positions repeat the sign bit. */
const SIGN_BIT = 63;
/** The highest bit position that a server accepts. */
const MOST_POSITION = 2 ** 31 - 1;

/** The operators and the required state of the bits. */
const OPERATORS: Readonly<Record<string, { readonly isSet: boolean; readonly isAny: boolean }>> = {
  $bitsAllSet: { isSet: true, isAny: false },
  $bitsAnySet: { isSet: true, isAny: true },
  $bitsAllClear: { isSet: false, isAny: false },
  $bitsAnyClear: { isSet: false, isAny: true },
};

export function isBitTest(operator: string): boolean {
  return Object.hasOwn(OPERATORS, operator);
}

/** Tests the bits of a value; values without bits never match. Throws CommandError. */
export function compileBitTest(operator: string, operand: unknown): (value: unknown) => boolean {
  const { isSet, isAny } = OPERATORS[operator] as (typeof OPERATORS)[string] & object;
  const positions = positionsOf(operator, operand);
  return (value) => {
    const bitAt = bitsOf(value);
    if (bitAt === null) return false;
    const holds = (position: number) => bitAt(position) === isSet;
    return isAny ? positions.some(holds) : positions.every(holds);
  };
}

function positionsOf(operator: string, operand: unknown): readonly number[] {
  if (Array.isArray(operand)) return operand.map((each) => positionOf(operator, each));
  const bitAt = bitsOf(operand);
  if (operand instanceof Binary) {
    const bits = Array.from({ length: operand.length() * 8 }, (_, position) => position);
    return bits.filter(bitAt as (position: number) => boolean);
  }
  if (!isNumber(operand))
    throw new CommandError('BadValue', `${operator} takes an Array, a number, or a BinData`);
  if (bitAt === null || plainNumber(operand) < 0)
    throw new CommandError('FailedToParse', `Expected a non-negative integer in: ${operator}`);
  return Array.from({ length: SIGN_BIT }, (_, position) => position).filter(bitAt);
}

function positionOf(operator: string, value: unknown): number {
  const position = isNumber(value) ? plainNumber(value) : Number.NaN;
  if (Number.isInteger(position) && position >= 0 && position <= MOST_POSITION) return position;
  throw new CommandError(
    'BadValue',
    `Failed to parse bit position of ${operator}: expected an integer from 0 to ${MOST_POSITION}`,
  );
}

/** Reads bits of a value, the lowest at position 0; null: it has no bits. */
function bitsOf(value: unknown): ((position: number) => boolean) | null {
  if (value instanceof Binary) {
    const bytes = value.value();
    return (position) => (((bytes[position >> 3] ?? 0) >> (position & 7)) & 1) === 1;
  }
  const whole = isNumber(value) ? wholeNumber(value) : null;
  if (whole === null) return null;
  return (position) => ((whole >> BigInt(Math.min(position, SIGN_BIT))) & 1n) === 1n;
}
