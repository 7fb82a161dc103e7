/** Fields keep their order whatever their names, according to the manual's page on documents. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Document } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

type Entries = readonly (readonly [string, unknown])[];
/** As sent by a driver. */
const mapOf = (entries: Entries) => new Map(entries) as unknown as Document;

/** `{_id: 1, b: 1, 2: 2, a: 3, 1: {z: 1, 0: 2}, __proto__: {x: 1}}`, in this order. */
const FIELDS: Entries = [
  ['_id', 1],
  ['b', 1],
  ['2', 2],
  ['a', 3],
  [
    '1',
    mapOf([
      ['z', 1],
      ['0', 2],
    ]),
  ],
  ['__proto__', { x: 1 }],
];
const NAMES = FIELDS.map(([name]) => name);

function stored(t: TestContext): TestDocuments {
  const documents = new TestDocuments(t);
  documents.insert('a', mapOf(FIELDS));
  return documents;
}

/** The names in the document, and in its field `1`, in the order of its bytes. */
function namesIn(documents: TestDocuments, stages: Document[] = []): { outer: unknown; inner: unknown } {
  const keysOf = (value: string) => ({ $map: { input: { $objectToArray: value }, in: '$$this.k' } });
  const [found = {}] = documents.aggregate('a', [
    ...stages,
    { $project: { _id: 0, outer: keysOf('$$ROOT'), inner: keysOf('$1') } },
  ]);
  return { outer: found.outer, inner: found.inner };
}

describe('fields keep their order', () => {
  test('when they are stored, and through updates', (t) => {
    const documents = stored(t);
    assert.deepEqual(namesIn(documents), { outer: NAMES, inner: ['z', '0'] });
    documents.run({ update: 'a', updates: [{ q: { _id: 1 }, u: { $set: { z: 1 } } }] });
    assert.deepEqual(namesIn(documents).outer, [...NAMES, 'z']);
    documents.run({ update: 'a', updates: [{ q: {}, u: { $set: { '0': 1, '1.5': 2 }, $unset: { a: 1 } } }] });
    const rest = NAMES.filter((name) => name !== 'a');
    assert.deepEqual(namesIn(documents), { outer: [...rest, 'z', '0'], inner: ['z', '0', '5'] });
    documents.run({
      update: 'a',
      updates: [
        {
          q: {},
          u: [
            {
              $set: mapOf([
                ['c', 1],
                ['7', 1],
              ]),
            },
            { $unset: 'b' },
          ],
        },
      ],
    });
    assert.deepEqual(namesIn(documents).outer, [...rest.filter((name) => name !== 'b'), 'z', '0', 'c', '7']);
    documents.run({
      update: 'a',
      updates: [
        {
          q: {},
          u: mapOf([
            ['x', 1],
            ['3', 1],
          ]),
        },
      ],
    });
    assert.deepEqual(namesIn(documents).outer, ['_id', 'x', '3']);
    const upsert = {
      q: mapOf([
        ['k', 1],
        ['8', 1],
      ]),
      u: { $set: { '4': 1 } },
      upsert: true,
    };
    documents.run({ delete: 'a', deletes: [{ q: {}, limit: 0 }] });
    documents.run({ update: 'a', updates: [upsert] });
    assert.deepEqual((namesIn(documents).outer as string[])[0], '_id');
  });

  test('in what is computed and shown', (t) => {
    const documents = stored(t);
    const outer = (...stages: Document[]) => namesIn(documents, stages).outer;
    assert.deepEqual(outer({ $project: { '1': 1, a: 1, '2': 1 } }), ['_id', '2', 'a', '1']);
    assert.deepEqual(
      outer({ $project: { b: 0 } }),
      NAMES.filter((name) => name !== 'b'),
    );
    assert.deepEqual(
      outer({ $unset: 'b' }),
      NAMES.filter((name) => name !== 'b'),
    );
    assert.deepEqual(
      outer({
        $addFields: mapOf([
          ['c', 1],
          ['9', 1],
        ]),
      }),
      [...NAMES, 'c', '9'],
    );
    assert.deepEqual(
      outer({
        $replaceWith: {
          $mergeObjects: [
            mapOf([
              ['m', 1],
              ['5', 1],
            ]),
            '$$ROOT',
          ],
        },
      }),
      ['m', '5', ...NAMES],
    );
    assert.deepEqual(outer({ $replaceWith: { $arrayToObject: { $objectToArray: '$$ROOT' } } }), NAMES);
    assert.deepEqual(
      outer({
        $replaceWith: {
          $arrayToObject: [
            [
              ['q', 1],
              ['1', { x: 2 }],
            ],
          ],
        },
      }),
      ['q', '1'],
    );
    assert.deepEqual(
      outer({
        $replaceWith: mapOf([
          ['q', '$a'],
          ['1', '$1'],
          [
            'c',
            mapOf([
              ['d', 1],
              ['0', 1],
            ]),
          ],
        ]),
      }),
      ['q', '1', 'c'],
    );
  });

  test('in groups, orders and collections that are made', (t) => {
    const documents = stored(t);
    const outer = (...stages: Document[]) => namesIn(documents, stages).outer;
    const group = { $group: { _id: null, m: { $mergeObjects: '$$ROOT' } } };
    assert.deepEqual(outer(group, { $replaceWith: '$m' }), NAMES);
    assert.deepEqual(outer({ $sort: { b: 1 } }, { $limit: 1 }), NAMES);
    documents.aggregate('a', [{ $set: { '6': 1 } }, { $out: 'b' }]);
    documents.run({ renameCollection: 'shop.b', to: 'shop.a', dropTarget: true });
    assert.deepEqual(outer(), [...NAMES, '6']);
  });

  test('which tells documents apart, and __proto__ is a name as any other', (t) => {
    const documents = stored(t);
    const same = mapOf([
      ['z', 1],
      ['0', 2],
    ]);
    assert.deepEqual(documents.ids('a', { '1': same }), [1]);
    assert.deepEqual(documents.ids('a', { '1': { '0': 2, z: 1 } }), []);
    assert.deepEqual(documents.ids('a', { '1': { $in: [same] } }), [1]);
    assert.deepEqual(documents.ids('a', { '__proto__.x': 1 }), [1]);
    assert.deepEqual(documents.ids('a', { '1.z': 1, '1.0': 2 }), [1]);
    documents.run({ update: 'a', updates: [{ q: { _id: 1 }, u: { $set: { '__proto__.x': 2 } } }] });
    assert.deepEqual(documents.ids('a', { '__proto__.x': 2 }), [1]);
    documents.run({ createIndexes: 'a', indexes: [{ key: { '1': 1 }, name: 'one' }] });
    assert.deepEqual(documents.ids('a', { '1': same }), [1]);
    const slice = { projection: { '__proto__.y': { $slice: 1 } } };
    assert.equal(documents.find('a', {}, slice).length, 1);
  });
});
