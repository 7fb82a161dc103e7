/** `$group`, one document after the other: only what the result needs stays in memory. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { isDocument } from '../values/field-paths.ts';
import { compareValues, textKeyOf } from '../values/key-order.ts';
import { type BsonNumber, calculate, divide, isNumber } from '../values/numbers.ts';
import { evaluate } from './expressions.ts';
import type { Evaluation } from './mingo-library.ts';
import { MemoryBudget, weightOf } from './sorting.ts';

/** Takes values in, and gives what they come to. */
interface Gatherer {
  add(value: unknown): void;
  result(): unknown;
}

const isNil = (value: unknown) => value === null || value === undefined;

function sum(): Gatherer {
  let total: BsonNumber = 0;
  return {
    add: (value) => {
      if (isNumber(value)) total = calculate('add', total, value);
    },
    result: () => total,
  };
}

function average(): Gatherer {
  const total = sum();
  let count = 0;
  return {
    add: (value) => {
      total.add(value);
      if (isNumber(value)) count++;
    },
    result: () => (count === 0 ? null : divide(total.result() as BsonNumber, count)),
  };
}

function best(direction: number): Gatherer {
  let value: unknown = null;
  return {
    add: (each) => {
      if (!isNil(each) && (value === null || direction * compareValues(each, value) > 0)) value = each;
    },
    result: () => value,
  };
}

function end(isFirst: boolean): Gatherer {
  let value: unknown;
  let isThere = false;
  return {
    add: (each) => {
      if (!isThere || !isFirst) value = each ?? null;
      isThere = true;
    },
    result: () => value,
  };
}

function merged(): Gatherer {
  const all: Document = {};
  return { add: (each) => void (isDocument(each) && Object.assign(all, each)), result: () => all };
}

function list(budget: MemoryBudget, finish: (values: unknown[]) => unknown): Gatherer {
  const values: unknown[] = [];
  return {
    add: (value) => {
      budget.take(weightOf(value));
      values.push(value);
    },
    result: () => finish(values),
  };
}

function set(budget: MemoryBudget): Gatherer {
  const values = new Map<string, unknown>();
  return {
    add: (value) => {
      if (value === undefined) return;
      const key = textKeyOf(value);
      if (values.has(key)) return;
      budget.take(weightOf(value) + key.length);
      values.set(key, value);
    },
    result: () => [...values.values()],
  };
}

function gathererOf(operator: string, budget: MemoryBudget): Gatherer | null {
  switch (operator) {
    case '$sum':
    case '$count':
      return sum();
    case '$avg':
      return average();
    case '$min':
      return best(-1);
    case '$max':
      return best(1);
    case '$first':
      return end(true);
    case '$last':
      return end(false);
    case '$mergeObjects':
      return merged();
    case '$push':
      return list(budget, (values) => values.filter((value) => value !== undefined));
    case '$addToSet':
      return set(budget);
    default:
      return null;
  }
}

interface Output {
  readonly name: string;
  readonly operator: string;
  readonly argument: unknown;
  /** Gathers documents rather than values: one of mingo's, which sees all of a group at once. */
  readonly isWhole: boolean;
}

function readOutputs(spec: Document): Output[] {
  if (!('_id' in spec)) throw new CommandError(15955, 'a group specification must include an _id');
  return Object.entries(spec)
    .filter(([name]) => name !== '_id')
    .map(([name, value]) => {
      const [[operator = '', argument] = [], ...more] = isDocument(value) ? Object.entries(value) : [];
      if (!operator.startsWith('$'))
        throw new CommandError(40234, `The field '${name}' must be an accumulator object`);
      if (more.length > 0) throw new CommandError(40238, `The field '${name}' must specify one accumulator`);
      const isWhole = gathererOf(operator, new MemoryBudget('')) === null;
      return { name, operator, argument: operator === '$count' ? 1 : argument, isWhole };
    });
}

/** The groups of documents. Throws CommandError when they are too large. */
export function* groupDocuments(
  documents: Iterable<Document>,
  spec: Document,
  options: Evaluation,
): Generator<Document> {
  const outputs = readOutputs(spec);
  const budget = new MemoryBudget('$group');
  const groups = new Map<string, { id: unknown; gatherers: Gatherer[] }>();
  for (const document of documents) {
    const id = evaluate(document, spec._id, options) ?? null;
    const key = textKeyOf(id);
    let group = groups.get(key);
    if (group === undefined) {
      budget.take(weightOf(id) + key.length + outputs.length * 100);
      const gatherers = outputs.map(
        ({ operator, argument }) =>
          gathererOf(operator, budget) ??
          list(budget, (all) => evaluate(all, { [operator]: argument }, options)),
      );
      group = { id, gatherers };
      groups.set(key, group);
    }
    group.gatherers.forEach((gatherer, i) => {
      const { isWhole, argument } = outputs[i] as Output;
      gatherer.add(isWhole ? document : evaluate(document, argument, options));
    });
  }
  for (const { id, gatherers } of groups.values()) {
    const entries = gatherers.map((gatherer, i) => [(outputs[i] as Output).name, gatherer.result()] as const);
    yield { _id: id, ...Object.fromEntries(entries) };
  }
}
