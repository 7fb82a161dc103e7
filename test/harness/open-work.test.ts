import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { OpenWork } from './open-work.ts';

test('work that ends in turn is waited for, longer than any piece may take', async () => {
  const open = new OpenWork(400);
  const inTurn = (async () => {
    for (let i = 0; i < 8; i++) await open.named(`step ${i}`, () => sleep(100));
  })();
  await open.all([inTurn]);
  assert.deepEqual(open.list(), []);
});

test('work that never ends is named', async () => {
  const open = new OpenWork(50);
  const never = open.named('a node that is ended', () => new Promise(() => {}));
  await assert.rejects(
    open.all([never]),
    /nothing ends any more; open:\n {2}a node that is ended: for \d+ ms$/,
  );
});

test('work that fails is no longer open, and its error is told', async () => {
  const open = new OpenWork();
  const failing = open.named('a call', () => Promise.reject(new Error('refused')));
  await assert.rejects(open.all([failing]), /^Error: refused$/);
  assert.deepEqual(open.list(), []);
});
