/** Projections of `find` and of `$project`. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { entriesOf, namesOf, setField } from '../values/field-order.ts';
import { isDocument } from '../values/field-paths.ts';
import { metaValue } from '../values/metadata.ts';
import { isNumber, isTrue, plainNumber } from '../values/numbers.ts';
import { assertNoScripts, evaluate, evaluation } from './expressions.ts';
import { compileValue, type FilterScope, holdsOperators } from './filter.ts';
import { slotsOf } from './updates/update-paths.ts';

export type Projection = (document: Document) => Document;

/** A field: shown, hidden, computed, or the projection of its fields. */
type Field = boolean | { readonly compute: (document: Document) => unknown } | Tree;
type Tree = Map<string, Field>;

interface ProjectionOptions extends FilterScope {
  /** The filter of `find`, whose projections support `$slice`, `$elemMatch` and `list.$`. */
  readonly filter?: Document;
}

/** null: the whole document. Throws CommandError. */
export function compileProjection(
  spec: Document,
  { filter, ...scope }: ProjectionOptions = {},
): Projection | null {
  const tree: Tree = new Map();
  const modes = new Set<boolean>();
  let isFind = false;
  for (const [path, value] of entriesOf(spec)) {
    const special = filter && findField(path, value, { filter, ...scope });
    if (special) isFind = true;
    const field = special ?? fieldOf(path, value, { scope, modes });
    insert(tree, {
      path: special ? path.replace(/\.\$$/, '') : path,
      parts: path.replace(/\.\$$/, '').split('.'),
      field,
    });
    if (path.endsWith('.$') || (isDocument(value) && '$elemMatch' in value && special)) modes.add(true);
  }
  if (modes.size > 1) throw new CommandError(31254, 'Cannot do exclusion on a field in inclusion projection');
  if (tree.size === 0) return null;
  const [mode] = modes;
  const id = tree.get('_id');
  // `_id` decides only if nothing else does.
  const isInclusion = mode ?? (isFind ? false : id !== false);
  if (isInclusion && id === undefined) tree.set('_id', true);
  return (document) => project(document, tree, { isInclusion, root: document }) as Document;
}

function fieldOf(
  path: string,
  value: unknown,
  { scope, modes }: { scope: FilterScope; modes: Set<boolean> },
): Field {
  if (typeof value === 'boolean' || isNumber(value)) {
    const isShown = isTrue(value);
    if (path !== '_id') modes.add(isShown);
    return isShown;
  }
  if (isDocument(value) && !holdsOperators(value)) {
    if (Object.keys(value).length === 0)
      throw new CommandError(51270, 'An empty sub-projection is not a valid value');
    const tree: Tree = new Map();
    for (const [name, inner] of entriesOf(value)) {
      insert(tree, {
        path: name,
        parts: name.split('.'),
        field: fieldOf(`${path}.${name}`, inner, { scope, modes }),
      });
    }
    return tree;
  }
  modes.add(true);
  assertNoScripts(value);
  const options = evaluation(scope);
  return { compute: (document) => evaluate(document, value, options) };
}

/** Operators that only projections of `find` have. */
function findField(
  path: string,
  value: unknown,
  { filter, ...scope }: ProjectionOptions & { readonly filter: Document },
): Field | undefined {
  if (path.endsWith('.$')) {
    const list = path.slice(0, -2);
    return { compute: (document) => positional(document, list, { filter, scope }) };
  }
  if (!isDocument(value)) return undefined;
  if ('$meta' in value) return { compute: (document) => metaValue(document, value.$meta) };
  if ('$elemMatch' in value) {
    const test = compileValue({ $elemMatch: value.$elemMatch }, scope);
    return { compute: (document) => firstOf(pathValue(document, path), (element) => test([[element]])) };
  }
  const { $slice: slice } = value;
  if (isNumber(slice))
    return { compute: (document) => sliced(pathValue(document, path), plainNumber(slice)) };
  if (Array.isArray(slice) && slice.every(isNumber)) {
    const [skip = 0, count = 0] = slice.map(plainNumber);
    return { compute: (document) => sliced(pathValue(document, path), count, skip) };
  }
  return undefined;
}

function pathValue(document: Document, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, name) => (isDocument(value) && Object.hasOwn(value, name) ? value[name] : undefined),
      document,
    );
}

function sliced(value: unknown, count: number, skip?: number): unknown {
  if (!Array.isArray(value)) return value;
  if (skip === undefined) return count < 0 ? value.slice(count) : value.slice(0, count);
  const from = skip < 0 ? Math.max(0, value.length + skip) : skip;
  return value.slice(from, from + count);
}

function firstOf(value: unknown, test: (element: unknown) => boolean): unknown {
  const index = Array.isArray(value) ? value.findIndex(test) : -1;
  return index === -1 ? undefined : [(value as unknown[])[index]];
}

function positional(
  document: Document,
  list: string,
  { filter, scope }: { filter: Document; scope: FilterScope },
): unknown {
  const context = { document, filters: new Map(), filter, scope, creates: false, path: list };
  return slotsOf([...list.split('.'), '$'], context).map(({ parent, name }) => (parent as Document)[name]);
}

function insert(
  tree: Tree,
  { path, parts, field }: { path: string; parts: readonly string[]; field: Field },
): void {
  const [name = '', ...rest] = parts;
  if (parts.some((part) => part === ''))
    throw new CommandError(40353, `FieldPath must not end with a '.': ${path}`);
  if (name.startsWith('$')) throw new CommandError(16410, `FieldPath field names may not start with '$'`);
  const there = tree.get(name);
  if (rest.length === 0) {
    if (there !== undefined) throw new CommandError(31250, `Path collision at ${path}`);
    tree.set(name, field);
    return;
  }
  if (there !== undefined && !(there instanceof Map))
    throw new CommandError(31249, `Path collision at ${path} remaining portion ${rest.join('.')}`);
  const inner: Tree = there ?? new Map();
  tree.set(name, inner);
  insert(inner, { path, parts: rest, field });
}

interface Showing {
  readonly isInclusion: boolean;
  readonly root: Document;
}

function project(value: unknown, tree: Tree, showing: Showing): unknown {
  if (Array.isArray(value)) {
    const kept = showing.isInclusion
      ? value.filter((each) => isDocument(each) || Array.isArray(each))
      : value;
    return kept.map((each) => project(each, tree, showing));
  }
  if (!isDocument(value)) return showing.isInclusion ? undefined : value;
  const shown: Document = {};
  for (const name of namesOf(value)) {
    const field = tree.get(name);
    const inner = value[name];
    if (field === undefined ? !showing.isInclusion : field === true) setField(shown, name, inner);
    else if (field instanceof Map) addPart(shown, { name, part: project(inner, field, showing) });
    // Fields sliced by `find` keep their position; computed fields come last.
    else if (typeof field === 'object' && !showing.isInclusion)
      addPart(shown, { name, part: field.compute(showing.root) });
  }
  addComputed(shown, tree, showing);
  return shown;
}

function addPart(shown: Document, { name, part }: { name: string; part: unknown }): void {
  if (part !== undefined) setField(shown, name, part);
}

function addComputed(shown: Document, tree: Tree, showing: Showing): void {
  for (const [name, field] of tree) {
    if (Object.hasOwn(shown, name) || typeof field === 'boolean') continue;
    if (!(field instanceof Map)) addPart(shown, { name, part: field.compute(showing.root) });
    else if (hasComputed(field)) addPart(shown, { name, part: project({}, field, showing) });
  }
}

function hasComputed(tree: Tree): boolean {
  return [...tree.values()].some((field) =>
    field instanceof Map ? hasComputed(field) : typeof field === 'object',
  );
}
