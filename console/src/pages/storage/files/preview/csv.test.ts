import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCsv, sortedBy } from './csv.ts';

const all = { most: 1000, isWhole: true };

test('quotes, line ends, delimiters and blank lines are read as they are meant', () => {
  const text = '\ufeffname;age\r\n"Smith; ""Jo""";3\r\n\r\n"two\nlines";\nlast;4';
  const { columns, rows, isCut } = readCsv(text, all);
  assert.deepEqual(columns, [
    { name: 'name', type: 'text' },
    { name: 'age', type: 'number' },
  ]);
  assert.deepEqual(rows, [
    ['Smith; "Jo"', '3'],
    ['two\nlines', ''],
    ['last', '4'],
  ]);
  assert.equal(isCut, false);
});

test('types are guessed of what is there, and rows are sorted by them', () => {
  const text =
    'n,d,b,t\n10,2026-01-02,true,x\n9,2025-12-31T10:00:00Z,FALSE,2\n,,,\n-1.5,2026-01-01,true,10\n';
  const table = readCsv(text, all);
  assert.deepEqual(
    table.columns.map(({ type }) => type),
    ['number', 'date', 'true or false', 'text'],
  );
  const first = (at: number, isDescending = false) => sortedBy(table, at, isDescending).map((row) => row[0]);
  assert.deepEqual(first(0), ['-1.5', '9', '10', '']);
  assert.deepEqual(first(0, true), ['10', '9', '-1.5', '']);
  assert.deepEqual(first(1), ['9', '-1.5', '10', '']);
});

test('a part of a file gives whole rows, and says that there are more', () => {
  const part = readCsv('a,b\n1,2\n3,4\n5', { most: 1000, isWhole: false });
  assert.deepEqual([part.rows.length, part.isCut], [2, true]);
  const many = readCsv(`a\n${'1\n'.repeat(50)}`, { most: 10, isWhole: true });
  assert.deepEqual([many.rows.length, many.isCut], [10, true]);
  assert.deepEqual(readCsv('', all).rows, []);
  assert.deepEqual(readCsv('only', all).columns, [{ name: 'only', type: 'text' }]);
});
