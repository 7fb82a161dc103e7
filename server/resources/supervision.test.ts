import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SweepGuard } from '../platform/background/sweep-guard.ts';
import { FakeClock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { Supervision } from './supervision.ts';

function supervise({ allows = true } = {}) {
  const clock = new FakeClock();
  const errors: string[] = [];
  const state = { isClosing: false };
  const supervision = new Supervision({
    clock,
    sweepGuard: { allows: async () => allows } as unknown as SweepGuard,
    orphanGraceMs: 60_000,
    atOnce: 2,
    turns: state,
    onError: (id, what) => errors.push(`${id}: ${what}`),
  });
  return { supervision, clock, errors, state };
}

test('a failure doubles the wait, at most to 15 minutes, and a success ends it', async () => {
  const { supervision, clock, errors } = supervise();
  let tries = 0;
  let isBroken = true;
  const work = async () => {
    tries++;
    if (isBroken) throw new Error('broken');
  };
  const round = () => supervision.each(['a'], (id) => supervision.attempt(id, work));
  for (const seconds of [15, 30, 60, 120, 240, 480, 900, 900]) {
    const before = tries;
    await round();
    assert.equal(tries, before + 1);
    clock.advance(seconds * 1000 - 1);
    await round();
    assert.equal(tries, before + 1, `${seconds} s`);
    clock.advance(1);
  }
  assert.equal(errors.length, tries);
  isBroken = false;
  await round();
  await round();
  assert.equal(tries, 10, 'nothing is waited for after a success');
});

test('what needs nothing any more has no failures, should it need something again', async () => {
  const { supervision } = supervise();
  const counts: (number | undefined)[] = [];
  const fail = () => Promise.reject(new Error('broken'));
  const round = async (id: string) => counts.push((await supervision.attempt(id, fail))?.count);
  for (const ids of [['a'], ['b'], ['a']]) await supervision.each(ids, round);
  assert.deepEqual(counts, [1, 1, 1]);
});

test('an engine that is away is asked again at each round', async () => {
  const { supervision } = supervise();
  const counts: (number | undefined)[] = [];
  const away = () => Promise.reject(new AppError('engine_unavailable', 'away'));
  const round = async (id: string) => counts.push((await supervision.attempt(id, away))?.count);
  for (let i = 0; i < 3; i++) await supervision.each(['a'], round);
  assert.deepEqual(counts, [1, 2, 3]);
});

test('nothing begins once Cloudlet closes', async () => {
  const { supervision, state } = supervise();
  const seen: string[] = [];
  await supervision.each(['a', 'b', 'c', 'd'], async (id) => {
    seen.push(id);
    state.isClosing = true;
  });
  assert.ok(seen.length <= 2, seen.join());
});

test('orphans are removed after the grace, unless far too many are found', async () => {
  for (const allows of [true, false]) {
    const { supervision, clock } = supervise({ allows });
    const removed: string[] = [];
    const orphan = (id: string, isYoung: boolean) =>
      [id, { remove: async () => void removed.push(id), isYoung }] as const;
    const orphans = new Map([orphan('old', false), orphan('young', true)]);
    const sweep = () => supervision.sweep({ folder: 'vms', what: 'machines', count: 9, orphans });
    await sweep();
    clock.advance(59_999);
    await sweep();
    assert.deepEqual(removed, []);
    clock.advance(1);
    await sweep();
    assert.deepEqual(removed, allows ? ['old'] : []);
  }
});
