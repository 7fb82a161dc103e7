/** Accumulators process one value at a time and keep only the state that the result needs. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import type { Collation } from '../values/collations.ts';
import { entriesOf, setField } from '../values/field-order.ts';
import { isDocument } from '../values/field-paths.ts';
import { compareValues, textKeyOf } from '../values/key-order.ts';
import { asDouble, type BsonNumber, calculate, divide, isNumber, plainNumber } from '../values/numbers.ts';
import { type MemoryBudget, readSort, type SortKey, type SortOrder, sortOrder, weightOf } from './sorting.ts';

export interface Gatherer {
  /** The value of the argument for a document of the group. */
  add(value: unknown, document: Document): void;
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
      total.add(value, {});
      if (isNumber(value)) count++;
    },
    result: () => (count === 0 ? null : divide(total.result() as BsonNumber, count)),
  };
}

const extreme =
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
  const add = (each: unknown) => {
    if (isDocument(each)) for (const [name, value] of entriesOf(each)) setField(all, name, value);
  };
  return { add, result: () => all };
}

/** All values except missing ones. */
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

/** Distinct values; numbers are compared across types, and the first of equal texts is kept. */
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

/** The standard deviation by Welford's method. `isSample`: sample instead of population. */
const deviation = (isSample: boolean) => (): Gatherer => {
  let [count, mean, squares] = [0, 0, 0];
  return {
    add: (value) => {
      if (!isNumber(value)) return;
      const x = plainNumber(value);
      count++;
      const off = x - mean;
      mean += off / count;
      squares += off * (x - mean);
    },
    result: () => {
      const divisor = isSample ? count - 1 : count;
      return divisor > 0 ? asDouble(Math.sqrt(squares / divisor)) : null;
    },
  };
};

/** Percentiles: this share of the numbers is no larger. Each value is a document with the operands. */
const ranked =
  (isMedian: boolean) =>
  (budget: MemoryBudget): Gatherer => {
    const numbers: number[] = [];
    let parts: number[] = isMedian ? [0.5] : [];
    let isRead = false;
    return {
      add: (value) => {
        const { input, p, method }: Document = isDocument(value) ? value : {};
        if (!isRead) {
          if (method !== 'approximate')
            throw new CommandError('BadValue', "the only supported 'method' is 'approximate'");
          if (!isMedian) parts = readParts(p);
          isRead = true;
        }
        if (!isNumber(input)) return;
        budget.take(8);
        numbers.push(plainNumber(input));
      },
      result: () => {
        const sorted = Float64Array.from(numbers).sort();
        const found = parts.map((part) => {
          const number = sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
          return number === undefined ? null : asDouble(number);
        });
        return isMedian ? (found[0] ?? null) : found;
      },
    };
  };

function readParts(value: unknown): number[] {
  const parts = Array.isArray(value) && value.every(isNumber) ? value.map(plainNumber) : [];
  if (parts.length === 0) throw new CommandError(7750301, "'p' of $percentile must be a list of numbers");
  if (parts.every((part) => part >= 0 && part <= 1)) return parts;
  throw new CommandError(7750303, "'p' of $percentile must be numbers from 0.0 to 1.0");
}

/** The argument `n` of an accumulator. Throws CommandError. */
function countOf(value: unknown): number {
  const n = isNumber(value) ? plainNumber(value) : Number.NaN;
  if (!Number.isInteger(n)) throw new CommandError(5787902, "Value for 'n' must be of integral type");
  if (n <= 0) throw new CommandError(5787908, "'n' must be greater than 0");
  return n;
}

interface Kept<Key> {
  readonly key: Key;
  readonly value: unknown;
  readonly bytes: number;
}

/** The first or last N values, in order. Keeps at most 2 N + 100. */
class Ends<Key> {
  readonly #compare: (one: Key, other: Key) => number;
  readonly #isFirst: boolean;
  readonly #budget: MemoryBudget;
  #kept: Kept<Key>[] = [];
  most = 1;

  constructor(budget: MemoryBudget, isFirst: boolean, compare: (one: Key, other: Key) => number) {
    this.#compare = compare;
    this.#isFirst = isFirst;
    this.#budget = budget;
  }

  add(key: Key, value: unknown): void {
    const bytes = weightOf(value) + 50;
    this.#budget.take(bytes);
    this.#kept.push({ key, value, bytes });
    if (this.#kept.length > this.most * 2 + 100) this.#cut();
  }

  #cut(): void {
    const sorted = this.#kept.sort((one, other) => this.#compare(one.key, other.key));
    const over = Math.max(0, sorted.length - this.most);
    const [kept, gone] = this.#isFirst
      ? [sorted.slice(0, this.most), sorted.slice(this.most)]
      : [sorted.slice(over), sorted.slice(0, over)];
    for (const { bytes } of gone) this.#budget.give(bytes);
    this.#kept = kept;
  }

  values(): unknown[] {
    this.#cut();
    return this.#kept.map(({ value }) => value);
  }
}

/** The accumulators for the first and last values, in document order. */
const ends =
  (isFirst: boolean) =>
  (budget: MemoryBudget): Gatherer => {
    const kept = new Ends<number>(budget, isFirst, (one, other) => one - other);
    let count = 0;
    return {
      add: (value) => {
        const { input, n }: Document = isDocument(value) ? value : {};
        if (count === 0) kept.most = countOf(n);
        count++;
        if (!isFirst || count <= kept.most) kept.add(count, input ?? null);
      },
      result: () => kept.values(),
    };
  };

/** The smallest or largest values. */
const extremes =
  (direction: 1 | -1): MakeGatherer =>
  (budget, collation) => {
    const kept = new Ends<unknown>(budget, true, (a, b) => direction * compareValues(a, b, collation));
    let isRead = false;
    return {
      add: (value) => {
        const { input, n }: Document = isDocument(value) ? value : {};
        if (!isRead) kept.most = countOf(n);
        isRead = true;
        if (input !== null && input !== undefined) kept.add(input, input);
      },
      result: () => kept.values(),
    };
  };

/** The outputs of the first or last documents by a sort. `isOne`: one output, not a list. */
const best =
  (isFirst: boolean, isOne: boolean): MakeGatherer =>
  (budget, collation) => {
    let kept: Ends<SortKey> | null = null;
    let order: SortOrder;
    return {
      add: (value, document) => {
        const { output, sortBy, n }: Document = isDocument(value) ? value : {};
        if (kept === null) {
          order = sortOrder(readSort(sortBy), collation);
          kept = new Ends(budget, isFirst, order.compare);
          kept.most = isOne ? 1 : countOf(n);
        }
        kept.add(order.keyOf(document), output ?? null);
      },
      result: () => (isOne ? kept?.values()[0] : (kept?.values() ?? [])),
    };
  };

export const GATHERERS: Readonly<Record<string, MakeGatherer>> = {
  $sum: sum,
  $count: sum,
  $avg: average,
  $min: extreme(-1),
  $max: extreme(1),
  $first: end(true),
  $last: end(false),
  $mergeObjects: merged,
  $push: list,
  $addToSet: set,
  $stdDevPop: deviation(false),
  $stdDevSamp: deviation(true),
  $firstN: ends(true),
  $lastN: ends(false),
  $minN: extremes(1),
  $maxN: extremes(-1),
  $top: best(true, true),
  $topN: best(true, false),
  $bottom: best(false, true),
  $bottomN: best(false, false),
  $median: ranked(true),
  $percentile: ranked(false),
};
