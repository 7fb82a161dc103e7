/** Random searches in random texts, compared with a plain implementation of the manual's text on `$text`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const RUNS = process.env.FAULTS === 'full' ? 10_000 : 300;

const word = fc.constantFrom('tea', 'Tea', 'téa', 'cup', 'CUP', 'green', 'pot', 'pots');
const text = fc.array(word, { maxLength: 5 }).map((words) => words.join(' '));
const item = fc.record({ s: text, k: fc.integer({ min: 1, max: 2 }) });
const search = fc.record({
  words: fc.array(word, { maxLength: 3 }),
  without: fc.array(word, { maxLength: 1 }),
  phrases: fc.array(fc.tuple(word, word), { maxLength: 1 }),
  $caseSensitive: fc.boolean(),
  $diacriticSensitive: fc.boolean(),
});

test('a search finds the documents with one of its words, all of its phrases and none of what it denies', (t) => {
  const documents = new TestDocuments(t);
  fc.assert(
    fc.property(fc.array(item, { maxLength: 8 }), search, fc.boolean(), (items, asked, isCompound) => {
      const { words, without, phrases, $caseSensitive, $diacriticSensitive } = asked;
      documents.run({ drop: 'a' });
      const key = isCompound ? { k: 1, s: 'text' } : { s: 'text' };
      documents.run({ createIndexes: 'a', indexes: [{ key, name: 's', default_language: 'none' }] });
      if (items.length > 0) documents.insert('a', ...items.map((each, _id) => ({ _id, ...each })));
      const $search = [
        ...words,
        ...without.map((each) => `-${each}`),
        ...phrases.map((pair) => `"${pair.join(' ')}"`),
      ].join(' ');
      const folded = (value: string) => {
        const cased = $caseSensitive ? value : value.toLowerCase();
        return $diacriticSensitive ? cased : cased.normalize('NFD').replace(/\p{M}/gu, '');
      };
      const has = (whole: string, one: string) => folded(whole).split(' ').includes(folded(one));
      const wanted = [...words, ...phrases.flat()];
      const expected = items.flatMap(({ s, k }, id) => {
        const isFound =
          wanted.some((each) => has(s, each)) &&
          phrases.every((pair) => folded(s).includes(folded(pair.join(' ')))) &&
          !without.some((each) => has(s, each));
        return isFound && (!isCompound || k === 1) ? [id] : [];
      });
      const filter = {
        $text: { $search, $caseSensitive, $diacriticSensitive },
        ...(isCompound ? { k: 1 } : {}),
      };
      assert.deepEqual(documents.ids('a', filter, { sort: { _id: 1 } }), expected, $search);
      const score = { s: { $meta: 'textScore' } };
      const scored = documents
        .find('a', filter, { projection: score, sort: score })
        .map((each) => each.s as number);
      assert.deepEqual(
        scored,
        scored.toSorted((a, b) => b - a),
      );
      assert.ok(scored.every((each) => each > 0));
    }),
    { numRuns: RUNS },
  );
});
