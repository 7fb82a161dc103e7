/**
 * The order of a document's fields. JavaScript orders integer names first, so a document with such
 * a name elsewhere stores its order under a symbol, which copies keep.
 */
import type { Document } from 'bson';

const ORDER = Symbol('order of fields');

interface Order {
  /** The document that may add names; copies create their own list. */
  readonly owner: Document;
  readonly names: string[];
}

type Ordered = Document & { [ORDER]?: Order };

/** JavaScript orders such names first, by number. */
const WHOLE = /^(?:0|[1-9]\d{0,9})$/;

/** Whether any document of this process needs its own field order: most do not. */
let isUsed = false;

export function hasWholeName(document: Document): boolean {
  for (const name in document) return WHOLE.test(name);
  return false;
}

/** Whether documents in a value may have their own order. */
export function mayHaveOrder(value: unknown): boolean {
  return isUsed && typeof value === 'object' && value !== null;
}

/** The names of a document in their order. */
export function namesOf(document: Document): string[] {
  const order = (document as Ordered)[ORDER];
  const names = Object.keys(document);
  if (order === undefined) return names;
  const there = new Set(names);
  const known = new Set(order.names.filter((name) => there.has(name)));
  return [...known, ...names.filter((name) => !known.has(name))];
}

export function entriesOf(document: Document): [string, unknown][] {
  return namesOf(document).map((name) => [name, document[name]]);
}

/** Sets the order of the document's fields. */
export function setOrder(document: Document, names: readonly string[]): void {
  isUsed = true;
  (document as Ordered)[ORDER] = { owner: document, names: [...names] };
}

/** Sets a field, appending a new one. No name is special, not even `__proto__`. */
export function setField(document: Document, name: string, value: unknown): void {
  const order = (document as Ordered)[ORDER];
  if (order !== undefined || WHOLE.test(name)) keepOrder(document, name, order);
  if (name === '__proto__') {
    Object.defineProperty(document, name, { value, writable: true, enumerable: true, configurable: true });
  } else {
    document[name] = value;
  }
}

function keepOrder(document: Document, name: string, order: Order | undefined): void {
  // Elements of lists are set by their numbers too.
  if (Array.isArray(document) || Object.hasOwn(document, name)) return;
  if (order === undefined || order.owner !== document) setOrder(document, namesOf(document));
  (document as { [ORDER]: Order })[ORDER].names.push(name);
}

/** A document with these fields, in this order. */
export function documentOf(entries: Iterable<readonly [string, unknown]>): Document {
  const document: Document = {};
  for (const [name, value] of entries) setField(document, name, value);
  return document;
}

/** With the field first. */
export function withFirst(name: string, value: unknown, document: Document): Document {
  return documentOf([[name, value], ...entriesOf(document).filter(([each]) => each !== name)]);
}

/** The value with its field order kept for `bson`: ordered documents become maps. */
export function inOrder(value: unknown): unknown {
  if (!isUsed || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  if (value.constructor !== Object) return value;
  const document = value as Ordered;
  const entries = entriesOf(document).map(([name, inner]) => [name, inOrder(inner)] as const);
  return document[ORDER] === undefined ? Object.fromEntries(entries) : new Map(entries);
}
