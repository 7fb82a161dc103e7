import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  changesOf,
  countOf,
  editedText,
  keyOf,
  NO_CHANGES,
  toggleDelete,
  typedValue,
  withInserted,
  withValue,
} from './changes.ts';

const NAMES = ['id', 'name', 'note'];
const ROW = [1, 'a', null];
const edit = (column: number, value: unknown) => ({ key: keyOf(ROW, [0]), old: ROW, column, value });

test('edits of a row are one change, with the row as it was read', () => {
  const pending = withValue(withValue(NO_CHANGES, edit(1, 'b')), edit(2, ''));
  assert.equal(countOf(pending), 1);
  assert.deepEqual(changesOf(pending, NAMES), [
    { action: 'update', old: { id: 1, name: 'a', note: null }, values: { name: 'b', note: '' } },
  ]);
  const back = withValue(withValue(pending, edit(1, 'a')), edit(2, null));
  assert.equal(countOf(back), 0);
});

test('a row that is deleted is not updated, and what is inserted comes last', () => {
  let pending = withValue(NO_CHANGES, edit(1, 'b'));
  pending = toggleDelete(pending, keyOf(ROW, [0]), ROW);
  pending = withInserted({ ...pending, inserts: [new Map()] }, 0, [0, 7]);
  assert.equal(countOf(pending), 2);
  assert.deepEqual(
    changesOf(pending, NAMES).map(({ action }) => action),
    ['delete', 'insert'],
  );
  assert.deepEqual(changesOf(pending, NAMES)[1]?.values, { id: 7 });
  assert.equal(countOf(toggleDelete(pending, keyOf(ROW, [0]), ROW)), 2);
});

test('typed text is a number only where one was, and exactly that one', () => {
  assert.equal(typedValue('5', 4), 5);
  assert.equal(typedValue('9007199254740993', 4), '9007199254740993');
  assert.equal(typedValue('5', 'x'), '5');
  assert.equal(typedValue('true', false), true);
  assert.equal(editedText({ base64: 'AA==' }), undefined);
  assert.equal(editedText(null), '');
});
