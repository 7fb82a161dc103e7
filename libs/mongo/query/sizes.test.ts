import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Binary, type Document, Timestamp } from 'bson';
import { TestDocuments } from '../testing/document-database.ts';

test('sizes, places and parts of timestamps are those of the manual', (t) => {
  const documents = new TestDocuments(t);
  const at = new Timestamp({ t: 1622731060, i: 7 });
  documents.insert('a', { _id: 1, s: 'cafétéria', b: new Binary(Buffer.from('abc')), at });
  const project = (x: Document) => ({ aggregate: 'a', pipeline: [{ $project: { _id: 0, x } }], cursor: {} });
  const computed = (x: Document) => documents.run(project(x)).cursor.firstBatch[0].x;
  const cases: readonly (readonly [Document, unknown])[] = [
    [{ $binarySize: '$s' }, 11],
    [{ $binarySize: '$b' }, 3],
    [{ $binarySize: '$none' }, null],
    [{ $bsonSize: { a: 1 } }, 12],
    [{ $bsonSize: '$none' }, null],
    [{ $indexOfCP: ['$s', 't'] }, 4],
    [{ $indexOfCP: ['$s', 'é', 4] }, 5],
    [{ $indexOfCP: ['$s', 'é', 4, 5] }, -1],
    [{ $indexOfCP: ['a😀b', 'b'] }, 2],
    [{ $indexOfCP: ['vanilla', 'nilla', 12] }, -1],
    [{ $indexOfCP: ['$none', 'a'] }, null],
    [{ $tsSecond: '$at' }, 1622731060],
    [{ $tsIncrement: '$at' }, 7],
    [{ $tsSecond: '$none' }, null],
  ];
  for (const [expression, wanted] of cases)
    assert.equal(computed(expression), wanted, JSON.stringify(expression));
  const codes: readonly (readonly [Document, number])[] = [
    [{ $binarySize: 1 }, 51276],
    [{ $bsonSize: '$s' }, 31393],
    [{ $indexOfCP: [1, 'a'] }, 40093],
    [{ $indexOfCP: ['a', 1] }, 40094],
    [{ $indexOfCP: ['a', 'a', -1] }, 40097],
    [{ $tsSecond: 1 }, 5687301],
    [{ $tsIncrement: 1 }, 5687302],
  ];
  for (const [expression, code] of codes) assert.equal(documents.codeOf(project(expression)), code);
});
