import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutFirst } from './processor-order.ts';

test('a list of processors without its first', () => {
  const lists: Record<string, string | null> = {
    '0': null,
    '0-1': '1',
    '0-3': '1-3',
    '2,4-7': '4-7',
    '4-5,9': '5,9',
    '': null,
  };
  for (const [list, others] of Object.entries(lists)) assert.equal(withoutFirst(list), others, list);
});
