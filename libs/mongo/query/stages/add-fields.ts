/** `$addFields`, `$set`, `$replaceRoot` and `$replaceWith`: stages that transform each document. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { entriesOf, setField } from '../../values/field-order.ts';
import { isDocument } from '../../values/field-paths.ts';
import { typeNameOf } from '../../values/type-names.ts';
import { evaluate } from '../expressions.ts';
import type { Evaluation } from '../mingo-library.ts';

/** Fields to set: by an expression, or nested in existing documents. */
type Tree = Map<string, Tree | { readonly expression: unknown }>;

/** Throws CommandError if one path is a prefix of another. */
function readFields(stage: string, spec: unknown): Tree {
  if (!isDocument(spec)) throw new CommandError(40272, `${stage} specification stage must be an object`);
  const tree: Tree = new Map();
  if (Object.keys(spec).length === 0)
    throw new CommandError(40177, `${stage} specification must have at least one field`);
  for (const [path, value] of entriesOf(spec)) addField(tree, path.split('.'), value);
  return tree;
}

function isNested(value: unknown): value is Document {
  return isDocument(value) && !Object.keys(value)[0]?.startsWith('$');
}

function addField(tree: Tree, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (name === '' || name.startsWith('$'))
    throw new CommandError(name === '' ? 40352 : 16410, `no field can have the name '${name}'`);
  const there = tree.get(name);
  if (rest.length === 0 && !isNested(value)) {
    if (there !== undefined) throw conflict(name);
    tree.set(name, { expression: value });
    return;
  }
  const inner: unknown = there ?? new Map();
  if (!(inner instanceof Map)) throw conflict(name);
  tree.set(name, inner);
  if (rest.length > 0) addField(inner, rest, value);
  else {
    if (Object.keys(value as Document).length === 0)
      throw new CommandError(
        40180,
        `an empty object is not a valid value. Found empty object at path ${name}`,
      );
    for (const [path, each] of entriesOf(value as Document)) addField(inner, path.split('.'), each);
  }
}

function conflict(name: string): CommandError {
  return new CommandError(40176, `specification contains two conflicting paths at '${name}'`);
}

/** Sets the fields in each element of a list; a value that is not a document becomes one. */
function withFields(value: unknown, tree: Tree, expressed: (expression: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => withFields(each, tree, expressed));
  const copy: Document = isDocument(value) ? { ...value } : {};
  for (const [name, inner] of tree) {
    const there = Object.hasOwn(copy, name) ? copy[name] : undefined;
    const next = inner instanceof Map ? withFields(there, inner, expressed) : expressed(inner.expression);
    if (next === undefined) delete copy[name];
    else setField(copy, name, next);
  }
  return copy;
}

export function addFields(
  stage: string,
  documents: Iterable<Document>,
  { spec, options }: { spec: unknown; options: Evaluation },
): Iterable<Document> {
  const tree = readFields(stage, spec);
  return Iterator.from(documents).map(
    (document) =>
      withFields(document, tree, (expression) => evaluate(document, expression, options)) as Document,
  );
}

export function replaceRoots(
  documents: Iterable<Document>,
  { expression, options }: { expression: unknown; options: Evaluation },
): Iterable<Document> {
  return Iterator.from(documents).map((document) => {
    const root = evaluate(document, expression, options);
    if (isDocument(root)) return root;
    throw new CommandError(
      40228,
      `'newRoot' expression must evaluate to an object, but its type is '${typeNameOf(root)}'`,
    );
  });
}
