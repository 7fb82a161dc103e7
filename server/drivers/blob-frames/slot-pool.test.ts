import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LARGE_SLOT_BYTES, SlotPool, SMALL_SLOT_BYTES } from './slot-pool.ts';

test('slots of stalled sinks take no large ones from prompt sinks, up to as much again', () => {
  const pool = new SlotPool();
  const take = () => pool.take(LARGE_SLOT_BYTES);
  const takeAllLarge = () => {
    const taken = [];
    for (let slot = take(); ; slot = take()) {
      taken.push(slot);
      if (slot.bytes.length === SMALL_SLOT_BYTES) return taken;
    }
  };
  const stalled = takeAllLarge();
  for (const slot of stalled) {
    pool.rest(slot);
    pool.rest(slot);
  }
  const prompt = takeAllLarge();
  assert.ok(Math.abs(prompt.length - stalled.length) <= 1, `${prompt.length} of ${stalled.length}`);
  for (const slot of prompt) pool.rest(slot);
  assert.equal(take().bytes.length, SMALL_SLOT_BYTES, 'there is an end');
  for (const [i, slot] of [...stalled, ...prompt].entries())
    i % 2 === 0 ? pool.give(slot) : pool.forfeit(slot);
  assert.equal(pool.inUseBytes, SMALL_SLOT_BYTES);
  assert.equal(takeAllLarge().length, prompt.length);
});
