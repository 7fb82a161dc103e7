/**
 * Random histories of a collection, held against a plain model: what is written, which indexes come and go,
 * and what is found, in which order, with and without a collation. The model knows nothing of keys and plans.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Document } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from './document-database.ts';

interface Item {
  readonly _id: number;
  readonly n?: number | null;
  readonly s?: string;
  readonly l?: readonly number[];
  readonly p?: readonly [lng: number, lat: number];
}

type Step =
  | { readonly kind: 'insert'; readonly item: Omit<Item, '_id'> }
  | { readonly kind: 'update'; readonly filter: Question; readonly change: Document; apply(item: Item): Item }
  | { readonly kind: 'remove'; readonly filter: Question }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'drop'; readonly index: number }
  | { readonly kind: 'find'; readonly find: Find };

/** A filter, and what it means. */
interface Question {
  readonly filter: Document;
  holds(item: Item, same: Same): boolean;
}
type Same = (one: string, other: string) => boolean;

interface Find {
  readonly question: Question;
  readonly order: 'n' | 's' | null;
  readonly direction: 1 | -1;
  readonly skip: number;
  readonly limit: number;
  readonly strength: 0 | 1 | 2;
}

const EARTH_RADIUS = 6_378_100;
const INDEXES: readonly Document[] = [
  { name: 'n', key: { n: 1 } },
  { name: 's', key: { s: 1 } },
  { name: 'sn', key: { s: -1, n: 1 } },
  { name: 'l', key: { l: 1 } },
  { name: 'nl', key: { n: -1, l: 1 } },
  { name: 'sparse', key: { n: 1, s: 1 }, sparse: true },
  { name: 'folded', key: { s: 1 }, collation: { locale: 'en', strength: 2 } },
  { name: 'plain', key: { s: 1, l: 1 }, collation: { locale: 'en', strength: 1 } },
  { name: 'sphere', key: { p: '2dsphere' } },
  { name: 'near', key: { n: 1, p: '2dsphere' } },
  { name: 'hashed', key: { s: 'hashed' } },
];

const number = fc.integer({ min: -2, max: 3 });
const text = fc.constantFrom('a', 'A', 'á', 'b', 'B', 'ab', 'aB', 'Z', '');
const pair = fc.tuple(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -3, max: 3 }));
const item: fc.Arbitrary<Omit<Item, '_id'>> = fc.record(
  {
    n: fc.oneof(number, fc.constant(null)),
    s: text,
    l: fc.array(number, { maxLength: 3 }),
    p: pair,
  },
  { requiredKeys: [] },
);

/** Degrees between two points of the sphere. */
function degreesBetween(
  [lng1, lat1]: readonly [number, number],
  [lng2, lat2]: readonly [number, number],
): number {
  const rad = (degrees: number) => (degrees * Math.PI) / 180;
  const h =
    Math.sin(rad(lat2 - lat1) / 2) ** 2 +
    Math.cos(rad(lat1)) * Math.cos(rad(lat2)) * Math.sin(rad(lng2 - lng1) / 2) ** 2;
  return (2 * Math.asin(Math.min(1, Math.sqrt(h))) * 180) / Math.PI;
}

const isLike = (value: number | null | undefined, wanted: number | null) => (value ?? null) === wanted;
const question: fc.Arbitrary<Question> = fc.oneof(
  fc.constant({ filter: {}, holds: () => true }),
  fc
    .oneof(number, fc.constant(null))
    .map((n) => ({ filter: { n }, holds: (each: Item) => isLike(each.n, n) })),
  number.map((n) => ({ filter: { n: { $gt: n } }, holds: (each: Item) => (each.n ?? -99) > n })),
  fc.tuple(number, number).map(([a, b]) => ({
    filter: { n: { $gte: a, $lt: b } },
    holds: ({ n }: Item) => n !== null && n !== undefined && n >= a && n < b,
  })),
  fc.array(fc.oneof(number, fc.constant(null)), { minLength: 1, maxLength: 3 }).map((list) => ({
    filter: { n: { $in: list } },
    holds: (each: Item) => list.some((n) => isLike(each.n, n)),
  })),
  fc.tuple(text, fc.option(number)).map(([s, n]) => ({
    filter: n === null ? { s } : { s, n },
    holds: (each: Item, same: Same) =>
      each.s !== undefined && same(each.s, s) && (n === null || isLike(each.n, n)),
  })),
  fc.array(text, { minLength: 1, maxLength: 2 }).map((list) => ({
    filter: { s: { $in: list } },
    holds: (each: Item, same: Same) => list.some((s) => each.s !== undefined && same(each.s, s)),
  })),
  number.map((l) => ({ filter: { l }, holds: (each: Item) => each.l?.includes(l) ?? false })),
  fc.tuple(number, number).map(([a, b]) => ({
    filter: { l: { $gt: a, $lt: b } },
    holds: ({ l = [] }: Item) => l.some((each) => each > a) && l.some((each) => each < b),
  })),
  fc.tuple(pair, fc.constantFrom(0.9, 1.7, 2.6)).map(([center, degrees]) => ({
    filter: { p: { $geoWithin: { $centerSphere: [center, (degrees * Math.PI) / 180] } } },
    holds: ({ p }: Item) => p !== undefined && degreesBetween(p, center) <= degrees,
  })),
  fc.tuple(number, number).map(([n, l]) => ({
    filter: { $or: [{ n }, { l }] },
    holds: (each: Item) => isLike(each.n, n) || (each.l?.includes(l) ?? false),
  })),
);

const change: fc.Arbitrary<Pick<Extract<Step, { kind: 'update' }>, 'change' | 'apply'>> = fc.oneof(
  number.map((n) => ({ change: { $set: { n } }, apply: (each: Item) => ({ ...each, n }) })),
  text.map((s) => ({ change: { $set: { s } }, apply: (each: Item) => ({ ...each, s }) })),
  pair.map((p) => ({ change: { $set: { p } }, apply: (each: Item) => ({ ...each, p }) })),
  number.map((l) => ({
    change: { $push: { l } },
    apply: (each: Item) => ({ ...each, l: [...(each.l ?? []), l] }),
  })),
  number.map((l) => ({
    change: { $pull: { l } },
    apply: (each: Item) => (each.l === undefined ? each : { ...each, l: each.l.filter((one) => one !== l) }),
  })),
  fc.constant({ change: { $unset: { n: 1 } }, apply: ({ n: _, ...each }: Item) => each }),
);

const find: fc.Arbitrary<Find> = fc.record({
  question,
  order: fc.constantFrom('n', 's', null),
  direction: fc.constantFrom(1, -1),
  skip: fc.constantFrom(0, 0, 1),
  limit: fc.constantFrom(0, 0, 2),
  strength: fc.constantFrom(0, 0, 1, 2),
});

const index = fc.nat(INDEXES.length - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: item.map((each) => ({ kind: 'insert' as const, item: each })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(question, change)
      .map(([filter, each]) => ({ kind: 'update' as const, filter, ...each })),
  },
  { weight: 1, arbitrary: question.map((filter) => ({ kind: 'remove' as const, filter })) },
  { weight: 2, arbitrary: index.map((each) => ({ kind: 'index' as const, index: each })) },
  { weight: 1, arbitrary: index.map((each) => ({ kind: 'drop' as const, index: each })) },
  { weight: 5, arbitrary: find.map((each) => ({ kind: 'find' as const, find: each })) },
);

const COLLATORS = {
  1: new Intl.Collator('en', { sensitivity: 'base' }),
  2: new Intl.Collator('en', { sensitivity: 'accent' }),
};
const sameBytes: Same = (one, other) => one === other;

/** Order of a field's values: those that are not there first, then numbers, then texts. */
function compare(one: unknown, other: unknown, texts: (a: string, b: string) => number): number {
  const rank = (value: unknown) => (typeof value === 'string' ? 2 : typeof value === 'number' ? 1 : 0);
  if (rank(one) !== rank(other)) return rank(one) - rank(other);
  return rank(one) === 2 ? texts(String(one), String(other)) : Number(one ?? 0) - Number(other ?? 0);
}

class History {
  readonly #documents: TestDocuments;
  readonly #items = new Map<number, Item>();
  readonly #indexes = new Set<number>();
  #lastId = 0;

  constructor(documents: TestDocuments) {
    this.#documents = documents;
    documents.run({ drop: 'a' });
    documents.run({ create: 'a' });
  }

  run(each: Step): void {
    const documents = this.#documents;
    switch (each.kind) {
      case 'insert': {
        const made = { _id: ++this.#lastId, ...each.item };
        documents.insert('a', made);
        this.#items.set(made._id, made);
        return;
      }
      case 'update':
        documents.run({ update: 'a', updates: [{ q: each.filter.filter, u: each.change, multi: true }] });
        for (const found of this.#that(each.filter)) this.#items.set(found._id, each.apply(found));
        return;
      case 'remove':
        documents.run({ delete: 'a', deletes: [{ q: each.filter.filter, limit: 0 }] });
        for (const { _id } of this.#that(each.filter)) this.#items.delete(_id);
        return;
      case 'index':
        documents.run({ createIndexes: 'a', indexes: [INDEXES[each.index]] });
        this.#indexes.add(each.index);
        return;
      case 'drop':
        if (this.#indexes.delete(each.index))
          documents.run({ dropIndexes: 'a', index: INDEXES[each.index]?.name });
        return;
      case 'find':
        this.#find(each.find);
    }
  }

  #that({ holds }: Question, same = sameBytes): Item[] {
    return [...this.#items.values()].filter((each) => holds(each, same));
  }

  #find({ question: { filter, holds }, order, direction, skip, limit, strength }: Find): void {
    const collator = strength === 0 ? null : COLLATORS[strength];
    const same: Same = collator === null ? sameBytes : (a, b) => collator.compare(a, b) === 0;
    const texts = (a: string, b: string) =>
      collator === null ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : collator.compare(a, b);
    const found = this.#that({ filter, holds }, same);
    const byOrder = (a: Item, b: Item) =>
      (order === null ? 0 : direction * compare(a[order], b[order], texts)) || a._id - b._id;
    const collation = strength === 0 ? {} : { collation: { locale: 'en', strength } };
    const command = {
      find: 'a',
      filter,
      sort: { ...(order && { [order]: direction }), _id: 1 },
      ...collation,
    };
    const ids = this.#documents
      .run({ ...command, skip, limit, batchSize: 1000 })
      .cursor.firstBatch.map(({ _id }: Document) => _id);
    const all = found.sort(byOrder).map(({ _id }) => _id);
    assert.deepEqual(ids, all.slice(skip, limit === 0 ? undefined : skip + limit));
    this.#assertIndexUsed(filter, strength);
  }

  /** An equal number is found by an index of numbers, and what is within a circle by one of cells. */
  #assertIndexUsed(filter: Document, strength: Find['strength']): void {
    const has = (name: string) => INDEXES.some((each, i) => each.name === name && this.#indexes.has(i));
    const isServed =
      (has('n') && typeof filter.n === 'number') ||
      (has('sphere') && filter.p !== undefined) ||
      (has('folded') && strength === 2 && typeof filter.s === 'string');
    if (!isServed) return;
    const collation = strength === 0 ? {} : { collation: { locale: 'en', strength } };
    assert.equal(this.#documents.sourceOf({ find: 'a', filter, ...collation }).stage, 'IXSCAN');
  }

  /** Those that are near to a point come by their distance, where an index has them. */
  assertNearest(): void {
    if (!INDEXES.some(({ name }, i) => name === 'sphere' && this.#indexes.has(i))) return;
    const near = { $nearSphere: { $geometry: { type: 'Point', coordinates: [0.3, 0.2] } } };
    const distanceOf = ({ p }: Item) =>
      (degreesBetween(p as [number, number], [0.3, 0.2]) * Math.PI * EARTH_RADIUS) / 180;
    const found = this.#documents.find('a', { p: near }) as Item[];
    const distances = found.map(distanceOf);
    assert.deepEqual(
      distances,
      distances.toSorted((a, b) => a - b),
    );
    const there = [...this.#items.values()].filter(({ p }) => p !== undefined);
    assert.deepEqual(found.map(({ _id }) => _id).sort(), there.map(({ _id }) => _id).sort());
  }
}

/** Throws for the shortest history that it can find in which a collection differs from the model. */
export function checkHistories(t: Pick<TestContext, 'after'>, runs: number): void {
  const documents = new TestDocuments(t);
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), (steps) => {
      const history = new History(documents);
      for (const each of steps) history.run(each);
      history.assertNearest();
    }),
    { numRuns: runs },
  );
}
