import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Document } from 'bson';
import fc from 'fast-check';
import { TestDocuments } from '../testing/document-database.ts';

const RUNS = process.env.FAULTS === 'full' ? 10_000 : 150;
/** The articles of the manual's `$text`. */
const ARTICLES = [
  'coffee',
  'Coffee Shopping',
  'Baking a cake',
  'baking',
  'Café Con Leche',
  'Сырники',
  'coffee and cream',
  'Cafe con Leche',
].map((subject, i) => ({ _id: i + 1, subject, views: i }));
const SCORE = { score: { $meta: 'textScore' } };

function articles(t: ConstructorParameters<typeof TestDocuments>[0], index: Document = {}): TestDocuments {
  const documents = new TestDocuments(t);
  documents.run({ createIndexes: 'articles', indexes: [{ key: { subject: 'text' }, name: 's', ...index }] });
  documents.insert('articles', ...ARTICLES);
  return documents;
}

describe('the examples of the manual', () => {
  test('words, phrases, words that must not be, case and accents', (t) => {
    const documents = articles(t);
    const idsOf = ($search: string, more: Document = {}) =>
      documents.ids('articles', { $text: { $search, ...more } }, { sort: { _id: 1 } });
    assert.deepEqual(idsOf('coffee'), [1, 2, 7]);
    assert.deepEqual(idsOf('bake coffee cake'), [1, 2, 3, 4, 7]);
    assert.deepEqual(idsOf('"coffee shop"'), [2]);
    assert.deepEqual(idsOf('coffee -shop'), [1, 7]);
    assert.deepEqual(idsOf('-coffee'), []);
    assert.deepEqual(idsOf('leche', { $language: 'es' }), [5, 8]);
    assert.deepEqual(idsOf('сы́рники CAFÉS'), [5, 6, 8]);
    assert.deepEqual(idsOf('Coffee', { $caseSensitive: true }), [2]);
    assert.deepEqual(idsOf('CAFÉ', { $diacriticSensitive: true }), [5]);
    assert.deepEqual(idsOf('"Café Con Leche"', { $diacriticSensitive: true, $caseSensitive: true }), [5]);
    assert.deepEqual(idsOf('the and of'), []);
  });

  test('scores are shown, sorted by and computed with', (t) => {
    const documents = articles(t);
    const filter = { $text: { $search: 'coffee' } };
    assert.deepEqual(documents.find('articles', filter, { projection: SCORE, sort: SCORE, limit: 2 }), [
      { _id: 1, subject: 'coffee', views: 0, score: 1 },
      { _id: 2, subject: 'Coffee Shopping', views: 1, score: 0.75 },
    ]);
    assert.deepEqual(
      documents.find('articles', filter, { projection: { subject: 1, ...SCORE, _id: 0 } })[0],
      {
        subject: 'coffee',
        score: 1,
      },
    );
    const ranked = documents.aggregate('articles', [
      { $match: { $text: { $search: 'cake coffee' }, views: { $gt: 0 } } },
      { $sort: { score: { $meta: 'textScore' }, _id: -1 } },
      { $project: { _id: 1, twice: { $multiply: [2, { $meta: 'textScore' }] } } },
    ]);
    assert.deepEqual(ranked, [
      { _id: 7, twice: 1.5 },
      { _id: 3, twice: 1.5 },
      { _id: 2, twice: 1.5 },
    ]);
    const [{ total }] = documents.aggregate('articles', [
      { $match: filter },
      { $group: { _id: null, total: { $sum: { $meta: 'textScore' } } } },
    ]) as [Document];
    assert.equal(total, 2.5);
    assert.equal(documents.run({ count: 'articles', query: filter }).n, 3);
  });

  test('weights, compound keys, the language of a document and all fields', (t) => {
    const documents = new TestDocuments(t);
    documents.run({
      createIndexes: 'blog',
      indexes: [
        {
          key: { dept: 1, content: 'text', keywords: 'text' },
          weights: { content: 10, keywords: 5 },
          default_language: 'english',
          name: 'TextIndex',
        },
      ],
    });
    documents.insert(
      'blog',
      { _id: 1, dept: 'a', content: 'food', keywords: ['tea', 'food drink'] },
      { _id: 2, dept: 'b', content: 'food' },
      { _id: 3, dept: 'a', content: 'los perros corren', language: 'spanish' },
      { _id: 4, dept: 'a' },
    );
    const filter = { dept: 'a', $text: { $search: 'food' } };
    assert.deepEqual(documents.find('blog', filter, { projection: { ...SCORE, dept: 1 } }), [
      { _id: 1, dept: 'a', score: 11 + 5 * 0.75 },
    ]);
    assert.deepEqual(
      documents.ids('blog', { dept: 'a', $text: { $search: 'perro', $language: 'spanish' } }),
      [3],
    );
    assert.equal(documents.codeOf({ find: 'blog', filter: { $text: { $search: 'food' } } }), 27);
    const [, listed] = documents.run({ listIndexes: 'blog' }).cursor.firstBatch;
    assert.deepEqual(listed, {
      v: 2,
      key: { dept: 1, _fts: 'text', _ftsx: 1 },
      name: 'TextIndex',
      weights: { content: 10, keywords: 5 },
      default_language: 'english',
      language_override: 'language',
      textIndexVersion: 3,
    });
    documents.run({ dropIndexes: 'blog', index: 'TextIndex' });
    documents.run({ createIndexes: 'blog', indexes: [listed] });
    assert.deepEqual(documents.ids('blog', filter), [1]);
    documents.run({ createIndexes: 'all', indexes: [{ key: { '$**': 'text' }, name: 'all' }] });
    documents.insert('all', { _id: 1, a: { b: ['deep water'] } }, { _id: 2, c: 'water', d: 5 });
    assert.deepEqual(documents.ids('all', { $text: { $search: 'waters' } }, { sort: { _id: 1 } }), [1, 2]);
    const { winningPlan } = documents.run({
      explain: { find: 'all', filter: { $text: { $search: 'x' } } },
    }).queryPlanner;
    assert.deepEqual([winningPlan.stage, winningPlan.indexName], ['TEXT_MATCH', 'all']);
  });
});

test('what cannot be is refused by its code', (t) => {
  const documents = articles(t);
  const asked = (filter: Document, collection = 'articles') => documents.codeOf({ find: collection, filter });
  assert.equal(asked({ $text: { $search: 'a' } }, 'none') ?? 0, 0);
  documents.insert('plain', { a: 'text' });
  assert.equal(asked({ $text: { $search: 'a' } }, 'plain'), 27);
  assert.equal(asked({ $text: { $search: 5 } }), 14);
  assert.equal(asked({ $text: { $search: 'a', $language: 'klingon' } }), 2);
  assert.equal(asked({ $or: [{ $text: { $search: 'a' } }] }), 17313);
  const pipeline = [{ $limit: 1 }, { $match: { $text: { $search: 'a' } } }];
  assert.equal(documents.codeOf({ aggregate: 'articles', pipeline, cursor: {} }), 17313);
  const index = (spec: Document) =>
    documents.codeOf({
      createIndexes: 'articles',
      indexes: [{ key: { views: 'text' }, name: 'v', ...spec }],
    });
  assert.equal(index({}), 85);
  assert.equal(index({ key: { a: 1, views: 'text' } }), 67);
  assert.equal(index({ weights: { a: 0 } }), 67);
  assert.equal(index({ default_language: 'klingon' }), 2);
  assert.equal(index({ collation: { locale: 'en' } }), 67);
  assert.equal(
    documents.codeOf({ insert: 'articles', documents: [{ subject: 'a', language: 'klingon' }] }),
    17262,
  );
});

test('a search finds what a model of it finds, whatever was written', (t) => {
  const documents = new TestDocuments(t);
  const word = fc.constantFrom('tea', 'teas', 'Tea', 'ale', 'the', 'walking', 'walked', 'naïf', 'naif');
  const text = fc.array(word, { maxLength: 5 }).map((words) => words.join(' '));
  const stems: Record<string, string> = { teas: 'tea', walking: 'walk', walked: 'walk', naïf: 'naif' };
  const termsOf = (line: string) =>
    new Set(
      line
        .toLowerCase()
        .split(' ')
        .filter((each) => each !== 'the' && each !== '')
        .map((each) => stems[each] ?? each),
    );
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 8 }),
      fc.array(text, { minLength: 1, maxLength: 4 }),
      word,
      (lines, searches, gone) => {
        documents.run({ drop: 'lines' });
        documents.run({ createIndexes: 'lines', indexes: [{ key: { line: 'text' }, name: 'l' }] });
        documents.insert('lines', ...lines.map((line, _id) => ({ _id, line })));
        documents.run({ update: 'lines', updates: [{ q: { _id: 0 }, u: { $set: { line: 'ale tea' } } }] });
        documents.run({ delete: 'lines', deletes: [{ q: { _id: 1 }, limit: 1 }] });
        const there = ['ale tea', ...lines.slice(1)]
          .map((line, id) => ({ id, terms: termsOf(line) }))
          .filter(({ id }) => id !== 1);
        for (const search of searches) {
          const [unwanted = ''] = termsOf(gone);
          const wanted = termsOf(search);
          const expected = there.filter(
            ({ terms }) => !terms.has(unwanted) && [...wanted].some((each) => terms.has(each)),
          );
          const found = documents.ids(
            'lines',
            { $text: { $search: `${search} -${gone}` } },
            { sort: { _id: 1 } },
          );
          assert.deepEqual(
            found,
            expected.map(({ id }) => id),
          );
        }
      },
    ),
    { numRuns: RUNS },
  );
});
