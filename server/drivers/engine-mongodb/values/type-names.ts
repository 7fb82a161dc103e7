/** The types of BSON by their names and numbers. */
import { BSONSymbol, Decimal128, Double, Long, Timestamp } from 'bson';
import { CommandError } from '../command-error.ts';
import { TAG, tagOf } from './key-order.ts';

const NUMBERS: Readonly<Record<number, string>> = {
  1: 'double',
  2: 'string',
  3: 'object',
  4: 'array',
  5: 'binData',
  6: 'undefined',
  7: 'objectId',
  8: 'bool',
  9: 'date',
  10: 'null',
  11: 'regex',
  12: 'dbPointer',
  13: 'javascript',
  14: 'symbol',
  15: 'javascriptWithScope',
  16: 'int',
  17: 'timestamp',
  18: 'long',
  19: 'decimal',
  [-1]: 'minKey',
  127: 'maxKey',
};
const NAMES = new Set([...Object.values(NUMBERS), 'number']);

const BY_TAG: Readonly<Record<number, string>> = {
  [TAG.minKey]: 'minKey',
  [TAG.undefined]: 'missing',
  [TAG.null]: 'null',
  [TAG.string]: 'string',
  [TAG.object]: 'object',
  [TAG.array]: 'array',
  [TAG.binary]: 'binData',
  [TAG.objectId]: 'objectId',
  [TAG.boolean]: 'bool',
  [TAG.date]: 'date',
  [TAG.timestamp]: 'timestamp',
  [TAG.regex]: 'regex',
  [TAG.code]: 'javascript',
  [TAG.codeWithScope]: 'javascriptWithScope',
  [TAG.maxKey]: 'maxKey',
};

/** The name of a value's type, as `$type` of an aggregation gives it. */
export function typeNameOf(value: unknown): string {
  const tag = tagOf(value);
  if (tag === TAG.number) return numberTypeOf(value);
  return value instanceof BSONSymbol ? 'symbol' : (BY_TAG[tag] ?? 'object');
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

/** Whether a plain number stands for an Int32. */
export function isInt(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

/** The names that `$type` of a filter lists. Throws CommandError. */
export function readTypes(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) throw new CommandError('FailedToParse', '$type must match at least one type');
  return list.map((each) => {
    const name = typeof each === 'string' ? each : NUMBERS[Number(each)];
    if (name === undefined || !NAMES.has(name)) {
      throw new CommandError('BadValue', `Unknown type name alias: ${String(each)}`);
    }
    return name;
  });
}

export function isOfType(value: unknown, name: string): boolean {
  if (value === undefined) return false;
  return name === 'number' ? tagOf(value) === TAG.number : typeNameOf(value) === name;
}
