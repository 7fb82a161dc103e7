/** `$or` by indexes: each branch is read by its best index, if every branch has one. */
import type { Document } from 'bson';
import { DOCUMENT_STEPS, spend } from '../command-time.ts';
import { isDocument } from '../values/field-paths.ts';
import type { Plan, Question, Scan } from './plan.ts';

/** More branches or ranges are no better than a full scan. */
const MAX_SCANS = 2000;
const MAX_RANGES = 10_000;
/** Maximum nesting of `$or`. */
const MAX_DEPTH = 10;

interface Found {
  readonly plan: Plan;
  readonly score: number;
}

/** Finds the best single index for a filter. */
type FindBest = (filter: Document) => Found | null;

/**
 * Null: there is no `$or`, or one of its branches has no index. The rest of the filter bounds each branch.
 */
export function planBranches({ filter, sort }: Question, best: FindBest): Found | null {
  let found: { scans: Scan[]; score: number } | null = null;
  for (const { branches, rest } of choicesIn(filter)) {
    const scans = scansOf({ branches, rest, depth: 0 }, best);
    if (scans !== null && scans.score > (found?.score ?? 0)) found = scans;
  }
  if (found === null) return null;
  const isSorted = sort.length === 0;
  const plan = { index: null, ranges: [], isReverse: false, isSorted, branches: found.scans };
  // One index for the whole filter is as good as the same one for each branch.
  return { plan, score: found.score - 0.5 };
}

interface Choice {
  readonly branches: readonly Document[];
  /** The filter without it. */
  readonly rest: Document;
}

/** Each `$or` of a filter, at its top or in `$and`. */
function choicesIn(filter: Document): Choice[] {
  const { $or: own, ...others } = filter;
  const choices = Array.isArray(own) && own.every(isDocument) ? [{ branches: own, rest: others }] : [];
  const all: unknown = filter.$and;
  if (!Array.isArray(all)) return choices;
  const inner = all.flatMap((each, i) => {
    if (!isDocument(each) || !Array.isArray(each.$or) || !each.$or.every(isDocument)) return [];
    const { $or: branches, ...rest } = each;
    return [{ branches, rest: { ...filter, $and: all.with(i, rest) } }];
  });
  // Each is planned again.
  return [...choices, ...inner.slice(0, MAX_DEPTH)];
}

function scansOf(
  { branches, rest, depth }: Choice & { depth: number },
  best: FindBest,
): { scans: Scan[]; score: number } | null {
  if (branches.length > MAX_SCANS || depth > MAX_DEPTH) return null;
  const scans: Scan[] = [];
  let ranges = 0;
  let score = Number.POSITIVE_INFINITY;
  for (const branch of branches) {
    const found = branchScans(branch, { rest, depth }, best);
    if (found === null) return null;
    scans.push(...found.scans);
    ranges += found.scans.reduce((sum, each) => sum + each.ranges.length, 0);
    score = Math.min(score, found.score);
    if (scans.length > MAX_SCANS || ranges > MAX_RANGES) return null;
  }
  return { scans, score };
}

function branchScans(
  branch: Document,
  { rest, depth }: { rest: Document; depth: number },
  best: FindBest,
): { scans: Scan[]; score: number } | null {
  // The branch first, because the first condition on a field bounds the range.
  const filter = joined(branch, rest);
  const conditions = Object.keys(filter).length + (Array.isArray(filter.$and) ? filter.$and.length : 0);
  spend(DOCUMENT_STEPS + 10 * conditions);
  const single = best(filter);
  if (single !== null && single.plan.index !== null && isPlainRead(single.plan)) {
    const { index, ranges, used } = single.plan;
    return { scans: [{ index, ranges, used }], score: single.score };
  }
  const { $or: inner, ...others } = branch;
  if (!Array.isArray(inner) || !inner.every(isDocument)) return null;
  return scansOf({ branches: inner, rest: joined(others, rest), depth: depth + 1 }, best);
}

/** Whether its ranges contain all matches; `$near` and `$text` find theirs differently. */
function isPlainRead({ nearest, search }: Plan): boolean {
  return nearest === undefined && search === undefined;
}

/** Combines two filters; common fields go into `$and`. */
function joined(one: Document, other: Document): Document {
  const both = new Map(Object.entries(one));
  const more: Document[] = Array.isArray(one.$and) ? [...one.$and] : [];
  for (const [name, value] of Object.entries(other)) {
    if (name === '$and' && Array.isArray(value)) more.push(...value);
    else if (both.has(name)) more.push(Object.fromEntries([[name, value]]));
    else both.set(name, value);
  }
  if (more.length > 0) both.set('$and', more);
  return Object.fromEntries(both);
}
