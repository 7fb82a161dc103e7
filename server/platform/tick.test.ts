import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOfTick } from './tick.ts';

test('who waits for the end of one turn goes on in step with the others', async () => {
  const steps: string[] = [];
  const walk = async (who: string) => {
    await endOfTick();
    for (const step of [1, 2, 3]) {
      steps.push(`${who}${step}`);
      await undefined;
    }
  };
  const nextTick = new Promise<void>((resolve) => {
    process.nextTick(() => resolve(walk('b')));
  });
  await Promise.all([walk('a'), nextTick]);
  assert.deepEqual(steps, ['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
});

test('who asks again after the end of a turn waits for the next one', async () => {
  const first = endOfTick();
  assert.equal(endOfTick(), first);
  await first;
  const second = endOfTick();
  assert.notEqual(second, first);
  let hasCome = false;
  void second.then(() => {
    hasCome = true;
  });
  await Promise.resolve();
  assert.equal(hasCome, false, 'other events get their turn first');
  await second;
});
