import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TestDocuments } from '../testing/document-database.ts';

describe('the variables of let', () => {
  test('are values of expressions, in each command that takes them', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', { _id: 1, x: 'a' }, { _id: 2, x: 'b' }, { _id: 3, x: 'c' });
    const filter = { $expr: { $eq: ['$_id', '$$wanted'] } };
    const wanted = { wanted: { $add: [1, 1] } };
    assert.deepEqual(documents.ids('things', filter, { let: wanted }), [2]);
    const values = { literal: { $literal: '$bar' }, sum: { $add: [1, 2] }, list: [{ $concat: ['a', 'b'] }] };
    const pipeline = [
      { $match: { $expr: { $eq: ['$_id', '$$sum'] } } },
      { $project: { literal: '$$literal', sum: '$$sum', list: '$$list' } },
    ];
    assert.deepEqual(documents.aggregate('things', pipeline, { let: values }), [
      { _id: 3, literal: '$bar', sum: 3, list: ['ab'] },
    ]);
    documents.run({
      update: 'things',
      updates: [{ q: filter, u: [{ $set: { x: '$$literal' } }] }],
      let: { ...wanted, literal: { $literal: '$x' } },
    });
    assert.deepEqual(documents.find('things', { _id: 2 }), [{ _id: 2, x: '$x' }]);
    const found = documents.run({
      findAndModify: 'things',
      query: filter,
      update: [{ $set: { y: '$$wanted' } }],
      fields: { y: 1, wanted: '$$wanted' },
      new: true,
      let: wanted,
    });
    assert.deepEqual(found.value, { _id: 2, y: 2, wanted: 2 });
    documents.run({ delete: 'things', deletes: [{ q: filter, limit: 0 }], let: wanted });
    assert.deepEqual(documents.ids('things', {}), [1, 3]);
  });

  test('one that is random is drawn once for a command', (t) => {
    const documents = new TestDocuments(t);
    documents.insert('things', { _id: 1 }, { _id: 2 });
    const [one, other] = documents.aggregate('things', [{ $set: { drawn: '$$drawn' } }], {
      let: { drawn: { $rand: {} } },
    });
    assert.equal(typeof one?.drawn, 'number');
    assert.equal(one?.drawn, other?.drawn);
  });

  test('what cannot be a variable is refused', (t) => {
    const documents = new TestDocuments(t);
    const codeOf = (variables: unknown) => documents.codeOf({ find: 'things', let: variables });
    assert.equal(codeOf({ x: '$field' }), 4890500);
    assert.equal(codeOf({ x: { $add: [1, '$$ROOT.a'] } }), 4890500);
    assert.equal(codeOf({ Upper: 1 }), 16867);
    assert.equal(codeOf({ 'a.b': 1 }), 16868);
    assert.equal(codeOf(5), 14);
    assert.equal(codeOf({ x: { $function: { body: 'f', args: [], lang: 'js' } } }), 31264);
    assert.equal(
      documents.codeOf({ find: 'things', filter: { $expr: '$$no' }, let: { no: '$$other' } }),
      17276,
    );
  });
});
