/** Random updates of random documents, compared with the manual's text about each operator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Document } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../../testing/document-database.ts';

const RUNS = process.env.FAULTS === 'full' ? 20_000 : 500;

interface Item {
  readonly n?: number | null;
  readonly l?: readonly number[];
  readonly d?: readonly { readonly x: number; readonly y?: number }[];
  readonly o?: { readonly a?: number; readonly b?: number };
}

/** An update, and the resulting document; null: it is refused. */
interface Change {
  readonly u: Document;
  readonly arrayFilters?: readonly Document[];
  apply(item: Item): Item | null;
}

const number = fc.integer({ min: -3, max: 4 });
const numbers = fc.array(number, { maxLength: 4 });
const pair = fc.record({ x: number, y: number }, { requiredKeys: ['x'] });
const item: fc.Arbitrary<Item> = fc.record(
  {
    n: fc.oneof(number, fc.constant(null)),
    l: numbers,
    d: fc.array(pair, { maxLength: 3 }),
    o: fc.record({ a: number, b: number }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
);

/** Arithmetic refuses null, and uses its initial value for a missing field. */
const counts =
  (operator: string, start: number, work: (a: number, b: number) => number) =>
  (by: number): Change => ({
    u: { [operator]: { n: by } },
    apply: (each) => (each.n === null ? null : { ...each, n: work(each.n ?? start, by) }),
  });

const rank = (value: unknown) => (value === null ? 0 : 1);
const keepsExtreme =
  (operator: string, direction: 1 | -1) =>
  (by: number): Change => ({
    u: { [operator]: { n: by } },
    apply: (each) => {
      if (each.n === undefined) return { ...each, n: by };
      const order = rank(each.n) - 1 || (each.n as number) - by;
      return direction * order < 0 ? { ...each, n: by } : each;
    },
  });

const withList = (each: Item, work: (list: readonly number[]) => readonly number[]): Item => ({
  ...each,
  l: work(each.l ?? []),
});

const push = fc
  .record(
    {
      $each: numbers,
      $position: fc.integer({ min: -3, max: 3 }),
      $sort: fc.constantFrom(1, -1),
      $slice: fc.integer({ min: -3, max: 3 }),
    },
    { requiredKeys: ['$each'] },
  )
  .map((modifiers): Change => {
    const { $each: values, $position: position, $sort: direction, $slice: slice } = modifiers;
    return {
      u: { $push: { l: modifiers } },
      apply: (each) =>
        withList(each, (list) => {
          const at =
            position === undefined
              ? list.length
              : position < 0
                ? Math.max(0, list.length + position)
                : position;
          const whole = [...list.slice(0, at), ...values, ...list.slice(at)];
          const sorted = direction === undefined ? whole : whole.toSorted((a, b) => direction * (a - b));
          if (slice === undefined) return sorted;
          return slice < 0 ? sorted.slice(slice) : sorted.slice(0, slice);
        }),
    };
  });

const removed = (each: Item, isGone: (value: number) => boolean): Item =>
  each.l === undefined ? each : withList(each, (list) => list.filter((value) => !isGone(value)));

const change: fc.Arbitrary<Change> = fc.oneof(
  number.map(counts('$inc', 0, (a, b) => a + b)),
  number.map(counts('$mul', 0, (a, b) => a * b)),
  number.map(keepsExtreme('$min', -1)),
  number.map(keepsExtreme('$max', 1)),
  push,
  number.map(
    (value): Change => ({
      u: { $push: { l: value } },
      apply: (each) => withList(each, (list) => [...list, value]),
    }),
  ),
  numbers.map(
    (values): Change => ({
      u: { $addToSet: { l: { $each: values } } },
      apply: (each) =>
        withList(each, (list) => [...list, ...[...new Set(values)].filter((value) => !list.includes(value))]),
    }),
  ),
  fc.constantFrom(1, -1).map(
    (end): Change => ({
      u: { $pop: { l: end } },
      apply: (each) =>
        each.l === undefined
          ? each
          : withList(each, (list) => (end === 1 ? list.slice(0, -1) : list.slice(1))),
    }),
  ),
  number.map(
    (value): Change => ({
      u: { $pull: { l: value } },
      apply: (each) => removed(each, (one) => one === value),
    }),
  ),
  number.map(
    (value): Change => ({
      u: { $pull: { l: { $gte: value } } },
      apply: (each) => removed(each, (one) => one >= value),
    }),
  ),
  numbers.map(
    (values): Change => ({
      u: { $pullAll: { l: values } },
      apply: (each) => removed(each, (one) => values.includes(one)),
    }),
  ),
  fc.tuple(number, number).map(
    ([x, y]): Change => ({
      u: { $pull: { d: { x, y: { $lt: y } } } },
      apply: (each) =>
        each.d === undefined
          ? each
          : { ...each, d: each.d.filter((one) => !(one.x === x && one.y !== undefined && one.y < y)) },
    }),
  ),
  number.map(
    (value): Change => ({
      u: { $set: { 'o.a': value } },
      apply: (each) => ({ ...each, o: { ...each.o, a: value } }),
    }),
  ),
  fc.constant<Change>({
    u: { $unset: { 'o.b': 1, n: 1 } },
    apply: ({ n: _, ...each }) => {
      if (each.o === undefined) return each;
      const { b: _b, ...o } = each.o;
      return { ...each, o };
    },
  }),
  fc.constant<Change>({
    u: { $rename: { n: 'o.b' } },
    apply: (each) => {
      if (!('n' in each)) return each;
      const { n, ...rest } = each;
      return { ...rest, o: { ...each.o, b: n as number } };
    },
  }),
  fc.tuple(number, number).map(
    ([least, by]): Change => ({
      u: { $inc: { 'd.$[big].x': by } },
      arrayFilters: [{ 'big.x': { $gte: least } }],
      apply: (each) =>
        each.d === undefined
          ? null
          : { ...each, d: each.d.map((one) => (one.x >= least ? { ...one, x: one.x + by } : one)) },
    }),
  ),
  number.map(
    (by): Change => ({
      u: { $mul: { 'l.$[]': by } },
      apply: (each) => (each.l === undefined ? null : withList(each, (list) => list.map((one) => one * by))),
    }),
  ),
  fc.tuple(fc.constantFrom('and', 'or', 'xor'), number).map(
    ([operation, value]): Change => ({
      u: { $bit: { n: { [operation]: value } } },
      apply: (each) => {
        if (each.n === null) return null;
        const n = each.n ?? 0;
        return { ...each, n: operation === 'and' ? n & value : operation === 'or' ? n | value : n ^ value };
      },
    }),
  ),
);

/** Without -0, which BSON's integers lack. */
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

test('each operator makes of a document what the manual says', (t) => {
  const documents = new TestDocuments(t);
  fc.assert(
    fc.property(item, fc.array(change, { minLength: 1, maxLength: 4 }), (start, changes) => {
      documents.run({ drop: 'a' });
      documents.run({
        createIndexes: 'a',
        indexes: [
          { key: { l: 1 }, name: 'l' },
          { key: { n: 1 }, name: 'n' },
        ],
      });
      documents.insert('a', { _id: 1, ...start });
      let expected = start;
      for (const { u, arrayFilters, apply } of changes) {
        const statement = { q: { _id: 1 }, u, ...(arrayFilters && { arrayFilters }) };
        const { writeErrors } = documents.ask({ update: 'a', updates: [statement] });
        const next = apply(expected);
        assert.equal(writeErrors === undefined, next !== null, JSON.stringify([expected, u, writeErrors]));
        expected = next ?? expected;
        const [found] = documents.find('a', { _id: 1 });
        assert.deepEqual(plain(found), plain({ _id: 1, ...expected }), JSON.stringify(u));
        if (typeof expected.n === 'number') assert.deepEqual(documents.ids('a', { n: expected.n }), [1]);
        for (const value of expected.l ?? []) assert.deepEqual(documents.ids('a', { l: value }), [1]);
      }
    }),
    { numRuns: RUNS },
  );
});
