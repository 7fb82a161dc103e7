import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inReadingOrder } from './file-order.ts';

const entriesOf = (names: readonly string[]) =>
  names.map((name) => ({ name, object: name.endsWith('/') ? null : {} }));

test('folders come first, numbers count, and accents and capitals stand beside their letters', () => {
  const names = ['B.txt', 'IMG_10.jpg', 'IMG_2.jpg', 'Z/', 'a.txt', 'été/', 'ét.txt', 'f/'];
  const sorted = (order: 'asc' | 'desc') =>
    inReadingOrder(entriesOf(names), order)
      .map(({ name }) => name)
      .join(' ');
  assert.equal(sorted('asc'), 'été/ f/ Z/ a.txt B.txt ét.txt IMG_2.jpg IMG_10.jpg');
  assert.equal(sorted('desc'), 'Z/ f/ été/ IMG_10.jpg IMG_2.jpg ét.txt B.txt a.txt');
});

test('names that compare as equal keep one order', () => {
  const names = ['a1', 'a01', 'a001'];
  const sorted = inReadingOrder(entriesOf(names), 'asc').map(({ name }) => name);
  assert.deepEqual(
    sorted,
    inReadingOrder(entriesOf(names.toReversed()), 'asc').map(({ name }) => name),
  );
});
