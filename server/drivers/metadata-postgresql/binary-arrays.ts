/**
 * Arrays in PostgreSQL's binary format (array_recv). As text, each byte of a small object would be
 * two digits, escaped and copied several times.
 */
import type { SqlValue } from '../../metadata/metadata.ts';

/** OIDs of types sent in this format (pg_type.dat). */
const OIDS: Readonly<Record<string, number>> = { bytea: 17, bigint: 20, text: 25 };
const INT8_BYTES = 8;
/** Number of dimensions, flags, type, length, lower bound. */
const HEAD_BYTES = 20;
const LENGTH_BYTES = 4;

/** An array of PostgreSQL's `type`; null: send its elements as text. */
export function binaryArray(type: string, values: readonly SqlValue[]): Buffer | null {
  const oid = OIDS[type];
  if (oid === undefined || !values.every((value) => value === null || fits(type, value))) return null;
  let bytes = HEAD_BYTES;
  for (const value of values) bytes += LENGTH_BYTES + sizeOf(value);
  const array = Buffer.allocUnsafe(bytes);
  const hasNulls = values.includes(null);
  let at = 0;
  for (const word of [1, hasNulls ? 1 : 0, oid, values.length, 1]) at = array.writeInt32BE(word, at);
  for (const value of values) {
    at = array.writeInt32BE(value === null ? -1 : sizeOf(value), at);
    if (typeof value === 'string') at += array.write(value, at);
    else if (value instanceof Uint8Array) {
      array.set(value, at);
      at += value.length;
    } else if (value !== null) at = array.writeBigInt64BE(BigInt(value), at);
  }
  return array;
}

function fits(type: string, value: SqlValue): boolean {
  if (type === 'text') return typeof value === 'string';
  if (type === 'bytea') return value instanceof Uint8Array;
  return typeof value === 'bigint' || Number.isSafeInteger(value);
}

function sizeOf(value: SqlValue): number {
  if (value === null) return 0;
  if (typeof value === 'string') return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.length : INT8_BYTES;
}
