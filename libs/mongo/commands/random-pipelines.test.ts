/**
 * Random pipelines, compared with a plain model: unchanged, split in two by a view, with and without indexes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Document } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const RUNS = process.env.FAULTS === 'full' ? 10_000 : 200;

interface Step {
  readonly stage: Document;
  apply(documents: Document[]): Document[];
}

const number = fc.integer({ min: -2, max: 3 });
const item = fc.record(
  {
    n: fc.oneof(number, fc.constant(null)),
    l: fc.array(number, { maxLength: 3 }),
    g: fc.constantFrom('a', 'b'),
  },
  { requiredKeys: [] },
);

/** Null and missing before numbers, these before texts. */
function compare(one: unknown, other: unknown): number {
  const rank = (value: unknown) => (typeof value === 'string' ? 2 : typeof value === 'number' ? 1 : 0);
  if (rank(one) !== rank(other)) return rank(one) - rank(other);
  return rank(one) === 1
    ? Number(one) - Number(other)
    : rank(one) === 2
      ? String(one) < String(other)
        ? -1
        : one === other
          ? 0
          : 1
      : 0;
}

const isNumber = (value: unknown): value is number => typeof value === 'number';
const sum = (values: unknown[]) => values.filter(isNumber).reduce((a, b) => a + b, 0);

function grouped(documents: Document[], by: string): Document[] {
  const groups = new Map<unknown, Document[]>();
  for (const each of documents) groups.set(each[by] ?? null, [...(groups.get(each[by] ?? null) ?? []), each]);
  return [...groups].map(([_id, all]) => {
    const numbers = all.map(({ n }) => n).filter(isNumber);
    return { _id, c: all.length, n: sum(numbers), most: numbers.length === 0 ? null : Math.max(...numbers) };
  });
}

const step: fc.Arbitrary<Step> = fc.oneof(
  number.map(
    (k): Step => ({
      stage: { $match: { n: { $gte: k } } },
      apply: (all) => all.filter(({ n }) => isNumber(n) && n >= k),
    }),
  ),
  fc.constantFrom('a', 'b').map(
    (g): Step => ({
      stage: { $match: { $expr: { $eq: ['$g', g] } } },
      apply: (all) => all.filter((each) => each.g === g),
    }),
  ),
  fc.tuple(fc.constantFrom('n', 'g', 'c'), fc.constantFrom(1, -1)).map(
    ([field, direction]): Step => ({
      stage: { $sort: { [field]: direction, _id: 1 } },
      apply: (all) =>
        all.toSorted((a, b) => direction * compare(a[field], b[field]) || compare(a._id, b._id)),
    }),
  ),
  fc.integer({ min: 0, max: 2 }).map((k): Step => ({ stage: { $skip: k }, apply: (all) => all.slice(k) })),
  fc
    .integer({ min: 1, max: 4 })
    .map((k): Step => ({ stage: { $limit: k }, apply: (all) => all.slice(0, k) })),
  fc.boolean().map(
    (keeps): Step => ({
      stage: { $unwind: { path: '$l', preserveNullAndEmptyArrays: keeps } },
      apply: (all) =>
        all.flatMap((each) => {
          if (Array.isArray(each.l) && each.l.length > 0) return each.l.map((l: number) => ({ ...each, l }));
          if (isNumber(each.l)) return [each];
          const { l: _, ...rest } = each;
          return keeps ? [rest] : [];
        }),
    }),
  ),
  number.map(
    (k): Step => ({
      stage: { $set: { n: { $cond: [{ $isNumber: '$n' }, { $add: ['$n', k] }, 0] }, 'o.k': k } },
      apply: (all) =>
        all.map((each) => ({ ...each, n: isNumber(each.n) ? each.n + k : 0, o: { ...each.o, k } })),
    }),
  ),
  fc.constantFrom('g', 'n').map(
    (by): Step => ({
      stage: { $group: { _id: `$${by}`, c: { $sum: 1 }, n: { $sum: '$n' }, most: { $max: '$n' } } },
      apply: (all) => grouped(all, by),
    }),
  ),
  fc.constant<Step>({
    stage: { $project: { n: 1, g: 1 } },
    apply: (all) =>
      all.map(({ _id, n, g }) => ({
        _id,
        ...(n === undefined ? {} : { n }),
        ...(g === undefined ? {} : { g }),
      })),
  }),
  fc.constant<Step>({
    stage: { $unset: ['l', 'o'] },
    apply: (all) => all.map(({ l: _l, o: _o, ...rest }) => rest),
  }),
);

/** Fields in one order everywhere. */
const told = (document: Document) =>
  JSON.stringify(document, (_, value) =>
    value?.constructor === Object ? Object.fromEntries(Object.entries(value).sort()) : value,
  );
/** Groups are returned in any order, and so are the results of a later stage. */
const inOrder = (documents: Document[]) => documents.map(told).sort();

test('a pipeline does the same in one piece and through a view, by an index and without', (t) => {
  const documents = new TestDocuments(t);
  fc.assert(
    fc.property(
      fc.array(item, { maxLength: 8 }),
      fc.array(step, { maxLength: 5 }),
      fc.nat(5),
      (items, steps, at) => {
        const stored = items.map((each, i) => ({ _id: i + 1, ...each }));
        for (const name of ['a', 'b', 'v']) documents.run({ drop: name });
        const indexes = [
          { key: { n: 1 }, name: 'n' },
          { key: { g: 1, n: -1 }, name: 'gn' },
        ];
        documents.run({ createIndexes: 'a', indexes });
        documents.run({ create: 'b' });
        if (stored.length > 0) for (const name of ['a', 'b']) documents.insert(name, ...stored);
        // Without a sort the order is undefined, and differs with an index, so no limit may depend on it.
        let isSorted = false;
        for (const { stage } of steps) {
          fc.pre(isSorted || !('$skip' in stage || '$limit' in stage));
          isSorted = '$sort' in stage || (isSorted && !('$group' in stage));
        }
        const stages = steps.map(({ stage }) => stage);
        const expected = inOrder(steps.reduce<Document[]>((all, { apply }) => apply(all), stored));
        documents.run({ create: 'v', viewOn: 'a', pipeline: stages.slice(0, at) });
        assert.deepEqual(inOrder(documents.aggregate('a', stages)), expected);
        assert.deepEqual(inOrder(documents.aggregate('b', stages)), expected);
        assert.deepEqual(inOrder(documents.aggregate('v', stages.slice(at))), expected);
        if (at >= stages.length) assert.deepEqual(inOrder(documents.find('v')), expected);
        assert.equal(
          documents.aggregate('v', [...stages.slice(at), { $count: 'n' }])[0]?.n ?? 0,
          expected.length,
        );
      },
    ),
    { numRuns: RUNS },
  );
});
