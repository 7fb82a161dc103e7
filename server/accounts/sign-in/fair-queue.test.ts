import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOfTick } from '../../platform/concurrency.ts';
import { FairQueue } from './passwords.ts';

/** A queue whose work ends on request of the test; `order` lists the admitted ones. */
function gated(limits: { running: number; waiting: number }) {
  const queue = new FairQueue({ ...limits, refusal: () => new Error('full') });
  const order: string[] = [];
  const refused: string[] = [];
  const open: (() => void)[] = [];
  const ask = (source: string, label = source) =>
    queue
      .run(source, () => {
        order.push(label);
        return new Promise<void>((resolve) => open.push(resolve));
      })
      .catch((error) => {
        assert.equal(error.message, 'full');
        refused.push(label);
      });
  const finish = async (count: number) => {
    for (let i = 0; i < count; i++) {
      open.shift()?.();
      await endOfTick();
    }
  };
  return { ask, finish, order, refused };
}

test('sources take turns, however many of one wait', async () => {
  const { ask, finish, order, refused } = gated({ running: 1, waiting: 100 });
  const all = Array.from({ length: 20 }, (_, i) => ask('flood', `flood ${i}`));
  all.push(ask('one'), ask('two', 'two a'), ask('two', 'two b'));
  await finish(23);
  await Promise.all(all);
  assert.deepEqual(order.slice(0, 6), ['flood 0', 'flood 1', 'one', 'two a', 'flood 2', 'two b']);
  assert.equal(order.length, 23);
  assert.deepEqual(refused, []);
});

test('a full queue takes in a newcomer: the longest gives up its newest', async () => {
  const { ask, finish, order, refused } = gated({ running: 1, waiting: 4 });
  const all = [0, 1, 2, 3, 4, 5].map((i) => ask('flood', `flood ${i}`));
  await endOfTick();
  assert.deepEqual(refused, ['flood 5'], 'alone it may have every slot, and no more');
  all.push(ask('one', 'one a'), ask('one', 'one b'));
  await endOfTick();
  assert.deepEqual(refused, ['flood 5', 'flood 4', 'flood 3']);
  all.push(ask('one', 'one c'), ask('two'), ask('three'));
  await endOfTick();
  assert.deepEqual(refused.slice(3), ['one c', 'flood 2', 'one b'], 'nobody gains by asking more');
  all.push(ask('four'));
  await endOfTick();
  assert.deepEqual(refused.slice(6), ['four'], 'each of those that wait has one slot');
  await finish(5);
  await Promise.all(all);
  assert.deepEqual(order, ['flood 0', 'flood 1', 'one a', 'two', 'three']);
});

test('work that fails hands its slot on', async () => {
  const queue = new FairQueue({ running: 1, waiting: 10, refusal: () => new Error('full') });
  const failing = queue.run('a', async () => Promise.reject(new Error('no')));
  const next = queue.run('a', async () => 'done');
  await assert.rejects(failing, /no/);
  assert.equal(await next, 'done');
  assert.equal(await queue.run('b', async () => 'idle again'), 'idle again');
});
