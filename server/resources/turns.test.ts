import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { AppError } from '../platform/errors.ts';
import { Turns } from './turns.ts';

type Action = 'start' | 'stop';

const find = () => 1;
const locked = () => new AppError('vm_locked', 'another action runs');
const newTurns = () => new Turns<number, Action>({ find, locked });

test('the same action is joined, another one is refused, and short work waits', async () => {
  const turns = newTurns();
  const may = Promise.withResolvers<void>();
  const done: string[] = [];
  const start = turns.act({ id: 'a', action: 'start', find }, async (row) => {
    await may.promise;
    done.push('start');
    return row + 1;
  });
  await tick();
  const joined = turns.act({ id: 'a', action: 'start', find }, () => assert.fail('it runs already'));
  const after = turns.run('a', async () => void done.push('alone'));
  await assert.rejects(
    turns.act({ id: 'a', action: 'stop', find }, async () => 0),
    { code: 'vm_locked' },
  );
  assert.equal(await turns.act({ id: 'b', action: 'stop', find }, async () => 7), 7, 'another resource');
  assert.ok(turns.isBusy('a'));
  may.resolve();
  assert.deepEqual(await Promise.all([start, joined]), [2, 2]);
  await after;
  assert.deepEqual(done, ['start', 'alone']);
  assert.ok(!turns.isBusy('a'));
});

test('an action waits for short work, and reads the resource after it', async () => {
  const turns = newTurns();
  const may = Promise.withResolvers<void>();
  let row = 1;
  const short = turns.run('a', async () => {
    await may.promise;
    row = 2;
  });
  const started = turns.act({ id: 'a', action: 'start', find: () => row }, async (found) => found);
  may.resolve();
  assert.equal(await started, 2);
  await short;
});

test('work gets the row as it is at its turn, and does not run without one', async () => {
  let row: number | undefined = 1;
  const turns = new Turns<number>({ find: () => row });
  const seen: number[] = [];
  const see = () => turns.withRow('a', async (found) => void seen.push(found));
  const change = (next: number | undefined) =>
    turns.run('a', async () => {
      row = next;
    });
  await Promise.all([see(), change(2), see(), change(undefined), see()]);
  assert.deepEqual(seen, [1, 2]);
});

test('an action that failed is over', async () => {
  const turns = newTurns();
  await assert.rejects(
    turns.act({ id: 'a', action: 'start', find }, () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await turns.act({ id: 'a', action: 'stop', find }, async () => 3), 3);
});

test('abort() reaches the action it names', async () => {
  const turns = newTurns();
  const stopped = turns.act({ id: 'a', action: 'stop', find }, async (row, signal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return row;
  });
  await tick();
  turns.abort('a', 'start');
  turns.abort('a', 'stop');
  assert.equal(await stopped, 1);
});

test('long work ends when its resource is interrupted, and with Cloudlet', async () => {
  const turns = newTurns();
  const forever = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut'))));
  const one = turns.during(['a', 'b'], forever);
  const other = turns.during(['c'], forever);
  turns.interrupt('b', new AppError('database_not_ready', 'it was deleted'));
  await assert.rejects(one, { code: 'database_not_ready' });
  await Promise.all([turns.close(), assert.rejects(other, { code: 'shutting_down' })]);
  await assert.rejects(turns.during(['a'], forever), { code: 'shutting_down' });
});
