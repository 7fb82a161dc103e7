/**
 * Values of BSON as bytes whose order is MongoDB's order of the values, across types. Equal bytes mean equal
 * values: 1, 1.0, Long 1 and Decimal128 1.00 are one key. No key is the prefix of another, so keys of several
 * values are concatenated, and a descending one has its bits inverted.
 *
 * With a collation, equal bytes mean values that are equal in it, and texts have no order: only
 * `compareValues` can order two texts.
 */
import {
  Binary,
  BSONRegExp,
  BSONSymbol,
  Code,
  Decimal128,
  type Document,
  Double,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'bson';
import type { Collation } from './collations.ts';
import { readDecimal } from './decimal-numbers.ts';
import { entriesOf, namesOf } from './field-order.ts';

/** The first byte of a key, in the server's type order; 0 ends compound keys. */
export const TAG = {
  minKey: 1,
  undefined: 5,
  null: 10,
  number: 15,
  string: 20,
  object: 25,
  array: 30,
  binary: 35,
  objectId: 40,
  boolean: 45,
  date: 50,
  timestamp: 55,
  regex: 60,
  code: 70,
  codeWithScope: 75,
  maxKey: 127,
} as const;

const EXACT = 0;
const MORE = 1;
/** Beyond the exponents of Decimal128, so that it is never negative. */
const EXPONENT_OFFSET = 0x4000;

/** Grows on demand; keys are copied out of it. */
let buffer = Buffer.alloc(4096);
let length = 0;
/** Collation of the key being built. */
let keyCollation: Collation | null = null;

function reserve(bytes: number): void {
  if (length + bytes <= buffer.length) return;
  const larger = Buffer.alloc(Math.max(buffer.length * 2, length + bytes));
  buffer.copy(larger, 0, 0, length);
  buffer = larger;
}

function byte(value: number): void {
  reserve(1);
  buffer[length++] = value;
}

/** A key of values; `descending[i]` inverts the order of the i-th. */
export function keyOf(
  values: readonly unknown[],
  descending: readonly boolean[] = [],
  collation: Collation | null = null,
): Buffer {
  length = 0;
  keyCollation = collation;
  values.forEach((value, index) => {
    const start = length;
    write(value);
    if (descending[index]) for (let i = start; i < length; i++) buffer[i] = 255 - (buffer[i] as number);
  });
  const key = Buffer.from(buffer.subarray(0, length));
  // Frees a buffer after a huge value.
  if (buffer.length > 2 ** 20) buffer = Buffer.alloc(4096);
  return key;
}

/**
 * Keys in indexes have the fields in JavaScript's order, for compatibility; comparisons use the
 * fields' own order.
 */
let isInOrder = false;

function orderedKey(value: unknown, collation: Collation | null = null): Buffer {
  isInOrder = true;
  try {
    return keyOf([value], [], collation);
  } finally {
    isInOrder = false;
  }
}

/** The key of a value as text, for maps. */
export function textKeyOf(value: unknown, collation: Collation | null = null): string {
  return orderedKey(value, collation).toString('latin1');
}

/** Below 0: `a` comes before `b`. MongoDB's order, across types. */
export function compareValues(a: unknown, b: unknown, collation: Collation | null = null): number {
  if (a === b) return 0;
  if (collation !== null) return compareCollated(a, b, collation);
  if (typeof a === 'number' && typeof b === 'number') {
    if (a < b) return -1;
    if (a > b) return 1;
  }
  return Buffer.compare(orderedKey(a), orderedKey(b));
}

/** Whether a collation can affect comparisons of the value. */
export function holdsText(value: unknown): boolean {
  const tag = tagOf(value);
  return tag === TAG.string || tag === TAG.object || tag === TAG.array;
}

function compareCollated(a: unknown, b: unknown, collation: Collation): number {
  const tag = tagOf(a);
  if (tag !== tagOf(b)) return tag - tagOf(b);
  if (tag === TAG.string) return collation.compare(String(a), String(b));
  const isList = tag === TAG.array;
  if (!isList && tag !== TAG.object) return compareValues(a, b);
  // In the order of a key's bytes: for each field its type, name and value.
  const partsOf = (value: unknown) =>
    isList
      ? (value as unknown[])
      : entriesOf(value as Document).flatMap(([name, each]) => [tagOf(each), name, each]);
  const [one, other] = [partsOf(a), partsOf(b)];
  for (let i = 0; i < one.length && i < other.length; i++) {
    const order = compareValues(one[i], other[i], isList || i % 3 === 2 ? collation : null);
    if (order !== 0) return order;
  }
  return one.length - other.length;
}

export function equalValues(a: unknown, b: unknown, collation: Collation | null = null): boolean {
  if (a === b) return true;
  if (tagOf(a) !== tagOf(b)) return false;
  return collation === null ? compareValues(a, b) === 0 : textKeyOf(a, collation) === textKeyOf(b, collation);
}

/** The type under which a value is compared. */
export function tagOf(value: unknown): number {
  switch (typeof value) {
    case 'number':
      return TAG.number;
    case 'string':
      return TAG.string;
    case 'boolean':
      return TAG.boolean;
    case 'object':
      return value === null ? TAG.null : tagOfObject(value);
    default:
      return TAG.undefined;
  }
}

function tagOfObject(value: object): number {
  if (Array.isArray(value)) return TAG.array;
  if (value.constructor === Object) return TAG.object;
  if (value instanceof ObjectId) return TAG.objectId;
  if (value instanceof Date) return TAG.date;
  if (value instanceof Double || value instanceof Decimal128) return TAG.number;
  // Timestamp is a Long too.
  if (value instanceof Timestamp) return TAG.timestamp;
  if (value instanceof Long) return TAG.number;
  if (value instanceof Binary || value instanceof Uint8Array) return TAG.binary;
  if (value instanceof BSONRegExp || value instanceof RegExp) return TAG.regex;
  if (value instanceof BSONSymbol) return TAG.string;
  if (value instanceof Code) return value.scope ? TAG.codeWithScope : TAG.code;
  if (value instanceof MinKey) return TAG.minKey;
  if (value instanceof MaxKey) return TAG.maxKey;
  return TAG.object;
}

function write(value: unknown): void {
  const tag = tagOf(value);
  byte(tag);
  if (tag === TAG.number) writeNumber(value as number);
  else if (tag === TAG.string) writeText(keyCollation?.formOf(String(value)) ?? String(value));
  else if (tag === TAG.objectId) writeBytes((value as ObjectId).id);
  else if (tag === TAG.boolean) byte(value ? 1 : 0);
  else if (tag === TAG.object) writeFields(value as Document);
  else if (tag === TAG.array) writeAll(value as unknown[]);
  else if (tag === TAG.date) writeInteger(BigInt(Math.trunc(Number(value)) || 0));
  else if (tag === TAG.timestamp) writeUnsigned((value as Timestamp).toBigInt());
  else if (tag === TAG.binary) writeBinary(value as Binary);
  else if (tag === TAG.regex) writeRegex(value as BSONRegExp);
  else if (tag === TAG.code || tag === TAG.codeWithScope) writeCode(value as Code);
}

function writeBytes(bytes: Uint8Array): void {
  reserve(bytes.length);
  buffer.set(bytes, length);
  length += bytes.length;
}

/** UTF-8, terminated by 0; a 0 within is followed by 255. */
function writeText(text: string): void {
  reserve(text.length * 3 + 1);
  if (!text.includes('\0')) {
    length += buffer.write(text, length);
  } else {
    const bytes = Buffer.from(text);
    for (const one of bytes) {
      byte(one);
      if (one === 0) byte(255);
    }
  }
  byte(0);
}

function writeFields(document: Document): void {
  for (const name of isInOrder ? namesOf(document) : Object.keys(document)) {
    const value = document[name];
    // The server compares types first, then names, then values.
    byte(tagOf(value));
    writeText(name);
    write(value);
  }
  byte(0);
}

function writeAll(values: readonly unknown[]): void {
  for (const value of values) write(value);
  byte(0);
}

function writeUnsigned(value: bigint): void {
  reserve(8);
  buffer.writeBigUInt64BE(BigInt.asUintN(64, value), length);
  length += 8;
}

function writeInteger(value: bigint): void {
  writeUnsigned(value + (1n << 63n));
}

function writeBinary(value: Binary | Uint8Array): void {
  const bytes = value instanceof Binary ? value.value() : value;
  reserve(5);
  buffer.writeUInt32BE(bytes.length, length);
  length += 4;
  byte(value instanceof Binary ? value.sub_type : 0);
  writeBytes(bytes);
}

function writeRegex(value: BSONRegExp | RegExp): void {
  writeText(value instanceof RegExp ? value.source : value.pattern);
  writeText(value instanceof RegExp ? value.flags : value.options);
}

function writeCode({ code, scope }: Code): void {
  writeText(code);
  if (scope) writeFields(scope);
}

/**
 * The greatest double that is not above the number, then the difference to that double. NaN is the
 * smallest number.
 */
function writeNumber(value: number | Double | Long | Decimal128): void {
  if (typeof value === 'number') writeDouble(value, EXACT);
  else if (value instanceof Double) writeDouble(value.value, EXACT);
  else writeDecimal(readDecimal(value));
}

function writeDecimal(decimal: ReturnType<typeof readDecimal>): void {
  const floor = decimal.kind === 'finite' ? decimal.floor() : decimal.number;
  if (decimal.kind !== 'finite' || decimal.isExactly(floor)) {
    writeDouble(floor, EXACT);
    return;
  }
  writeDouble(floor, MORE);
  const start = length;
  reserve(3 + decimal.digits.length);
  buffer.writeUInt16BE(decimal.magnitude + EXPONENT_OFFSET, length);
  length += 2;
  length += buffer.write(decimal.digits, length, 'latin1');
  byte(0);
  if (decimal.isNegative) for (let i = start; i < length; i++) buffer[i] = 255 - (buffer[i] as number);
}

function writeDouble(value: number, suffix: number): void {
  reserve(9);
  if (Number.isNaN(value)) {
    buffer.fill(0, length, length + 9);
    length += 9;
    return;
  }
  // -0 is 0.
  buffer.writeDoubleBE(value === 0 ? 0 : value, length);
  const first = buffer[length] as number;
  if (first & 0x80) for (let i = length; i < length + 8; i++) buffer[i] = 255 - (buffer[i] as number);
  else buffer[length] = first | 0x80;
  length += 8;
  byte(suffix);
}
