import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedSemaphore } from './concurrency.ts';

const signal = new AbortController().signal;

test('so many of one key run at once, and other keys do not wait for them', async () => {
  const semaphore = new KeyedSemaphore<string>(2);
  const begun: string[] = [];
  const end = Promise.withResolvers<void>();
  const work = (name: string) => async () => {
    begun.push(name);
    await end.promise;
  };
  const runs = ['a1', 'a2', 'a3', 'b1'].map((name) => semaphore.run(name.charAt(0), signal, work(name)));
  await new Promise(setImmediate);
  assert.deepEqual(begun, ['a1', 'a2', 'b1']);
  end.resolve();
  await Promise.all(runs);
  assert.deepEqual(begun, ['a1', 'a2', 'b1', 'a3']);
});

test('who leaves the line does not run, and the next does', async () => {
  const semaphore = new KeyedSemaphore<string>(1);
  const begun: number[] = [];
  const end = Promise.withResolvers<void>();
  const first = semaphore.run('a', signal, () => end.promise);
  const leaving = new AbortController();
  const second = semaphore.run('a', leaving.signal, async () => void begun.push(2));
  const third = semaphore.run('a', signal, async () => void begun.push(3));
  leaving.abort(new Error('left'));
  await assert.rejects(second, /left/);
  end.resolve();
  await Promise.all([first, third]);
  assert.deepEqual(begun, [3]);
});
