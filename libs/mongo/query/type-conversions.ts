/** Operators on types and type conversions. */
import { type Document, Double, ObjectId, Timestamp } from 'bson';
import { CommandError } from '../command-error.ts';
import { isNumber, isTrue, plainNumber, toType } from '../values/numbers.ts';
import { isNil, typeNameOf } from '../values/type-names.ts';
import { args, evalExpr, strict } from './expression-kinds.ts';
import type { Expression } from './mingo-library.ts';
import { parseDate } from './operators/date-texts.ts';
import { momentOf } from './operators/time-zones.ts';

export const TYPES: Record<string, Expression> = {
  $type: (document, argument, options) => typeNameOf(args(document, argument, options)[0]),
  $isNumber: (document, argument, options) => isNumber(args(document, argument, options)[0]),
  $toBool: strict(([value]) => isTrue(value)),
  ...Object.fromEntries(
    (['int', 'long', 'double', 'decimal', 'string', 'objectId', 'date'] as const).map((type) => [
      `$to${type[0]?.toUpperCase()}${type.slice(1)}`,
      strict(([value]) => converted(value, type)),
    ]),
  ),
  $convert: (document, argument, options) => {
    const { input, to, onError, onNull } = argument as Document;
    const value = evalExpr(document, input, options);
    if (isNil(value)) return evalExpr(document, onNull ?? null, options);
    try {
      return converted(value, typeOf(evalExpr(document, to, options)));
    } catch (error) {
      if (onError === undefined) throw error;
      return evalExpr(document, onError, options);
    }
  },
};

/** The result types of $convert, by their numbers. */
const TYPE_NUMBERS = new Map([
  [1, 'double'],
  [2, 'string'],
  [7, 'objectId'],
  [8, 'bool'],
  [9, 'date'],
  [16, 'int'],
  [18, 'long'],
  [19, 'decimal'],
]);

function typeOf(wanted: unknown): string {
  const type = isNumber(wanted) ? TYPE_NUMBERS.get(plainNumber(wanted)) : wanted;
  if (typeof type === 'string' && [...TYPE_NUMBERS.values()].includes(type)) return type;
  throw new CommandError('BadValue', `Unknown type name: ${String(wanted)}`);
}

/** Converts milliseconds, a date string, an ObjectId or a timestamp to a Date. */
function toDate(value: unknown, fail: () => CommandError): Date {
  if (typeof value === 'string') return new Date(parseDate(value));
  if (isNumber(value) && typeNameOf(value) !== 'int') {
    const date = new Date(Math.trunc(plainNumber(value)));
    if (!Number.isNaN(date.getTime())) return date;
  }
  if (value instanceof Date || value instanceof ObjectId || value instanceof Timestamp)
    return new Date(momentOf(value));
  throw fail();
}

function converted(value: unknown, type: string): unknown {
  const fail = () =>
    new CommandError(241, `Unsupported conversion from ${typeNameOf(value)} to ${type} in $convert`);
  if (type === 'bool') return isTrue(value);
  if (type === 'date') return toDate(value, fail);
  if (type === 'string') {
    if (value instanceof Date) return value.toISOString();
    if (value instanceof ObjectId) return value.toHexString();
    if (value instanceof Double) return String(value.value);
    if (isNumber(value) || typeof value === 'string' || typeof value === 'boolean') return String(value);
    throw fail();
  }
  if (type === 'objectId') {
    if (value instanceof ObjectId) return value;
    if (typeof value === 'string' && ObjectId.isValid(value) && value.length === 24)
      return new ObjectId(value);
    throw fail();
  }
  if (typeof value === 'boolean') return toType(Number(value), [], type);
  if (value instanceof Date && type !== 'int') return toType(Number(value), [], type);
  if (typeof value === 'string') {
    if (value.trim() !== value || value === '' || Number.isNaN(Number(value)))
      throw new CommandError(241, `Failed to parse number '${value}' in $convert with no onError value`);
    return toType(value, [], type);
  }
  if (!isNumber(value)) throw fail();
  return toType(value, [], type);
}
