import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldBack, type HeldBackDeps } from './held-back.ts';

function heldBack(): HeldBack {
  const deps = {
    databases: { all: () => [], tryKeep: () => {} },
    log: { add: () => {} },
    deletesWhileHeld: true,
    listener: { name: 'postgresql-1' },
    warn: () => {},
  };
  return new HeldBack(deps as unknown as HeldBackDeps);
}

test('a server that refuses to be held back is asked less and less often, and at once when that changes', () => {
  const held = heldBack();
  const waits = { why: 'the disk is nearly full', isGrower: true };
  const askedAt: number[] = [];
  for (let look = 0; look < 300; look++) {
    if (!held.set(waits)) continue;
    askedAt.push(look);
    held.missed();
  }
  const pauses = askedAt.slice(1).map((look, i) => look - (askedAt[i] ?? 0));
  assert.deepEqual(pauses, [2, 4, 8, 16, 32, 64, 64, 64]);
  assert.equal(held.set({ ...waits, isGrower: false }), true);
  held.brought();
  assert.equal(held.set(null), false);
});
