import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slipsBetween } from './index.ts';

test('each slip counts once: changed, left out, put in, swapped', () => {
  for (const [from, to, slips] of [
    ['', '', 0],
    ['', 'abc', 3],
    ['photos', 'photos', 0],
    ['photos', 'fotos', 2],
    ['uplaods', 'uploads', 1],
    ['recursiv', 'recursive', 1],
    ['bucket', 'buckets', 1],
    ['web', 'wep', 1],
    ['ab', 'ba', 1],
  ] as const) {
    assert.equal(slipsBetween(from, to), slips, `${from} ${to}`);
    assert.equal(slipsBetween(to, from), slips, `${to} ${from}`);
  }
});
