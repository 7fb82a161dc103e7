/** Plans how a filter is evaluated: with one index, or by a full scan. */
import { BSONRegExp, type Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { holdsOperators } from '../query/filter.ts';
import { fixedBeginning } from '../query/fixed-beginning.ts';
import { readRegex } from '../query/regular-expressions.ts';
import { isSameCollation } from '../values/collations.ts';
import { isDocument } from '../values/field-paths.ts';
import { equalValues, holdsText, keyOf, TAG, tagOf } from '../values/key-order.ts';
import { isInWildcard, pathKey } from '../wildcard/wildcard-index.ts';
import { afterPrefix, type Collection, type KeyRange } from './documents-store.ts';
import type { Index } from './index-values.ts';
import { mergedRanges, rangesOfSpans } from './key-ranges.ts';
import { planBranches } from './or-plan.ts';
import type { Demand, Plan, Query, Question, SortSpec } from './plan.ts';
import { planSpecial } from './special-plan.ts';

type Found = { readonly plan: Plan; readonly score: number };

/** `$in` with more values is a scan in pieces either way. */
const MAX_RANGES = 10_000;

export function planQuery(collection: Collection, question: Question): Plan {
  const query = queryOf(question);
  const { sort } = question;
  const scan: Plan = { index: null, ranges: [], isReverse: false, isSorted: sort.length === 0 };
  const hinted = hintedIndex(collection, question.hint);
  if (hinted === 'natural') {
    const plan = naturalPlan(Object.entries(question.hint as Document) as never) ?? scan;
    return { ...plan, isSorted: sort.length === 0 || sort[0]?.[0] === '$natural' };
  }
  if (hinted !== null) return hintedPlan(hinted, query);
  const natural = naturalPlan(sort);
  const none: Found = { plan: natural ?? scan, score: natural === null ? 0 : 100 };
  const best = bestOf(collection.indexes, query) ?? none;
  if (natural !== null) return best.score > none.score ? best.plan : none.plan;
  const branched = planBranches(question, (filter) =>
    bestOf(collection.indexes, queryOf({ ...question, filter, sort: [] })),
  );
  return branched !== null && branched.score > best.score ? branched.plan : best.plan;
}

/** The best single index for a query; null: none serves it. */
function bestOf(indexes: readonly Index[], query: Query): Found | null {
  let best: Found | null = null;
  for (const index of indexes) {
    const found = index.isSpecial ? planSpecialIndex(index, query) : planIndex(index, query);
    if (found !== null && found.score > (best?.score ?? 0)) best = found;
  }
  return best;
}

/** The index of a hint; null: no hint. Throws CommandError if it does not exist. */
function hintedIndex({ indexes }: Collection, hint: unknown): Index | 'natural' | null {
  if (hint === undefined || (isDocument(hint) && Object.keys(hint).length === 0)) return null;
  if (isDocument(hint) && '$natural' in hint) return 'natural';
  const found = indexes.find(
    ({ name, spec, isHidden }) =>
      !isHidden && (name === hint || (isDocument(hint) && equalValues(spec.key, hint))),
  );
  if (found !== undefined) return found;
  throw new CommandError(
    'BadValue',
    'error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index',
  );
}

/** The read of an index that serves the query, or of all of it: a sparse one lacks documents. */
function hintedPlan(index: Index, query: Query): Plan {
  const found = index.isSpecial ? specialPlan(index, query) : planIndex(index, query);
  const isSorted = query.sort.length === 0;
  const branched =
    found === null
      ? planBranches(query, (filter) => bestOf([index], queryOf({ ...query, filter, sort: [] })))
      : null;
  if (found === null && branched === null && isOfWildcard(index))
    // A wildcard index misses some documents and contains others several times.
    throw new CommandError(291, `error processing query: the wildcard index ${index.name} cannot serve it`);
  return (
    (found ?? branched)?.plan ?? { index, ranges: [{ low: null, high: null }], isReverse: false, isSorted }
  );
}

/** The filter's conditions on single fields. */
export function queryOf(question: Question): Query {
  const demands = new Map<string, Demand>();
  readDemands(question.filter, demands);
  return { ...question, demands };
}

function naturalPlan([first]: SortSpec): Plan | null {
  if (first?.[0] !== '$natural') return null;
  return { index: null, ranges: [], isReverse: first[1] < 0, isSorted: true };
}

function readDemands(filter: Document, demands: Map<string, Demand>): void {
  for (const [name, value] of Object.entries(filter)) {
    if (name === '$and' && Array.isArray(value)) for (const each of value) readDemands(each, demands);
    if (name.startsWith('$')) continue;
    const demand = demands.get(name) ?? { values: null, low: null, high: null, spans: null };
    demands.set(name, demand);
    for (const [operator, operand] of holdsOperators(value)
      ? Object.entries(value)
      : [[value instanceof BSONRegExp ? '$regex' : '$eq', value] as const]) {
      if (operator === '$regex') demand.spans ??= spansOf([readRegex(operand, value.$options)]);
      else addDemand(demand, operator, operand);
    }
  }
}

/** Null: an index would miss some matches. */
function spansOf(values: readonly unknown[]): Demand['spans'] {
  const spans: NonNullable<Demand['spans']>[number][] = [];
  for (const value of values) {
    if (!(value instanceof BSONRegExp)) {
      if (!isFindable(value)) return null;
      spans.push({ value });
      continue;
    }
    const beginning = fixedBeginning(value);
    if (beginning === null) return null;
    spans.push({ beginning, regex: value });
  }
  return spans.length > MAX_RANGES ? null : spans;
}

/** Whether index keys find such a value: neither an array nor a pattern. */
function isFindable(value: unknown): boolean {
  return !Array.isArray(value) && !(value instanceof BSONRegExp) && value !== undefined;
}

function addDemand(demand: Demand, operator: string, operand: unknown): void {
  if (operator === '$eq' && isFindable(operand)) demand.values ??= [operand];
  if (operator === '$in' && Array.isArray(operand)) {
    if (operand.every(isFindable)) demand.values ??= operand;
    else demand.spans ??= spansOf(operand);
  }
  // Only among values of the same type; types without their own order are left to a scan.
  const tag = tagOf(operand);
  const hasOrder = tag >= TAG.number && tag < TAG.maxKey && tag !== TAG.object && isFindable(operand);
  if (!hasOrder) return;
  if (operator === '$gt' || operator === '$gte')
    demand.low ??= { value: operand, isOpen: operator === '$gt' };
  if (operator === '$lt' || operator === '$lte')
    demand.high ??= { value: operand, isOpen: operator === '$lt' };
}

function planSpecialIndex(index: Index, query: Query): Found | null {
  return index.isHidden || !covers(index, query) ? null : specialPlan(index, query);
}

const isOfWildcard = ({ fields: [first] }: Index) => first?.kind === 'wildcard';

function specialPlan(index: Index, query: Query): Found | null {
  return isOfWildcard(index) ? planWildcard(index, query) : planSpecial(index, query);
}

/** Cheaper than a wildcard index: an index of the field itself. */
const WILDCARD_COST = 11;
const PATH = '$_path';

/** Reads one field of a wildcard index, like an index of the path and that field. */
function planWildcard(index: Index, query: Query): Found | null {
  let best: Found | null = null;
  for (const [path, demand] of query.demands) {
    if (!isInWildcard(index.spec, path) || !isOfLeaves(path, demand)) continue;
    const field = (name: string) => ({ path: name.split('.'), isDescending: false, kind: 'plain' }) as const;
    const one: Index = {
      ...index,
      spec: { ...index.spec, key: { [PATH]: 1, [path]: 1 } },
      fields: [field(PATH), field(path)],
      descending: [],
      isMultikey: true,
    };
    const demandsOf = (value: unknown) =>
      new Map([
        [PATH, { values: [value], low: null, high: null, spans: null }],
        [path, demand],
      ]);
    const found = planIndex(one, { ...query, demands: demandsOf(pathKey(path)) });
    const score = (found?.score ?? 0) - WILDCARD_COST;
    if (!found?.plan.used || score <= (best?.score ?? 0)) continue;
    const used = { ...found.plan.used, demands: demandsOf(path) };
    best = { plan: { ...found.plan, used }, score };
  }
  return best;
}

/**
 * Whether all matches have a key in a wildcard index: it contains no missing fields, no whole
 * documents, and no elements by number.
 */
function isOfLeaves(path: string, { values, spans }: Demand): boolean {
  const all = [...(values ?? []), ...(spans ?? []).flatMap((span) => ('value' in span ? [span.value] : []))];
  return !/(?:^|\.)\d+(?:\.|$)/.test(path) && all.every((value) => value !== null && !isDocument(value));
}

function planIndex(index: Index, query: Query): Found | null {
  if (index.isHidden || !covers(index, query)) return null;
  let prefixes: unknown[][] = [[]];
  let used = 0;
  let fixed = 0;
  for (const { path } of index.fields) {
    const values = query.demands.get(path.join('.'))?.values;
    if (!values || !isComparable(index, query, values) || prefixes.length * values.length > MAX_RANGES) break;
    prefixes = prefixes.flatMap((prefix) => values.map((value) => [...prefix, value]));
    used++;
    if (values.length === 1 && fixed === used - 1) fixed++;
  }
  const next = index.fields[used];
  const demand = next && query.demands.get(next.path.join('.'));
  const spans = spansFor(index, query, { demand, prefixes: prefixes.length });
  const isBounded = Boolean(demand && (demand.low || demand.high)) && isOrdered(index, query, demand);
  const hasRange = spans !== null || isBounded;
  const isOnce = prefixes.length === 1 && index.collation === null && query.collation === null;
  const direction = isOnce ? sortedBy(index, { fixed, sort: query.sort }) : null;
  if (used === 0 && !hasRange && direction === null) return null;
  const isReverse = direction === -1;
  const ranges = prefixes.flatMap((prefix) =>
    spans === null
      ? [rangeOf(index, prefix, hasRange ? (demand as Demand) : null)]
      : rangesOfSpans(index, prefix, spans),
  );
  const isSorted = query.sort.length === 0 || direction !== null;
  const isWhole = index.isUnique && used === index.fields.length;
  const score =
    used * 10 +
    (spans !== null ? 6 : hasRange ? 5 : 0) +
    (isSorted && query.sort.length > 0 ? 4 : 0) +
    (isWhole ? 1000 : 0);
  const plan = {
    index,
    ranges: mergedRanges(ranges),
    isReverse,
    isSorted,
    used: { equal: used, hasRange, demands: query.demands },
  };
  return { plan, score };
}

/** Whether keys are equal if the query considers the values equal. */
function isComparable(index: Index, { collation }: Query, values: readonly unknown[]): boolean {
  return isSameCollation(index.collation, collation) || !values.some(holdsText);
}

/** Whether keys have the order of the values; collated texts do not. */
function isOrdered(index: Index, { collation }: Query, demand: Demand | undefined): boolean {
  const isPlain = index.collation === null && collation === null;
  return isPlain || ![demand?.low?.value, demand?.high?.value].some(holdsText);
}

/** Values and prefixes to read a field's keys by; null: none for this index. */
function spansFor(
  index: Index,
  query: Query,
  { demand, prefixes }: { demand: Demand | undefined; prefixes: number },
): Demand['spans'] {
  const spans = demand?.spans ?? null;
  // A regular expression matches the original characters, whatever the collation.
  if (spans === null || index.collation !== null || spans.length * prefixes > MAX_RANGES / 2) return null;
  const values = spans.flatMap((span) => ('value' in span ? [span.value] : []));
  return isComparable(index, query, values) ? spans : null;
}

/** Whether all documents that match are in the index. */
function covers(index: Index, { demands, filter, collation }: Query): boolean {
  const partial: Document | undefined = index.spec.partialFilterExpression;
  if (partial !== undefined) {
    if (!isSameCollation(index.collation, collation)) return false;
    return Object.entries(partial).every(
      ([name, value]) => name in filter && equalValues(filter[name], value),
    );
  }
  if (!index.isSparse) return true;
  return index.fields.some(({ path }) => {
    const demand = demands.get(path.join('.'));
    const isThere = demand?.spans?.every((span) => 'beginning' in span || span.value !== null);
    return Boolean(
      demand?.low || demand?.high || isThere || demand?.values?.every((value) => value !== null),
    );
  });
}

/** 1 or -1: the direction in which the index gives the order; null: neither. */
function sortedBy(index: Index, { fixed, sort }: { fixed: number; sort: SortSpec }): 1 | -1 | null {
  // A multikey index sorts an array by its smallest or largest element, whatever range is read.
  if (sort.length === 0 || index.isMultikey) return null;
  const constant = new Set(index.fields.slice(0, fixed).map(({ path }) => path.join('.')));
  const wanted = sort.filter(([path]) => !constant.has(path));
  const given = index.fields.slice(fixed);
  if (wanted.length > given.length) return null;
  const turns = wanted.map(([path, direction], i) => {
    const field = given[i];
    return field?.path.join('.') === path ? (field.isDescending ? -direction : direction) : 0;
  });
  if (turns.every((turn) => turn === 1)) return 1;
  return turns.every((turn) => turn === -1) ? -1 : null;
}

function rangeOf(index: Index, prefix: readonly unknown[], demand: Demand | null): KeyRange {
  const start = keyOf(prefix, index.descending, index.collation);
  if (demand === null)
    return prefix.length === 0 ? { low: null, high: null } : { low: start, high: afterPrefix(start) };
  // A document with several keys may satisfy each bound with another key.
  const { low, high } = index.isMultikey && demand.low ? { ...demand, high: null } : demand;
  const isDescending = index.descending[prefix.length] ?? false;
  const keyWith = (value: unknown) => keyOf([...prefix, value], index.descending, index.collation);
  const tag = tagOf((low ?? high)?.value);
  const edge = (byte: number) => Buffer.concat([start, Buffer.from([byte])]);
  const [first, last] = isDescending ? [high, low] : [low, high];
  const typeStart = isDescending ? 255 - tag : tag;
  return {
    low:
      first === null
        ? edge(typeStart)
        : first.isOpen
          ? afterPrefix(keyWith(first.value))
          : keyWith(first.value),
    high:
      last === null
        ? edge(typeStart + 1)
        : last.isOpen
          ? keyWith(last.value)
          : afterPrefix(keyWith(last.value)),
  };
}
