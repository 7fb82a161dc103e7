/** Operators on lists and documents, with evaluated operands; a missing one is undefined. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { spend } from '../../command-time.ts';
import type { Collation } from '../../values/collations.ts';
import { entriesOf, setField } from '../../values/field-order.ts';
import { isDocument } from '../../values/field-paths.ts';
import { compareValues, textKeyOf } from '../../values/key-order.ts';
import { isNumber, isTrue, plainNumber } from '../../values/numbers.ts';
import { isNil, typeNameOf } from '../../values/type-names.ts';
import { MemoryBudget, readSort, sortOrder } from '../sorting.ts';
import type { Operator } from './operator.ts';

function refused(code: number, wanted: string, value: unknown): CommandError {
  return new CommandError(code, `${wanted}, not ${typeNameOf(value)}`);
}

function listOf(value: unknown, code: number, wanted: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw refused(code, wanted, value);
}

/** A 32-bit integer. Throws CommandError: the first code if it is not a number. */
function wholeOf(value: unknown, [noNumber, notWhole]: readonly [number, number], what: string): number {
  if (!isNumber(value)) throw refused(noNumber, `${what} must be a numeric value`, value);
  const number = plainNumber(value);
  if (Number.isInteger(number) && Math.abs(number) <= 2 ** 31) return number;
  throw new CommandError(notWhole, `${what} must be representable as a 32-bit integer: ${number}`);
}

function elementAt([list, index]: unknown[]): unknown {
  if (isNil(list) || isNil(index)) return null;
  const all = listOf(list, 28689, "$arrayElemAt's first argument must be an array");
  const at = wholeOf(index, [28690, 28691], "$arrayElemAt's second argument");
  return all.at(at);
}

const end = (name: string, at: 0 | -1): Operator => ({
  from: 1,
  to: 1,
  work: ([list]) => (isNil(list) ? null : listOf(list, 28689, `${name}'s argument must be an array`).at(at)),
});

function toObject([list]: unknown[]): unknown {
  if (isNil(list)) return null;
  const result: Document = {};
  for (const each of listOf(list, 40386, '$arrayToObject requires an array input')) {
    const [key, value] = Array.isArray(each) ? pairOf(each) : entryOf(each);
    if (key.includes('\0')) throw new CommandError(4940400, 'Key field cannot contain an embedded null byte');
    setField(result, key, value);
  }
  return result;
}

function pairOf(pair: unknown[]): [string, unknown] {
  const [key, value] = pair;
  if (pair.length !== 2)
    throw new CommandError(
      40397,
      `$arrayToObject requires an array of size 2 arrays, found array of size: ${pair.length}`,
    );
  if (typeof key !== 'string')
    throw refused(40395, 'the first element of a pair of $arrayToObject must be a string', key);
  return [key, value];
}

function entryOf(entry: unknown): [string, unknown] {
  if (!isDocument(entry)) throw refused(40398, 'Unrecognised input type format for $arrayToObject', entry);
  if (Object.keys(entry).length !== 2)
    throw new CommandError(40392, "$arrayToObject requires an object keys of 'k' and 'v'");
  if (!('k' in entry && 'v' in entry))
    throw new CommandError(40393, "$arrayToObject requires the keys 'k' and 'v'");
  if (typeof entry.k !== 'string') throw refused(40394, "the value of 'k' must be of type string", entry.k);
  return [entry.k, entry.v];
}

function indexOf([list, value, start = 0, end]: unknown[], collation: Collation | null): unknown {
  if (isNil(list)) return null;
  const all = listOf(list, 40090, '$indexOfArray requires an array as a first argument');
  const place = (each: unknown) => {
    const at = isNumber(each) ? plainNumber(each) : Number.NaN;
    if (Number.isInteger(at) && at >= 0) return at;
    throw refused(40096, '$indexOfArray requires nonnegative integral indexes', each);
  };
  const [from, to] = [place(start), end === undefined ? all.length : Math.min(all.length, place(end))];
  for (let i = from; i < to; i++) if (compareValues(all[i], value, collation) === 0) return i;
  return -1;
}

function range([start, end, step = 1]: unknown[]): unknown {
  const [from, to] = [
    wholeOf(start, [34443, 34444], '$range: starting value'),
    wholeOf(end, [34445, 34446], '$range: ending value'),
  ];
  const by = wholeOf(step, [34447, 34448], '$range: step value');
  if (by === 0) throw new CommandError(34449, '$range requires a non-zero step value');
  const count = Math.max(0, Math.ceil((to - from) / by));
  new MemoryBudget('$range').take(count * 8);
  spend(count / 20);
  return Array.from({ length: count }, (_, i) => from + i * by);
}

function slice([list, first, second]: unknown[], hasCount: boolean): unknown {
  if (isNil(list) || isNil(first) || (hasCount && isNil(second))) return null;
  const all = listOf(list, 28724, 'First argument to $slice must be an array');
  const at = wholeOf(first, [28725, 28726], 'Second argument to $slice');
  if (!hasCount) return at < 0 ? all.slice(at) : all.slice(0, at);
  const count = wholeOf(second, [28727, 28728], 'Third argument to $slice');
  if (count <= 0) throw new CommandError(28729, `Third argument to $slice must be positive: ${count}`);
  const from = at < 0 ? Math.max(0, all.length + at) : at;
  return all.slice(from, from + count);
}

/** Distinct elements in order. */
function asSet(list: readonly unknown[], collation: Collation | null): Map<string, unknown> {
  spend(list.length);
  const set = new Map<string, unknown>();
  for (const each of list) {
    const key = textKeyOf(each, collation);
    if (!set.has(key)) set.set(key, each);
  }
  return set;
}

const sorted = (set: ReadonlyMap<string, unknown>) => [...set.values()].sort((a, b) => compareValues(a, b));

/** An operator on sets; with `isStrict` null is an error too. */
function sets(
  { codes, name, isStrict = false, from = 2, to }: SetOperator,
  work: (sets: Map<string, unknown>[]) => unknown,
): Operator {
  return {
    from,
    ...(to === undefined ? {} : { to }),
    work: (values, collation) => {
      if (!isStrict && values.some(isNil)) return null;
      const lists = values.map((value, i) =>
        listOf(value, codes[i] ?? (codes.at(-1) as number), `All operands of ${name} must be arrays`),
      );
      return work(lists.map((list) => asSet(list, collation)));
    },
  };
}

interface SetOperator {
  readonly name: string;
  readonly codes: readonly number[];
  readonly isStrict?: boolean;
  readonly from?: number;
  readonly to?: number;
}

type Sets = Map<string, unknown>[];

function intersection([first = new Map(), ...others]: Sets): unknown {
  return sorted(new Map([...first].filter(([key]) => others.every((other) => other.has(key)))));
}

const isSubset = (one: Map<string, unknown>, other: Map<string, unknown>) =>
  [...one.keys()].every((key) => other.has(key));

const truth = (name: string, code: number, isAll: boolean): Operator => ({
  from: 1,
  to: 1,
  work: ([list]) => {
    const all = listOf(list, code, `${name}'s argument must be an array`);
    return isAll ? all.every(isTrue) : all.some(isTrue);
  },
});

function merged(values: unknown[]): unknown {
  const result: Document = {};
  for (const each of values.length === 1 && Array.isArray(values[0]) ? values[0] : values) {
    if (isNil(each)) continue;
    if (!isDocument(each)) throw refused(40400, '$mergeObjects requires object inputs', each);
    for (const [name, value] of entriesOf(each)) setField(result, name, value);
  }
  return result;
}

/** Operators with operands in a row. */
export const LISTS: Readonly<Record<string, Operator>> = {
  $arrayElemAt: { from: 2, to: 2, work: elementAt },
  $arrayToObject: { from: 1, to: 1, work: toObject },
  $concatArrays: {
    work: (values) => {
      if (values.some(isNil)) return null;
      const lists = values.map((each) => listOf(each, 28664, '$concatArrays only supports arrays'));
      new MemoryBudget('$concatArrays').take(lists.reduce((sum, { length }) => sum + length, 0) * 8);
      return lists.flat();
    },
  },
  $first: end('$first', 0),
  $last: end('$last', -1),
  $indexOfArray: { from: 2, to: 4, work: indexOf },
  $isArray: { from: 1, to: 1, work: ([value]) => Array.isArray(value) },
  $objectToArray: {
    from: 1,
    to: 1,
    work: ([value]) => {
      if (isNil(value)) return null;
      if (!isDocument(value)) throw refused(40390, '$objectToArray requires a document input', value);
      return entriesOf(value).map(([k, v]) => ({ k, v }));
    },
  },
  $range: { from: 2, to: 3, work: range },
  $reverseArray: {
    from: 1,
    to: 1,
    work: ([list]) =>
      isNil(list) ? null : listOf(list, 34435, 'The argument to $reverseArray must be an array').toReversed(),
  },
  $size: {
    from: 1,
    to: 1,
    work: ([list]) => listOf(list, 17124, 'The argument to $size must be an array').length,
  },
  $slice: { from: 2, to: 3, work: (values) => slice(values, values.length === 3) },
  $setDifference: sets({ name: '$setDifference', codes: [17048, 17049], to: 2 }, ([one, other]) =>
    [...(one as Map<string, unknown>)].filter(([key]) => !other?.has(key)).map(([, value]) => value),
  ),
  $setEquals: sets({ name: '$setEquals', codes: [17044], isStrict: true }, ([first = new Map(), ...others]) =>
    others.every((other) => isSubset(first, other) && isSubset(other, first)),
  ),
  $setIntersection: sets({ name: '$setIntersection', codes: [17047], from: 0 }, intersection),
  $setIsSubset: sets({ name: '$setIsSubset', codes: [17046, 17042], isStrict: true, to: 2 }, ([one, other]) =>
    isSubset(one as Map<string, unknown>, other as Map<string, unknown>),
  ),
  $setUnion: sets({ name: '$setUnion', codes: [17043], from: 0 }, (all) =>
    sorted(new Map(all.flatMap((set) => [...set]).reverse())),
  ),
  $allElementsTrue: truth('$allElementsTrue', 17040, true),
  $anyElementTrue: truth('$anyElementTrue', 17041, false),
  $mergeObjects: { work: merged },
};

function zipped({ inputs, useLongestLength = false, defaults }: Document): unknown {
  const lists = listOf(inputs, 34461, "'inputs' of $zip must be an array of expressions");
  if (typeof useLongestLength !== 'boolean')
    throw refused(34463, "'useLongestLength' must be a bool", useLongestLength);
  if (defaults !== undefined && !useLongestLength)
    throw new CommandError(34466, "cannot specify defaults unless 'useLongestLength' is true");
  if (lists.some(isNil)) return null;
  const rows = lists.map((each) => listOf(each, 34468, '$zip found a non-array expression in input'));
  if (Array.isArray(defaults) && defaults.length !== rows.length)
    throw new CommandError(34467, 'defaults and inputs must have the same length');
  const lengths = rows.map(({ length }) => length);
  const length = useLongestLength ? Math.max(0, ...lengths) : Math.min(...lengths);
  return Array.from({ length }, (_, i) =>
    rows.map((row, at) => (i < row.length ? row[i] : (defaults?.[at] ?? null)) ?? null),
  );
}

function sortedList({ input, sortBy }: Document, collation: Collation | null): unknown {
  if (isNil(input)) return null;
  const list = listOf(input, 2942504, 'The input argument to $sortArray must be an array');
  if (!isDocument(sortBy)) {
    const direction = plainNumber(sortBy);
    if (direction !== 1 && direction !== -1)
      throw new CommandError(2942507, 'Sort direction must be 1 or -1');
    return list.toSorted((a, b) => direction * compareValues(a ?? null, b ?? null, collation));
  }
  const order = sortOrder(readSort(sortBy), collation);
  const keyed = list.map((each) => ({ each, key: order.keyOf(isDocument(each) ? each : {}) }));
  return keyed.sort((a, b) => order.compare(a.key, b.key)).map(({ each }) => each);
}

/** Operators with named operands. */
export const NAMED_LISTS: Readonly<
  Record<string, (values: Document, collation: Collation | null) => unknown>
> = {
  $zip: zipped,
  $sortArray: sortedList,
};
