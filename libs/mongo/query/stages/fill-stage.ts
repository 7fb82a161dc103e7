/** `$fill`: values for null or missing fields, from an expression or from neighbouring documents. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isDocument, valueAt, withValueAt } from '../../values/field-paths.ts';
import { textKeyOf } from '../../values/key-order.ts';
import { asDouble, isNumber, plainNumber } from '../../values/numbers.ts';
import { isNil } from '../../values/type-names.ts';
import { collationOf } from '../expression-kinds.ts';
import { evaluate } from '../expressions.ts';
import type { Evaluation } from '../mingo-library.ts';
import { MemoryBudget, readSort, sortItems, sortOrder, weightOf } from '../sorting.ts';

interface Output {
  readonly path: readonly string[];
  readonly method: 'linear' | 'locf' | null;
  /** An expression, if there is no method. */
  readonly value: unknown;
}

function readOutput([name, asked]: [string, unknown]): Output {
  const { value, method }: Document = isDocument(asked) ? asked : {};
  if ((value === undefined) === (method === undefined))
    throw new CommandError(6050203, "an output of $fill needs either 'value' or 'method'");
  if (method !== undefined && method !== 'linear' && method !== 'locf')
    throw new CommandError(6050202, 'Method must be either locf or linear');
  return { path: name.split('.'), method: method ?? null, value };
}

/** The documents with filled fields, partition by partition. Throws CommandError. */
export function* filledDocuments(
  documents: Iterable<Document>,
  spec: Document,
  options: Evaluation,
): Generator<Document> {
  const { output, sortBy, partitionBy, partitionByFields } = spec;
  if (!isDocument(output))
    throw new CommandError(40414, "BSON field '$fill.output' is missing but a required field");
  if (partitionBy !== undefined && partitionByFields !== undefined)
    throw new CommandError(6050204, "Maximum one of 'partitionBy' and 'partitionByFields' can be specified");
  const outputs = Object.entries(output).map(readOutput);
  if (outputs.every(({ method }) => method === null)) {
    for (const document of documents)
      yield outputs.reduce((each, one) => withExpression(each, one, options), document);
    return;
  }
  const sort = readSort(sortBy);
  if (sort.length === 0)
    throw new CommandError(605001, "'sortBy' is required where an output of $fill has a method");
  if (sort.length > 1 && outputs.some(({ method }) => method === 'linear'))
    throw new CommandError(605001, '$fill with linear needs a sort by one field');
  const partition = partitionOf(partitionBy, partitionByFields, options);
  const order = sortOrder(sort, collationOf(options));
  const sorted = sortItems<Document>(documents, { ...order, limit: null, bytesOf: weightOf });
  const groups = new Map<string, Document[]>();
  const budget = new MemoryBudget('$fill');
  for (const document of sorted) {
    const key = partition(document);
    budget.take(key.length + 50);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [document]);
    else group.push(document);
  }
  const along = (sort[0]?.[0] ?? '').split('.');
  for (const group of groups.values())
    yield* outputs.reduce<Document[]>((list, one) => {
      if (one.method === null) return list.map((each) => withExpression(each, one, options));
      return one.method === 'locf' ? withLast(list, one) : withLine(list, one, along);
    }, group);
}

/** The key of a document's partition: from an expression, or from fields. */
export function partitionOf(
  by: unknown,
  fields: unknown,
  options: Evaluation,
): (document: Document) => string {
  if (by !== undefined)
    return (document) => textKeyOf(evaluate(document, by, options) ?? null, collationOf(options));
  const paths = Array.isArray(fields) ? fields.map((each) => String(each).split('.')) : [];
  return (document) =>
    textKeyOf(
      paths.map((path) => valueAt(document, path) ?? null),
      collationOf(options),
    );
}

function withExpression(document: Document, { path, value }: Output, options: Evaluation): Document {
  if (!isNil(valueAt(document, path))) return document;
  return withValueAt(document, path, evaluate(document, value, options) ?? null);
}

function withLast(list: readonly Document[], { path }: Output): Document[] {
  let last: unknown = null;
  return list.map((document) => {
    const value = valueAt(document, path);
    if (isNil(value)) return withValueAt(document, path, last);
    last = value;
    return document;
  });
}

/** Linear interpolation between neighbouring numbers, by the sort field. */
function withLine(list: readonly Document[], { path }: Output, along: readonly string[]): Document[] {
  const places = list.map((document) => {
    const at = valueAt(document, along);
    if (at instanceof Date) return at.getTime();
    if (isNumber(at)) return plainNumber(at);
    throw new CommandError('TypeMismatch', '$fill with linear needs numbers or dates to sort by');
  });
  const values = list.map((document) => valueAt(document, path) ?? null);
  // The next document with a value, found in one backward pass.
  const next = values.map(() => -1);
  for (let i = values.length - 2; i >= 0; i--)
    next[i] = values[i + 1] === null ? (next[i + 1] as number) : i + 1;
  let before = -1;
  return list.map((document, i) => {
    if (values[i] !== null) {
      before = i;
      return document;
    }
    const after = next[i] as number;
    const [from, to] = [values[before], values[after]];
    if (!isNumber(from) || !isNumber(to)) return withValueAt(document, path, null);
    const [start, end, x] = [places[before], places[after], places[i]] as [number, number, number];
    if (start === end) throw new CommandError(605001, '$fill with linear needs different values to sort by');
    const [low, high] = [plainNumber(from), plainNumber(to)];
    return withValueAt(document, path, asDouble(low + ((high - low) * (x - start)) / (end - start)));
  });
}
