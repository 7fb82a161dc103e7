/** The fields at a path of an update, with `$`, `$[]` and `$[name]`. */
import { type Document, EJSON } from 'bson';
import { CommandError } from '../../command-error.ts';
import { setField } from '../../values/field-order.ts';
import { isDocument, isIndex, valueAt } from '../../values/field-paths.ts';
import { compileFilter, type Filter, type FilterScope } from '../filter.ts';

/** A larger index is a mistake, and would fill the memory; same limit as a real server's. */
const MAX_PADDING = 1_500_000;

export interface Slot {
  readonly parent: Document | unknown[];
  readonly name: string;
}

interface PathContext {
  readonly document: Document;
  /** Filters of arrayFilters, by their identifiers. */
  readonly filters: ReadonlyMap<string, Filter>;
  /** Determines the element `$` refers to: the one that made the document match. */
  readonly filter: Document;
  /** The scope of the filter. */
  readonly scope?: FilterScope;
  /** Creates missing fields on the path. */
  readonly creates: boolean;
  /** For messages. */
  readonly path: string;
}

/** Throws CommandError for an impossible path. */
export function slotsOf(parts: readonly string[], context: PathContext): Slot[] {
  const slots: Slot[] = [];
  if (parts.some((part) => part === ''))
    throw new CommandError(56, `The update path '${context.path}' contains an empty field name`);
  // Other names with a dollar are ordinary fields, from version 5.0 on.
  if (parts[0] === '$' || parts[0]?.startsWith('$['))
    throw new CommandError(
      'BadValue',
      `Cannot have positional (i.e. '$') element in the first position in path '${context.path}'`,
    );
  follow(context.document, { parts, at: 0, context, slots });
  return slots;
}

interface Walk {
  readonly parts: readonly string[];
  readonly at: number;
  readonly context: PathContext;
  readonly slots: Slot[];
}

function follow(parent: unknown, walk: Walk): void {
  const { parts, at, context } = walk;
  const part = parts[at] as string;
  if (part === '$' || part.startsWith('$[')) {
    for (const name of elementsOf(parent, part, walk)) step(parent as unknown[], name, walk);
  } else if (isDocument(parent) || (Array.isArray(parent) && isIndex(part))) {
    step(parent, part, walk);
  } else if (context.creates) {
    const above = parts[at - 1] ?? '';
    throw new CommandError(
      'PathNotViable',
      `Cannot create field '${part}' in element {${above}: ${EJSON.stringify(parent)}}`,
    );
  }
}

function step(parent: Document | unknown[], name: string, walk: Walk): void {
  const { parts, at, context, slots } = walk;
  if (Array.isArray(parent) && context.creates) pad(parent, Number(name));
  if (at === parts.length - 1) {
    slots.push({ parent, name });
    return;
  }
  let inner: unknown = Object.hasOwn(parent, name) ? (parent as Document)[name] : undefined;
  if (inner === undefined) {
    if (!context.creates) return;
    inner = {};
    setField(parent, name, inner);
  }
  follow(inner, { ...walk, at: at + 1 });
}

function pad(list: unknown[], index: number): void {
  if (index - list.length > MAX_PADDING)
    throw new CommandError('CannotCreateIndex', `can't backfill more than ${MAX_PADDING} elements`);
  while (list.length < index) list.push(null);
}

function elementsOf(parent: unknown, part: string, { parts, at, context }: Walk): string[] {
  if (part === '$') return [matchedElement(parts.slice(0, at).join('.'), parent, context)];
  if (!Array.isArray(parent)) {
    const path = parts.slice(0, at).join('.');
    throw new CommandError('BadValue', `The path '${path}' must be an array for array updates`);
  }
  const name = part.slice(2, -1);
  if (name === '') return parent.map((_, index) => String(index));
  const filter = context.filters.get(name);
  if (filter === undefined)
    throw new CommandError('BadValue', `No array filter '${name}' for the path '${context.path}'`);
  return parent.flatMap((element, index) => (filter({ [name]: element }) ? [String(index)] : []));
}

/** The first array element that matches the filter's condition on that array. */
function matchedElement(path: string, list: unknown, { filter, scope, document }: PathContext): string {
  const all = termsOf(filter);
  const terms = all.filter(([name]) => name === path || name.startsWith(`${path}.`));
  if (Array.isArray(list)) {
    const own = elementIn(list, { path, terms, scope });
    if (own !== -1) return String(own);
    // A server remembers one position only, that of any matching array.
    for (const term of all.toReversed()) {
      const other = elementOfAny(document, term, scope);
      if (other !== -1) return String(other);
    }
  }
  throw new CommandError('BadValue', 'The positional operator did not find the match needed from the query.');
}

type Term = readonly [path: string, value: unknown];

/** The position of the first element that matches all of the terms, or the first of them; -1: none. */
function elementIn(
  list: readonly unknown[],
  { path, terms, scope }: { path: string; terms: readonly Term[]; scope: FilterScope | undefined },
): number {
  if (terms.length === 0) return -1;
  const tests = terms.map((term) => compileFilter(Object.fromEntries([term]), scope));
  const wrap = (element: unknown) =>
    path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), [element]) as Document;
  const holds = (count: number) =>
    list.findIndex((element) => tests.slice(0, count).every((test) => test(wrap(element))));
  const index = holds(tests.length);
  return index === -1 ? holds(1) : index;
}

/** Like above, for the first array on the path of a term. */
function elementOfAny(document: Document, term: Term, scope: FilterScope | undefined): number {
  const parts = term[0].split('.');
  for (let length = 1; length <= parts.length; length++) {
    const value = valueAt(document, parts.slice(0, length));
    if (!Array.isArray(value)) continue;
    return elementIn(value, { path: parts.slice(0, length).join('.'), terms: [term], scope });
  }
  return -1;
}

function termsOf(filter: Document): [string, unknown][] {
  return Object.entries(filter).flatMap(([name, value]) => {
    if (!name.startsWith('$')) return [[name, value]];
    return name === '$and' || name === '$or' ? (value as Document[]).flatMap(termsOf) : [];
  });
}
