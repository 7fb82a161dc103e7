/** `$graphLookup`: documents reachable step by step, with an index if there is one. */
import { type Document, Long } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isDocument, leavesAt, withValueAt } from '../../values/field-paths.ts';
import { textKeyOf } from '../../values/key-order.ts';
import { isNumber, plainNumber } from '../../values/numbers.ts';
import { evaluate } from '../expressions.ts';
import type { FilterScope } from '../filter.ts';
import type { Evaluation } from '../mingo-library.ts';
import type { CollectionReader } from '../pipeline.ts';
import { MemoryBudget, weightOf } from '../sorting.ts';

interface Walk {
  readonly from: string;
  readonly startWith: unknown;
  readonly fromPath: readonly string[];
  readonly toField: string;
  readonly as: readonly string[];
  /** Null: unlimited. */
  readonly maxDepth: number | null;
  readonly depthField: string | null;
  readonly match: Document | null;
}

function readWalk(spec: unknown): Walk {
  if (!isDocument(spec)) throw new CommandError('FailedToParse', 'the $graphLookup stage must be an object');
  const { from, startWith, connectFromField, connectToField, as, maxDepth, depthField } = spec;
  for (const [name, value] of Object.entries({ from, as, connectFromField, connectToField }))
    if (typeof value !== 'string')
      throw new CommandError(40103, `expected a string as argument for '${name}' of $graphLookup`);
  if (startWith === undefined)
    throw new CommandError(
      40105,
      "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField' and 'connectToField'",
    );
  const { restrictSearchWithMatch: match = null } = spec;
  if (match !== null && !isDocument(match))
    throw new CommandError(40185, '$graphLookup restrictSearchWithMatch must be an object');
  const depth = isNumber(maxDepth) ? plainNumber(maxDepth) : Number.NaN;
  if (maxDepth !== undefined && !(Number.isInteger(depth) && depth >= 0))
    throw new CommandError(40101, `$graphLookup requires 'maxDepth' to be a nonnegative number`);
  if (depthField !== undefined && typeof depthField !== 'string')
    throw new CommandError(40103, "expected a string as argument for 'depthField' of $graphLookup");
  return {
    from,
    startWith,
    fromPath: connectFromField.split('.'),
    toField: connectToField,
    as: as.split('.'),
    maxDepth: maxDepth === undefined ? null : depth,
    depthField: depthField ?? null,
    match,
  };
}

/** The documents with the reachable ones. `scope`: variables and collation of the pipeline. */
export function* walkedDocuments(
  documents: Iterable<Document>,
  spec: unknown,
  { reader, scope, options }: { reader: CollectionReader; scope: FilterScope; options: Evaluation },
): Generator<Document> {
  const walk = readWalk(spec);
  for (const document of documents) {
    const start = evaluate(document, walk.startWith, options);
    yield withValueAt(document, walk.as, reached(walk, [start].flat(), { reader, scope }));
  }
}

function reached(
  { from, fromPath, toField, maxDepth, depthField, match }: Walk,
  start: readonly unknown[],
  { reader, scope }: { reader: CollectionReader; scope: FilterScope },
): Document[] {
  const { collation = null } = scope;
  const budget = new MemoryBudget('$graphLookup');
  const found = new Map<string, Document>();
  const asked = new Set<string>();
  const unasked = (values: readonly unknown[]) =>
    values.filter((value) => {
      if (value === undefined) return false;
      const key = textKeyOf(value, collation);
      if (asked.has(key)) return false;
      budget.take(key.length + 50);
      asked.add(key);
      return true;
    });
  let frontier = unasked(start);
  for (let depth = 0; frontier.length > 0 && (maxDepth === null || depth <= maxDepth); depth++) {
    const next: unknown[] = [];
    const leads = { [toField]: { $in: frontier } };
    for (const document of reader.read(from, match === null ? leads : { $and: [leads, match] }, scope)) {
      const key = textKeyOf(document._id ?? document);
      if (found.has(key)) continue;
      budget.take(weightOf(document) + key.length);
      const told = depthField === null ? document : { ...document, [depthField]: Long.fromNumber(depth) };
      found.set(key, told);
      for (const value of unasked(leavesAt(document, fromPath).flat())) next.push(value);
    }
    frontier = next;
  }
  return [...found.values()];
}
