/** Resolves dotted paths like queries and indexes: through every element of an array. */
import type { Document } from 'bson';
import { spend } from '../command-time.ts';
import { setField } from './field-order.ts';

const DIGITS = /^\d+$/;

export function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && value.constructor === Object;
}

export function isIndex(part: string): boolean {
  return DIGITS.test(part);
}

/** The value of an own field, or undefined. */
function fieldOf(document: Document, name: string): unknown {
  return Object.hasOwn(document, name) ? document[name] : undefined;
}

/** All values at a path; undefined for a missing field. An array at the end is one value. */
export function leavesAt(value: unknown, path: readonly string[]): unknown[] {
  const [only] = path;
  if (path.length === 1 && only !== undefined && isDocument(value)) return [fieldOf(value, only)];
  const found: unknown[] = [];
  follow(value, { path, at: 0, found });
  return found;
}

interface Walk {
  readonly path: readonly string[];
  readonly at: number;
  readonly found: unknown[];
}

function follow(value: unknown, { path, at, found }: Walk): void {
  const part = path[at];
  if (part === undefined) {
    found.push(value);
  } else if (Array.isArray(value)) {
    const isElement = isIndex(part) && Number(part) < value.length;
    if (isElement) follow(value[Number(part)], { path, at: at + 1, found });
    for (const element of value) {
      if (isDocument(element) && (!isElement || Object.hasOwn(element, part)))
        follow(element, { path, at, found });
    }
  } else {
    const inner = isDocument(value) ? fieldOf(value, part) : undefined;
    if (inner === undefined) found.push(undefined);
    else follow(inner, { path, at: at + 1, found });
  }
}

/** Values that a condition is compared with: the leaves, and the elements of leaves that are arrays. */
export function candidatesOf(leaves: readonly unknown[]): readonly unknown[] {
  if (!leaves.some(Array.isArray)) return leaves;
  const candidates = leaves.flatMap((leaf) => (Array.isArray(leaf) ? [...leaf, leaf] : [leaf]));
  spend(candidates.length);
  return candidates;
}

/** The value at a path without arrays, as for `_id` and updates. */
export function valueAt(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const part of path) {
    if (isDocument(value)) value = fieldOf(value, part);
    else if (Array.isArray(value) && isIndex(part)) value = value[Number(part)];
    else return undefined;
  }
  return value;
}

/** A copy with another value at a path; undefined: without it. */
export function withValueAt(
  document: Document,
  [name = '', ...rest]: readonly string[],
  value: unknown,
): Document {
  const copy = { ...document };
  const inner = isDocument(document[name]) ? document[name] : {};
  if (rest.length > 0) setField(copy, name, withValueAt(inner, rest, value));
  else if (value === undefined) delete copy[name];
  else setField(copy, name, value);
  return copy;
}
