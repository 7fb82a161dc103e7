/** The types of BSON by their names and numbers. */
import { BSONSymbol, Decimal128, Double, Long, Timestamp } from 'bson';
import { CommandError } from '../command-error.ts';
import { TAG, tagOf } from './key-order.ts';

/** Number, name, and the key tag of types that have one. */
const TYPES: readonly (readonly [number, string, number?])[] = [
  [1, 'double'],
  [2, 'string', TAG.string],
  [3, 'object', TAG.object],
  [4, 'array', TAG.array],
  [5, 'binData', TAG.binary],
  [6, 'undefined'],
  [7, 'objectId', TAG.objectId],
  [8, 'bool', TAG.boolean],
  [9, 'date', TAG.date],
  [10, 'null', TAG.null],
  [11, 'regex', TAG.regex],
  [13, 'javascript', TAG.code],
  [14, 'symbol'],
  [15, 'javascriptWithScope', TAG.codeWithScope],
  [16, 'int'],
  [17, 'timestamp', TAG.timestamp],
  [18, 'long'],
  [19, 'decimal'],
  [-1, 'minKey', TAG.minKey],
  [127, 'maxKey', TAG.maxKey],
];
const NUMBERS = new Map(TYPES.map(([number, name]) => [number, name]));
const NAMES = new Set([...NUMBERS.values(), 'number']);
const BY_TAG = new Map([...TYPES.map(([, name, tag]) => [tag, name] as const), [TAG.undefined, 'missing']]);

/** Null or missing. */
export const isNil = (value: unknown) => value === null || value === undefined;

/** The name of a value's type, as returned by `$type` in aggregations. */
export function typeNameOf(value: unknown): string {
  const tag = tagOf(value);
  if (tag === TAG.number) return numberTypeOf(value);
  return value instanceof BSONSymbol ? 'symbol' : (BY_TAG.get(tag) ?? 'object');
}

/** `int`, `long`, `double` or `decimal`. */
export function numberTypeOf(value: unknown): 'int' | 'long' | 'double' | 'decimal' {
  if (typeof value === 'number') return isInt(value) ? 'int' : 'double';
  if (value instanceof Decimal128) return 'decimal';
  return value instanceof Double || value instanceof Timestamp
    ? 'double'
    : value instanceof Long
      ? 'long'
      : 'int';
}

/** Whether a plain number is an Int32. */
export function isInt(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

/** The names that `$type` of a filter lists. Throws CommandError. */
export function readTypes(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) throw new CommandError('FailedToParse', '$type must match at least one type');
  return list.map((each) => {
    const name = typeof each === 'string' ? each : NUMBERS.get(Number(each));
    if (name === undefined || !NAMES.has(name))
      throw new CommandError('BadValue', `Unknown type name alias: ${String(each)}`);
    return name;
  });
}

export function isOfType(value: unknown, name: string): boolean {
  if (value === undefined) return false;
  return name === 'number' ? tagOf(value) === TAG.number : typeNameOf(value) === name;
}
