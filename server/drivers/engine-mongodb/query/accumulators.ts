/** Accumulators, fed one value at a time: only the state that the result needs stays in memory. */
import type { Document } from 'bson';
import type { Collation } from '../values/collations.ts';
import { isDocument } from '../values/field-paths.ts';
import { compareValues, textKeyOf } from '../values/key-order.ts';
import { type BsonNumber, calculate, divide, isNumber } from '../values/numbers.ts';
import { type MemoryBudget, weightOf } from './sorting.ts';

export interface Gatherer {
  add(value: unknown): void;
  result(): unknown;
}

export type MakeGatherer = (budget: MemoryBudget, collation: Collation | null) => Gatherer;

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

const best =
  (direction: number): MakeGatherer =>
  (_budget, collation) => {
    let value: unknown = null;
    return {
      add: (each) => {
        if (each !== null && each !== undefined)
          if (value === null || direction * compareValues(each, value, collation) > 0) value = each;
      },
      result: () => value,
    };
  };

const end = (isFirst: boolean) => (): Gatherer => {
  const ends: unknown[] = [];
  return {
    add: (each) => {
      if (ends.length === 0 || !isFirst) ends[0] = each ?? null;
    },
    result: () => ends[0],
  };
};

function merged(): Gatherer {
  const all: Document = {};
  return { add: (each) => void (isDocument(each) && Object.assign(all, each)), result: () => all };
}

/** All values but those that are missing. */
function list(budget: MemoryBudget): Gatherer {
  const values: unknown[] = [];
  return {
    add: (value) => {
      if (value === undefined) return;
      budget.take(weightOf(value));
      values.push(value);
    },
    result: () => values,
  };
}

/** Each value once, whatever number type it has, and of texts that are the same the first. */
function set(budget: MemoryBudget, collation: Collation | null): Gatherer {
  const values = new Map<string, unknown>();
  return {
    add: (value) => {
      const key = textKeyOf(value, collation);
      if (value === undefined || values.has(key)) return;
      budget.take(weightOf(value) + key.length);
      values.set(key, value);
    },
    result: () => [...values.values()],
  };
}

export const GATHERERS: Readonly<Record<string, MakeGatherer>> = {
  $sum: sum,
  $count: sum,
  $avg: average,
  $min: best(-1),
  $max: best(1),
  $first: end(true),
  $last: end(false),
  $mergeObjects: merged,
  $push: list,
  $addToSet: set,
};
