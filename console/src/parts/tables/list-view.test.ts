import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arranged, listSearch, sortedBy } from './list-view.ts';

interface Row {
  readonly name: string;
  readonly size: number | null;
}

const ROWS: readonly Row[] = [
  { name: 'web-10', size: 2 },
  { name: 'Web-9', size: null },
  { name: 'database 1', size: 30 },
];
const LIST = {
  columns: [
    { id: 'name', value: ({ name }: Row) => name },
    { id: 'size', value: ({ size }: Row) => size },
  ],
  textOf: ({ name, size }: Row) => `${name} ${size}`,
};
const namesOf = (view: object) => arranged(ROWS, view, LIST).map(({ name }) => name);

test('rows are those with all words, whatever their case and order', () => {
  assert.deepEqual(namesOf({ find: 'WEB' }), ['web-10', 'Web-9']);
  assert.deepEqual(namesOf({ find: ' 1 data ' }), ['database 1']);
  assert.deepEqual(namesOf({ find: 'nothing' }), []);
  assert.equal(arranged(ROWS, {}, LIST), ROWS);
});

test('order is by numbers in names, and rows without a value come last both ways', () => {
  assert.deepEqual(namesOf({ column: 'name' }), ['database 1', 'Web-9', 'web-10']);
  assert.deepEqual(namesOf({ column: 'size' }), ['web-10', 'database 1', 'Web-9']);
  assert.deepEqual(namesOf({ column: 'size', down: true }), ['database 1', 'web-10', 'Web-9']);
  assert.deepEqual(namesOf({ column: '__proto__' }), ['web-10', 'Web-9', 'database 1']);
});

test('clicks on a heading sort up, down, and no more; the filter stays', () => {
  const up = sortedBy({ find: 'a' }, 'name');
  const down = sortedBy(up, 'name');
  assert.deepEqual(
    [up, down, sortedBy(down, 'name'), sortedBy(down, 'size')],
    [
      { find: 'a', column: 'name' },
      { find: 'a', column: 'name', down: true },
      { find: 'a' },
      { find: 'a', column: 'size' },
    ],
  );
});

test('an address gives what it should, and nothing else', () => {
  assert.deepEqual(listSearch({ find: 'a', column: 'b', down: true, tab: 'c' }), {
    find: 'a',
    column: 'b',
    down: true,
  });
  assert.deepEqual(listSearch({ find: 3, column: '', down: 'yes' }), {});
});
