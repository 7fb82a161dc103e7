import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';
import { readCollation } from './collations.ts';

/** A locale with options, two texts, and whether they are equal. */
const PAIRS: readonly (readonly [Document, string, string, boolean])[] = [
  [{ locale: 'en' }, 'a', 'A', false],
  [{ locale: 'en' }, 'é', 'e\u0301', true],
  [{ locale: 'en', strength: 2 }, 'Foo@Example.COM', 'foo@example.com', true],
  [{ locale: 'en', strength: 2 }, 'élan', 'ÉLAN', true],
  [{ locale: 'en', strength: 2 }, 'élan', 'elan', false],
  [{ locale: 'en', strength: 1 }, 'Élan', 'elan', true],
  [{ locale: 'en', strength: 1 }, 'Straße', 'STRASSE', true],
  [{ locale: 'en', strength: 1 }, 'Ærø', 'aero', true],
  [{ locale: 'da', strength: 1 }, 'Ærø', 'aero', false],
  [{ locale: 'da', strength: 1 }, 'Aarhus', 'århus', true],
  [{ locale: 'es', strength: 1 }, 'año', 'ano', false],
  [{ locale: 'sv', strength: 1 }, 'ö', 'Ø', true],
  [{ locale: 'tr', strength: 2 }, 'İzmir', 'izmir', true],
  [{ locale: 'tr', strength: 2 }, 'ISPARTA', 'ısparta', true],
  [{ locale: 'tr', strength: 2 }, 'I', 'i', false],
  [{ locale: 'de@collation=phonebook', strength: 1 }, 'Müller', 'MUELLER', true],
  [{ locale: 'el', strength: 1 }, 'Σίσυφος', 'ΣΙΣΥΦΟΣ', true],
  [{ locale: 'ru', strength: 1 }, 'Ёлка', 'елка', true],
  [{ locale: 'ru', strength: 1 }, 'Йод', 'Иод', false],
  [{ locale: 'ja', strength: 1 }, 'カ', 'か', true],
  [{ locale: 'ko', strength: 3 }, '한국', '한국'.normalize('NFD'), true],
  [{ locale: 'en', numericOrdering: true }, 'part007', 'part7', true],
  [{ locale: 'en', numericOrdering: true }, 'part70', 'part7', false],
  [{ locale: 'en', alternate: 'shifted' }, 'co-op', 'coop', true],
  [{ locale: 'en', strength: 1, caseLevel: true }, 'É', 'E', true],
  [{ locale: 'en', strength: 1, caseLevel: true }, 'e', 'E', false],
  [{ locale: 'en', strength: 2 }, 'ab', 'a\u0000b', true],
];

test('texts have one form exactly if their collation does not tell them apart', () => {
  for (const [spec, one, other, isSame] of PAIRS) {
    const collation = readCollation(spec);
    const what = `${JSON.stringify(spec)} ${one} ${other}`;
    assert.equal(collation?.compare(one, other) === 0, isSame, `order: ${what}`);
    assert.equal(collation?.formOf(one) === collation?.formOf(other), isSame, `form: ${what}`);
  }
});

test('the letters of the languages of Europe have forms as their collation has them', () => {
  const blocks = [
    /[A-Za-z]/,
    /[\u00c0-\u01c3\u01cd-\u01f0\u01f4-\u024f]/,
    /[\u0386-\u03ce]/,
    /[\u0400-\u045f]/,
  ];
  const letters = Array.from({ length: 0x460 }, (_, i) => String.fromCharCode(i)).filter((letter) =>
    blocks.some((block) => block.test(letter)),
  );
  for (const locale of ['en', 'de', 'da', 'sv', 'es', 'tr', 'pl', 'hr', 'el', 'ru']) {
    for (const strength of [1, 2, 3]) {
      const collation = readCollation({ locale, strength });
      assert.ok(collation);
      const known = letters.filter((letter) => /\p{L}/u.test(letter)).sort((a, b) => collation.compare(a, b));
      known.slice(1).forEach((letter, i) => {
        const before = known[i] as string;
        const isSame = collation.compare(before, letter) === 0;
        const what = `${locale} ${strength} ${before} ${letter}`;
        assert.equal(collation.formOf(before) === collation.formOf(letter), isSame, what);
      });
    }
  }
});

test('what cannot be had is refused by its name', () => {
  const refused: readonly (readonly [Document, RegExp])[] = [
    [{ strength: 2 }, /locale' is missing/],
    [{ locale: 'tlh' }, /'tlh'/],
    [{ locale: 'en-US' }, /did you mean 'en_US'/],
    [{ locale: 'en@collation=phonebook' }, /invalid/],
    [{ locale: 'en', strength: 4 }, /strength: 4/],
    [{ locale: 'en', backwards: true }, /backwards/],
    [{ locale: 'en', maxVariable: 'space' }, /maxVariable/],
    [{ locale: 'en', caseLevel: true }, /caseLevel/],
    [{ locale: 'en', strenght: 2 }, /'collation.strenght' is an unknown field/],
    [{ locale: 5 }, /locale/],
  ];
  for (const [spec, message] of refused) assert.throws(() => readCollation(spec), { message });
  assert.equal(readCollation({ locale: 'simple' }), null);
});

describe('commands with a collation', () => {
  const collation = { locale: 'en', strength: 2 };
  const open = (t: TestContext) => {
    const documents = new TestDocuments(t);
    const words = ['b', 'A', 'a', 'C', 'á'];
    documents.insert('words', ...words.map((word, _id) => ({ _id, word, list: [word, { word }] })));
    return documents;
  };

  test('find, count, tell apart and sort', (t) => {
    const documents = open(t);
    const ids = (filter: Document, more: Document = {}) =>
      documents.ids('words', filter, { collation, ...more });
    assert.deepEqual(ids({ word: 'A' }), [1, 2]);
    assert.deepEqual(ids({ word: { $in: ['A', 'c'] } }), [1, 2, 3]);
    assert.deepEqual(ids({ word: { $nin: ['A', 'c'] } }), [0, 4]);
    assert.deepEqual(ids({ word: { $ne: 'a' } }), [0, 3, 4]);
    assert.deepEqual(ids({ word: { $gt: 'A', $lte: 'B' } }), [0, 4]);
    assert.deepEqual(ids({ list: { $all: ['B', { word: 'B' }] } }), [0]);
    assert.deepEqual(ids({ list: { $elemMatch: { word: 'c' } } }), [3]);
    assert.deepEqual(ids({ $expr: { $eq: ['$word', 'C'] } }), [3]);
    assert.deepEqual(ids({ word: /^A/ }), [1]);
    assert.deepEqual(ids({}, { sort: { word: -1 } }), [3, 0, 4, 1, 2]);
    assert.equal(documents.run({ count: 'words', query: { word: 'A' }, collation }).n, 2);
    assert.deepEqual(documents.run({ distinct: 'words', key: 'word', collation }).values, [
      'b',
      'A',
      'C',
      'á',
    ]);
    const projection = { 'list.$': 1 };
    assert.deepEqual(documents.find('words', { list: 'c' }, { collation, projection }), [
      { _id: 3, list: ['C'] },
    ]);
  });

  test('sort numbers within texts, and upper case first', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('files', ...['f10', 'f2', 'F2'].map((_id) => ({ _id })));
    const order = (more: Document) =>
      documents.ids('files', {}, { sort: { _id: 1 }, collation: { locale: 'en', ...more } });
    assert.deepEqual(order({}), ['f10', 'f2', 'F2']);
    assert.deepEqual(order({ numericOrdering: true, caseFirst: 'upper' }), ['F2', 'f2', 'f10']);
  });

  test('update, remove and aggregate', (t) => {
    const documents = open(t);
    const q = { word: 'A' };
    const u = { $set: { seen: true }, $pull: { list: 'A' } };
    assert.equal(documents.run({ update: 'words', updates: [{ q, u, multi: true, collation }] }).n, 2);
    assert.deepEqual(documents.find('words', { _id: 2 })[0]?.list, [{ word: 'a' }]);
    const found = documents.run({
      findAndModify: 'words',
      query: { word: 'B' },
      update: { $set: { x: 1 } },
      collation,
    });
    assert.equal(found.value._id, 0);
    const groups = documents.aggregate(
      'words',
      [
        { $match: { word: { $lt: 'B' } } },
        { $group: { _id: '$word', n: { $sum: 1 } } },
        { $sort: { _id: 1 } },
      ],
      { collation },
    );
    assert.deepEqual(groups, [
      { _id: 'A', n: 2 },
      { _id: 'á', n: 1 },
    ]);
    documents.insert('others', { _id: 1, word: 'c' });
    const lookup = { from: 'words', localField: 'word', foreignField: 'word', as: 'found' };
    const [joined] = documents.aggregate('others', [{ $lookup: lookup }], { collation });
    assert.equal(joined?.found[0]._id, 3);
    assert.equal(documents.run({ delete: 'words', deletes: [{ q, limit: 0, collation }] }).n, 2);
    assert.deepEqual(documents.ids('words', {}), [0, 3, 4]);
  });
});
