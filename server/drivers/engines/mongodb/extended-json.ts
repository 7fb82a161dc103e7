/**
 * Documents as Extended JSON that keeps every type, and back. A plain number is an Int32, or a Double with a
 * fraction; all other numbers name their type.
 */
import { type Document, Double, EJSON, Long, serialize, Timestamp } from 'bson';
import { CommandError } from '../../../../libs/mongo/index.ts';

const INT32 = 2 ** 31;
/** Dates that ISO 8601 can express. */
const LAST_DATE = 253_402_300_799_999;

/** A value of a decoded document. */
export function exactJson(value: unknown): unknown {
  if (typeof value === 'number') return exactNumber(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Long && !(value instanceof Timestamp)) return { $numberLong: value.toString() };
  if (value instanceof Double) return exactDouble(value.value);
  if (value instanceof Date) return exactDate(value);
  if (Array.isArray(value)) return value.map(exactJson);
  if (value.constructor !== Object) return (EJSON.serialize({ value }, { relaxed: false }) as Document).value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([name, inner]) => [name, exactJson(inner)]));
}

function exactNumber(value: number): unknown {
  if (!Number.isInteger(value) || Object.is(value, -0))
    return Number.isFinite(value) && value !== 0 ? value : exactDouble(value);
  return value >= -INT32 && value < INT32 ? value : exactDouble(value);
}

function exactDouble(value: number): unknown {
  return EJSON.serialize({ value: new Double(value) }, { relaxed: false }).value;
}

function exactDate(value: Date): unknown {
  const ms = value.getTime();
  return { $date: ms >= 0 && ms <= LAST_DATE ? value.toISOString() : { $numberLong: String(ms) } };
}

/** The bytes of a document. Throws CommandError for invalid Extended JSON. */
export function bsonOf(document: unknown): Uint8Array {
  try {
    const found = EJSON.deserialize(inVersion2(document) as Document, { relaxed: false });
    assertDates(found);
    return serialize(found, { ignoreUndefined: true });
  } catch (error) {
    throw new CommandError('FailedToParse', `not valid Extended JSON: ${(error as Error).message}`);
  }
}

/**
 * Rewrites the forms of Extended JSON version 1 that version 2 lacks: `{"$binary": "…", "$type": "00"}` and
 * `{"$date": 0}`, which mongoexport wrote up to MongoDB 4.0. The `legacy` option of EJSON refuses forms of
 * version 2, and stores large numbers as another type.
 */
function inVersion2(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inVersion2);
  const names = Object.keys(value);
  const { $binary, $type, $date } = value as Readonly<Record<string, unknown>>;
  if (names.length === 2 && typeof $binary === 'string' && $type !== undefined) {
    const subType = typeof $type === 'number' ? $type.toString(16) : $type;
    return { $binary: { base64: $binary, subType } };
  }
  if (names.length === 1 && Number.isSafeInteger($date)) return { $date: { $numberLong: String($date) } };
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inVersion2(inner)]));
}

/** An invalid date would be stored as 1970. */
function assertDates(value: unknown): void {
  if (value instanceof Date && Number.isNaN(value.getTime())) throw new Error('$date is not a date');
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value) || value.constructor === Object)
    for (const inner of Object.values(value)) assertDates(inner);
}
