import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PointRow } from '../store.ts';
import { PointWork } from './point-work.ts';

const point = (id: string, state = 'complete') => ({ point_id: id, state }) as PointRow;

function newWork() {
  const errors: unknown[] = [];
  let ended = 0;
  const work = new PointWork({
    noun: 'drill',
    participle: 'drilled',
    first: 0,
    onError: (_, error) => errors.push(error),
    onEnd: () => {
      ended += 1;
    },
  });
  return { work, errors, ended: () => ended };
}

test('one point at a time, whoever asks while it begins', async () => {
  const { work, ended } = newWork();
  const ready = Promise.withResolvers<void>();
  let prepared = 0;
  const prepare = async () => {
    prepared += 1;
    await ready.promise;
    return (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  };
  const both = [work.begin(point('a'), prepare), work.begin(point('a'), prepare)];
  assert.equal(work.isBusy, true);
  await assert.rejects(work.begin(point('b'), prepare), {
    code: 'point_in_progress',
    message: 'Another recovery point is being drilled',
    extra: { point_id: 'a' },
  });
  ready.resolve();
  await Promise.all(both);
  await work.begin(point('a'), prepare);
  assert.equal(prepared, 1);
  work.note(7);
  assert.deepEqual([work.progressOf('a'), work.progressOf('b')], [7, null]);
  await work.wait('a', 1);
  assert.deepEqual([await work.cancel('b'), ended()], [false, 0]);
  assert.deepEqual([await work.cancel('a'), ended(), work.isBusy], [true, 1, false]);
  assert.equal(work.progressOf('a'), null);
});

test('a point that is not there as a whole, and a begin or work that fails, leave nothing behind', async () => {
  const { work, errors, ended } = newWork();
  const nothing = async () => async () => {};
  await assert.rejects(work.begin(point('a', 'creating'), nothing), {
    code: 'point_invalid_state',
    hint: 'Only complete points can be drilled',
  });
  const away = new Error('away');
  const failing = () => Promise.reject(away);
  await assert.rejects(work.begin(point('a'), failing), away);
  assert.equal(work.isBusy, false);
  await work.begin(point('b'), async () => failing);
  await work.wait('b', 10_000);
  assert.deepEqual([errors, ended(), work.isBusy], [[away], 1, false]);
});
