/**
 * Random histories of a collection, compared with a plain model: writes, index changes, and query results
 * with their order, with and without a collation. The model has no keys or plans.
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

/** A filter, and its meaning. */
interface Question {
  readonly filter: Document;
  holds(item: Item, texts: Texts): boolean;
}
/** Below 0: the first comes before the second. */
type Texts = (one: string, other: string) => number;

interface Find {
  readonly question: Question;
  readonly order: 'n' | 's' | 'l' | null;
  readonly next: 'n' | 's' | null;
  readonly direction: 1 | -1;
  /** Through a view of documents whose `n` is not below 0. */
  readonly isOfView: boolean;
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
  { name: 'partial', key: { l: 1 }, partialFilterExpression: { s: 'a' } },
  { name: 'plane', key: { p: '2d', n: 1 } },
  { name: 'hidden', key: { n: 1, l: -1 }, hidden: true },
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

const isBetween = (value: number, one: number, other: number) =>
  value >= Math.min(one, other) && value <= Math.max(one, other);
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
    holds: (each: Item, texts: Texts) =>
      each.s !== undefined && texts(each.s, s) === 0 && (n === null || isLike(each.n, n)),
  })),
  fc.array(text, { minLength: 1, maxLength: 2 }).map((list) => ({
    filter: { s: { $in: list } },
    holds: (each: Item, texts: Texts) => list.some((s) => each.s !== undefined && texts(each.s, s) === 0),
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
  number.map((n) => ({ filter: { n: { $ne: n } }, holds: (each: Item) => !isLike(each.n, n) })),
  fc.array(fc.oneof(number, fc.constant(null)), { maxLength: 2 }).map((list) => ({
    filter: { n: { $nin: list } },
    holds: (each: Item) => !list.some((n) => isLike(each.n, n)),
  })),
  number.map((n) => ({
    filter: { n: { $not: { $gt: n } } },
    holds: (each: Item) => !((each.n ?? -99) > n),
  })),
  fc.boolean().map((isThere) => ({
    filter: { n: { $exists: isThere } },
    holds: (each: Item) => (each.n !== undefined) === isThere,
  })),
  fc.constant({ filter: { n: { $type: 'null' } }, holds: ({ n }: Item) => n === null }),
  text.map((s) => ({
    filter: { s: { $gt: s } },
    holds: (each: Item, texts: Texts) => each.s !== undefined && texts(each.s, s) > 0,
  })),
  fc.constantFrom('a', 'aB', 'B', 'á').map((start) => ({
    filter: { s: { $regex: `^${start}` } },
    holds: ({ s }: Item) => s?.startsWith(start) ?? false,
  })),
  fc.tuple(text, number).map(([start, n]) => ({
    filter: { n, s: { $in: [/^a/, new RegExp(`^${start}.?`), 'Z'] } },
    holds: (each: Item, texts: Texts) =>
      isLike(each.n, n) &&
      each.s !== undefined &&
      (/^a/.test(each.s) || each.s.startsWith(start) || texts(each.s, 'Z') === 0),
  })),
  fc.tuple(number, text, number).map(([n, s, l]) => ({
    filter: { $or: [{ n }, { s: new RegExp(`^${s}`) }, { $or: [{ l }, { n: { $gt: n } }] }] },
    holds: (each: Item) =>
      isLike(each.n, n) ||
      (each.s?.startsWith(s) ?? false) ||
      (each.l?.includes(l) ?? false) ||
      (each.n ?? -99) > n,
  })),
  fc.tuple(number, text, number).map(([n, s, l]) => ({
    filter: { n: { $gte: n }, $and: [{ $or: [{ l }, { s }] }] },
    holds: (each: Item, texts: Texts) =>
      (each.n ?? -99) >= n &&
      ((each.l?.includes(l) ?? false) || (each.s !== undefined && texts(each.s, s) === 0)),
  })),
  fc.array(number, { minLength: 1, maxLength: 2 }).map((list) => ({
    filter: { l: { $all: list } },
    holds: ({ l = [] }: Item) => list.every((each) => l.includes(each)),
  })),
  fc.nat(3).map((size) => ({ filter: { l: { $size: size } }, holds: ({ l }: Item) => l?.length === size })),
  fc.tuple(number, number).map(([a, b]) => ({
    filter: { l: { $elemMatch: { $gt: a, $lt: b } } },
    holds: ({ l = [] }: Item) => l.some((each) => each > a && each < b),
  })),
  fc.tuple(text, number).map(([s, l]) => ({
    filter: { s: 'a', l, $nor: [{ s }] },
    holds: (each: Item, texts: Texts) =>
      each.s !== undefined &&
      texts(each.s, 'a') === 0 &&
      texts(each.s, s) !== 0 &&
      (each.l?.includes(l) ?? false),
  })),
  fc.tuple(pair, pair).map(([[x1, y1], [x2, y2]]) => ({
    filter: {
      p: {
        $geoWithin: {
          $box: [
            [x1, y1],
            [x2, y2],
          ],
        },
      },
    },
    holds: ({ p }: Item) => p !== undefined && isBetween(p[0], x1, x2) && isBetween(p[1], y1, y2),
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
  order: fc.constantFrom('n', 's', 'l', null),
  next: fc.constantFrom('n', 's', null),
  isOfView: fc.constantFrom(false, false, true),
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
const byBytes: Texts = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));

/** The sort value of an item: for a list the least or the greatest element. */
function sortValue(item: Item, order: 'n' | 's' | 'l', direction: 1 | -1): unknown {
  if (order !== 'l' || item.l === undefined) return item[order];
  return item.l.length === 0 ? [] : direction * Math.min(...item.l.map((each) => direction * each));
}

/** Order of values: empty lists, missing values, numbers, texts. */
function compare(one: unknown, other: unknown, texts: Texts): number {
  const rank = (value: unknown) =>
    typeof value === 'string' ? 3 : typeof value === 'number' ? 2 : Array.isArray(value) ? 0 : 1;
  if (rank(one) !== rank(other)) return rank(one) - rank(other);
  return rank(one) === 3
    ? texts(String(one), String(other))
    : rank(one) === 2
      ? Number(one) - Number(other)
      : 0;
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
    documents.run({ drop: 'v' });
    documents.run({ create: 'v', viewOn: 'a', pipeline: [{ $match: { n: { $gte: 0 } } }] });
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

  #that({ holds }: Question, texts = byBytes): Item[] {
    return [...this.#items.values()].filter((each) => holds(each, texts));
  }

  #find({ question, order, next, direction, skip, limit, strength: asked, isOfView }: Find): void {
    const { filter } = question;
    // A view has its own collation, none here.
    const strength = isOfView ? 0 : asked;
    const collator = strength === 0 ? null : COLLATORS[strength];
    const texts: Texts = collator === null ? byBytes : (a, b) => collator.compare(a, b);
    const found = this.#that(question, texts).filter(({ n }) => !isOfView || (n ?? -1) >= 0);
    const fields = [...new Set([order, next])].filter((each) => each !== null);
    const byOrder = (a: Item, b: Item) => {
      for (const field of fields) {
        const [one, other] = [a, b].map((each) => sortValue(each, field, direction));
        const turn = direction * compare(one, other, texts);
        if (turn !== 0) return turn;
      }
      return a._id - b._id;
    };
    const name = isOfView ? 'v' : 'a';
    const collation = strength === 0 ? {} : { collation: { locale: 'en', strength } };
    const sort = { ...Object.fromEntries(fields.map((field) => [field, direction])), _id: 1 };
    const command = { find: name, filter, sort, skip, limit, batchSize: 1000, ...collation };
    const ids = this.#documents.run(command).cursor.firstBatch.map(({ _id }: Document) => _id);
    const all = found.sort(byOrder).map(({ _id }) => _id);
    assert.deepEqual(ids, all.slice(skip, limit === 0 ? undefined : skip + limit));
    assert.equal(this.#documents.run({ count: name, query: filter, ...collation }).n, all.length);
    const { values } = this.#documents.run({ distinct: name, key: 'l', query: filter, ...collation });
    assert.deepEqual(new Set(values), new Set(found.flatMap(({ l = [] }) => l)));
    if (!isOfView) this.#assertIndexUsed(filter, strength);
  }

  /** An equal number is found by an index of numbers, and points in a circle by one of cells. */
  #assertIndexUsed(filter: Document, strength: Find['strength']): void {
    const has = (name: string) => INDEXES.some((each, i) => each.name === name && this.#indexes.has(i));
    if (has('n') && has('l') && strength === 0 && filter.$or?.length === 2)
      assert.equal(this.#documents.sourceOf({ find: 'a', filter }).stage, 'OR');
    const isServed =
      (has('n') && typeof filter.n === 'number') ||
      (has(filter.p?.$geoWithin?.$box ? 'plane' : 'sphere') && filter.p !== undefined) ||
      (has('folded') && strength === 2 && typeof filter.s === 'string');
    if (!isServed) return;
    const collation = strength === 0 ? {} : { collation: { locale: 'en', strength } };
    assert.equal(this.#documents.sourceOf({ find: 'a', filter, ...collation }).stage, 'IXSCAN');
  }

  /** `$near` returns documents by distance, if there is an index. */
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

/** Throws for the shortest history found in which a collection differs from the model. */
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
