/** `$setWindowFields`: fields computed from the documents around each, in order. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { DOCUMENT_STEPS, spend } from '../../command-time.ts';
import { isDocument, withValueAt } from '../../values/field-paths.ts';
import { asDouble, isNumber, plainNumber } from '../../values/numbers.ts';
import { GATHERERS, type Gatherer, type MakeGatherer } from '../accumulators.ts';
import { collationOf } from '../expression-kinds.ts';
import { evaluate } from '../expressions.ts';
import type { Evaluation } from '../mingo-library.ts';
import {
  MemoryBudget,
  readSort,
  type SortKey,
  type SortOrder,
  sortItems,
  sortOrder,
  weightOf,
} from '../sorting.ts';
import { partitionOf } from './fill-stage.ts';
import { readWindow, type Window } from './window-bounds.ts';

/** Cost of one more value in a window. */
const VALUE_STEPS = 10;

/** A field that is set in each document of a partition. */
interface Output {
  readonly path: readonly string[];
  readonly compute: (documents: readonly Document[]) => unknown[];
}

interface Context {
  readonly name: string;
  readonly argument: unknown;
  readonly window: Window | null;
  readonly sort: ReturnType<typeof readSort>;
  readonly order: SortOrder;
  readonly options: Evaluation;
  readonly budget: MemoryBudget;
}

/** The documents with the computed fields, partition by partition. Throws CommandError. */
export function* windowedDocuments(
  documents: Iterable<Document>,
  spec: unknown,
  options: Evaluation,
): Generator<Document> {
  if (!isDocument(spec) || !isDocument(spec.output))
    throw new CommandError('FailedToParse', '$setWindowFields needs an object with an output');
  const unknown = Object.keys(spec).find((name) => !['partitionBy', 'sortBy', 'output'].includes(name));
  if (unknown !== undefined)
    throw new CommandError(40415, `BSON field '$setWindowFields.${unknown}' is an unknown field.`);
  const sort = readSort(spec.sortBy);
  const order = sortOrder(sort, collationOf(options));
  const budget = new MemoryBudget('$setWindowFields');
  const outputs = Object.entries(spec.output).map((entry) =>
    readOutput(entry, { sort, order, options, budget }),
  );
  const partition = partitionOf(spec.partitionBy, [], options);
  const groups = new Map<string, Document[]>();
  for (const document of documents) {
    const key = partition(document);
    const group = groups.get(key);
    budget.take(weightOf(document) + (group === undefined ? key.length + 50 : 8));
    if (group === undefined) groups.set(key, [document]);
    else group.push(document);
  }
  for (const key of [...groups.keys()].sort()) {
    const group = sortItems(groups.get(key) ?? [], { ...order, limit: null, bytesOf: () => 0 });
    yield* computed(group, outputs);
  }
}

/** Every field is computed from the input documents. */
function computed(documents: readonly Document[], outputs: readonly Output[]): Document[] {
  return outputs.reduce<Document[]>(
    (list, { path, compute }) => {
      const values = compute(documents);
      return list.map((document, i) => {
        spend(DOCUMENT_STEPS);
        return withValueAt(document, path, values[i] ?? null);
      });
    },
    [...documents],
  );
}

function readOutput(
  [name, asked]: [string, unknown],
  scope: Omit<Context, 'name' | 'argument' | 'window'>,
): Output {
  const { window, ...functions }: Document = isDocument(asked) ? asked : {};
  const [[operator = '', argument] = [], ...more] = Object.entries(functions);
  if (operator === '' || more.length > 0)
    throw new CommandError(
      'FailedToParse',
      `'${name}' of $setWindowFields needs exactly one window function`,
    );
  const context = { ...scope, name: operator, argument };
  const own = Object.hasOwn(OF_ORDER, operator) ? OF_ORDER[operator] : undefined;
  if (own !== undefined) {
    if (window !== undefined) throw new CommandError(5371601, `${operator} does not accept a 'window' field`);
    return { path: name.split('.'), compute: own({ ...context, window: null }) };
  }
  if (!Object.hasOwn(GATHERERS, operator))
    throw new CommandError('FailedToParse', `Unrecognized window function, ${operator}`);
  return {
    path: name.split('.'),
    compute: accumulated({ ...context, window: readWindow(window, scope.sort) }),
  };
}

type Compute = Output['compute'];

function accumulated({ name, argument, window, options, budget, sort }: Context): Compute {
  const make = GATHERERS[name] as MakeGatherer;
  const gatherer = () => make(budget, collationOf(options));
  const held = (value: unknown) => {
    const own = Array.isArray(value) ? [...value] : value;
    budget.take(weightOf(own));
    return own ?? null;
  };
  return (documents) => {
    const values = documents.map((each) => (name === '$count' ? 1 : evaluate(each, argument, options)));
    const add = (to: Gatherer, at: number) => {
      spend(VALUE_STEPS);
      to.add(values[at], documents[at] as Document);
    };
    const bounds = window?.boundsIn(documents, sort) ?? null;
    if (bounds === null) {
      const whole = gatherer();
      for (const at of values.keys()) add(whole, at);
      const result = held(whole.result());
      return documents.map(() => result);
    }
    let [running, end] = [gatherer(), 0];
    return documents.map((_, at) => {
      const [from, to] = bounds(at);
      // A window that begins with the partition only grows.
      if (window?.isFromStart !== true) [running, end] = [gatherer(), from];
      for (; end < to; end++) add(running, end);
      return held(running.result());
    });
  };
}

function needsOrder({ name, sort }: Context, isOne: boolean): void {
  if (sort.length === 0 || (isOne && sort.length !== 1))
    throw new CommandError(
      5371602,
      `${name} must be specified with a top level sortBy expression${isOne ? ' with exactly one element' : ''}`,
    );
}

/** `isDense`: ranks have no gaps after ties. */
const ranks =
  (isDense: boolean) =>
  (context: Context): Compute => {
    needsOrder(context, true);
    const { order } = context;
    return (documents) => {
      let rank = 0;
      let before: SortKey | null = null;
      return documents.map((document, at) => {
        const key = order.keyOf(document);
        if (before === null || order.compare(before, key) !== 0) rank = isDense ? rank + 1 : at + 1;
        before = key;
        return rank;
      });
    };
  };

function numbers(context: Context): Compute {
  needsOrder(context, false);
  return (documents) => documents.map((_, at) => at + 1);
}

function shifted(context: Context): Compute {
  needsOrder(context, false);
  const { argument, options } = context;
  const { output, by, default: other = null }: Document = isDocument(argument) ? argument : {};
  const places = isNumber(by) ? plainNumber(by) : Number.NaN;
  if (output === undefined || !Number.isInteger(places))
    throw new CommandError('FailedToParse', "$shift needs an 'output' and an integer 'by'");
  const missing = evaluate({}, other, options);
  return (documents) =>
    documents.map((_, at) => {
      const from = documents[at + places];
      return from === undefined ? missing : (evaluate(from, output, options) ?? null);
    });
}

function movingAverage(context: Context): Compute {
  needsOrder(context, false);
  const { argument, options } = context;
  const { input, N: count, alpha }: Document = isDocument(argument) ? argument : {};
  if (input === undefined || (count === undefined) === (alpha === undefined))
    throw new CommandError('FailedToParse', "$expMovingAvg needs 'input', and either 'N' or 'alpha'");
  const weight = alphaOf(count, alpha);
  return (documents) => {
    let average: number | null = null;
    return documents.map((document) => {
      const value = evaluate(document, input, options);
      if (isNumber(value)) {
        const x = plainNumber(value);
        average = average === null ? x : x * weight + average * (1 - weight);
      }
      return average === null ? null : asDouble(average);
    });
  };
}

function alphaOf(count: unknown, alpha: unknown): number {
  if (count !== undefined) {
    const n = isNumber(count) ? plainNumber(count) : Number.NaN;
    if (Number.isInteger(n) && n > 0) return 2 / (n + 1);
    throw new CommandError('FailedToParse', "'N' of $expMovingAvg must be an integer greater than 0");
  }
  const value = isNumber(alpha) ? plainNumber(alpha) : Number.NaN;
  if (value > 0 && value < 1) return value;
  throw new CommandError('FailedToParse', "'alpha' of $expMovingAvg must be between 0 and 1 (exclusive)");
}

/** Functions of a document's position, which have no window. */
const OF_ORDER: Readonly<Record<string, (context: Context) => Compute>> = {
  $rank: ranks(false),
  $denseRank: ranks(true),
  $documentNumber: numbers,
  $shift: shifted,
  $expMovingAvg: movingAverage,
};
