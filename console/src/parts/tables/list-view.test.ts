import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inSlices } from '../slices.ts';
import { arranged, arranging } from './arranging.ts';
import { listSearch, sortedBy } from './list-view.ts';

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

const MANY: readonly Row[] = Array.from({ length: 5000 }, (_, i) => ({
  name: `web-${(i * 7919) % 5000}`,
  size: i % 7 === 0 ? null : i % 10,
}));

test('thousands of rows are in the same order as by one sort, and equal ones stay in theirs', async () => {
  const natural = new Intl.Collator(undefined, { numeric: true });
  const byName = MANY.toSorted((a, b) => natural.compare(a.name, b.name));
  const { signal } = new AbortController();
  assert.deepEqual(await inSlices(arranging(MANY, { column: 'name' }, LIST), signal), byName);
  const sizeOf = ({ size }: Row) => size ?? Number.NEGATIVE_INFINITY;
  const bySize = MANY.toSorted((a, b) => sizeOf(b) - sizeOf(a));
  assert.deepEqual(arranged(MANY, { column: 'size', down: true }, LIST), bySize);
  assert.equal(arranged(MANY, { find: 'web-12' }, LIST).length, 111);
});

test('the work for thousands of rows pauses often, and ends when nobody waits for it', async () => {
  let pauses = 0;
  for (const _ of arranging(MANY, { find: 'web', column: 'name' }, LIST)) pauses++;
  assert.ok(pauses > 200, `${pauses} pauses`);
  const over = new AbortController();
  const work = inSlices(arranging(MANY, { column: 'name' }, LIST), over.signal);
  over.abort(new Error('over'));
  await assert.rejects(work, /over/);
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
