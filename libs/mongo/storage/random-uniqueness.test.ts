/**
 * Random writes to collections with one unique index, compared with the keys of a document according to the
 * manual.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Document } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const RUNS = process.env.FAULTS === 'full' ? 10_000 : 300;

interface Fields {
  readonly n?: number | null;
  readonly s?: string;
  readonly l?: readonly number[];
}

/** A unique index, and the keys of a document in it. */
interface Unique {
  readonly index: Document;
  keysOf(fields: Fields): unknown[];
}

const elements = (list: readonly number[] | undefined) =>
  list === undefined ? [null] : list.length === 0 ? ['none'] : [...new Set(list)];
const folded = new Intl.Collator('en', { sensitivity: 'accent' });
const TEXTS = ['a', 'A', 'á', 'b'] as const;
/** The first text that is equal in the collation. */
const fold = (text: string) => TEXTS.find((each) => folded.compare(each, text) === 0);

const UNIQUE: readonly Unique[] = [
  { index: { key: { n: 1 } }, keysOf: ({ n }) => [n ?? null] },
  { index: { key: { n: 1 }, sparse: true }, keysOf: ({ n }) => (n === undefined ? [] : [n]) },
  { index: { key: { s: -1 } }, keysOf: ({ s }) => [s ?? null] },
  {
    index: { key: { s: 1 }, collation: { locale: 'en', strength: 2 } },
    keysOf: ({ s }) => [s === undefined ? null : fold(s)],
  },
  { index: { key: { l: 1 } }, keysOf: ({ l }) => elements(l) },
  { index: { key: { l: -1, n: 1 } }, keysOf: ({ l, n }) => elements(l).map((each) => [each, n ?? null]) },
  { index: { key: { l: 1 }, sparse: true }, keysOf: ({ l }) => (l === undefined ? [] : elements(l)) },
  {
    index: { key: { s: 1 }, partialFilterExpression: { n: { $gte: 0 } } },
    keysOf: ({ s, n }) => ((n ?? -1) >= 0 ? [s ?? null] : []),
  },
  { index: { key: { n: 1, s: 1 } }, keysOf: ({ n, s }) => [[n ?? null, s ?? null]] },
];

const fields: fc.Arbitrary<Fields> = fc.record(
  {
    n: fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constant(null)),
    s: fc.constantFrom(...TEXTS),
    l: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
const write = fc.record({
  kind: fc.constantFrom('insert', 'insert', 'replace', 'set', 'delete', 'index'),
  at: fc.nat(5),
  fields,
});

/** The collection in the model: documents by their `_id`. */
class Model {
  readonly #unique: Unique;
  readonly items = new Map<number, Fields>();
  isIndexed = true;

  constructor(unique: Unique) {
    this.#unique = unique;
  }

  #keys(fields: Fields): string[] {
    return this.#unique.keysOf(fields).map((key) => JSON.stringify(key));
  }

  /** Whether such a document may have an `_id`. */
  takes(id: number, fields: Fields): boolean {
    if (!this.isIndexed) return true;
    const keys = new Set(this.#keys(fields));
    return ![...this.items].some(
      ([other, each]) => other !== id && this.#keys(each).some((key) => keys.has(key)),
    );
  }

  get isUnique(): boolean {
    const keys = [...this.items.values()].flatMap((each) => this.#keys(each));
    return new Set(keys).size === keys.length;
  }
}

test('a unique index refuses the documents whose keys are there, and no others', (t) => {
  const documents = new TestDocuments(t);
  fc.assert(
    fc.property(
      fc.constantFrom(...UNIQUE),
      fc.array(write, { minLength: 3, maxLength: 20 }),
      (unique, writes) => {
        const model = new Model(unique);
        const { items } = model;
        const index = { ...unique.index, name: 'u', unique: true };
        documents.run({ drop: 'a' });
        documents.run({ createIndexes: 'a', indexes: [index] });
        let lastId = 0;
        const expectCode = (command: Document, isTaken: boolean) =>
          assert.equal(
            documents.codeOf(command),
            isTaken ? undefined : 11000,
            JSON.stringify([unique.index, command, [...items]]),
          );
        for (const { kind, at, fields } of writes) {
          const id = [...items.keys()][at] ?? 0;
          if (kind === 'insert') {
            const isTaken = model.takes(++lastId, fields);
            expectCode({ insert: 'a', documents: [{ _id: lastId, ...fields }] }, isTaken);
            if (isTaken) items.set(lastId, fields);
          } else if (kind === 'delete') {
            documents.run({ delete: 'a', deletes: [{ q: { _id: id }, limit: 1 }] });
            items.delete(id);
          } else if (kind === 'index') {
            if (model.isIndexed) documents.run({ dropIndexes: 'a', index: 'u' });
            const wasIndexed = model.isIndexed;
            model.isIndexed = !wasIndexed && model.isUnique;
            if (!wasIndexed) expectCode({ createIndexes: 'a', indexes: [index] }, model.isIndexed);
          } else if (items.has(id)) {
            const next = kind === 'replace' ? fields : { ...items.get(id), ...fields };
            const isTaken = model.takes(id, next);
            const u = kind === 'replace' ? { _id: id, ...fields } : { $set: fields };
            expectCode({ update: 'a', updates: [{ q: { _id: id }, u }] }, isTaken);
            if (isTaken) items.set(id, next);
          }
          const found = documents.find('a', {}, { sort: { _id: 1 } });
          assert.deepEqual(
            found,
            [...items].map(([_id, each]) => ({ _id, ...each })).sort((a, b) => a._id - b._id),
          );
        }
      },
    ),
    { numRuns: RUNS },
  );
});
