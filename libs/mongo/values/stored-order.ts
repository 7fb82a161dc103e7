/** The field order in a document's bytes. */
import type { Document } from 'bson';
import { hasWholeName, setOrder } from './field-order.ts';
import { BEYOND_LENGTH, FIXED_BYTES, REGEX } from './value-sizes.ts';

const DOCUMENT = 3;
const ARRAY = 4;

/** Gives a decoded document, and nested ones, the field order of its bytes. */
export function keepStoredOrder(document: Document, bytes: Uint8Array): void {
  orderAt(document, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
}

function orderAt(value: unknown, bytes: Buffer, start: number): void {
  const end = start + bytes.readInt32LE(start) - 1;
  const names: string[] = [];
  for (let at = start + 4; at < end; ) {
    const type = bytes[at] as number;
    const nameEnd = bytes.indexOf(0, at + 1);
    const name = bytes.toString('utf8', at + 1, nameEnd);
    names.push(name);
    const from = nameEnd + 1;
    const inner: unknown = Object.hasOwn(value as object, name) ? (value as Document)[name] : undefined;
    const isNested = (type === DOCUMENT || type === ARRAY) && typeof inner === 'object' && inner !== null;
    if (isNested && !ArrayBuffer.isView(Array.isArray(inner) ? inner[0] : inner)) orderAt(inner, bytes, from);
    at = from + sizeOf(bytes, type, from);
  }
  if (Array.isArray(value) || !hasWholeName(value as Document)) return;
  const others = Object.keys(value as Document);
  if (names.some((name, i) => name !== others[i])) setOrder(value as Document, names);
}

function sizeOf(bytes: Buffer, type: number, at: number): number {
  const fixed = FIXED_BYTES[type];
  if (fixed !== undefined) return fixed;
  if (type === REGEX) return bytes.indexOf(0, bytes.indexOf(0, at) + 1) + 1 - at;
  return bytes.readInt32LE(at) + (BEYOND_LENGTH[type] ?? 0);
}
