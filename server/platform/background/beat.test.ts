import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../testing/eventually.ts';
import { systemClock } from '../clock.ts';
import { onBeat } from './beat.ts';

test('work that began at different moments comes in the same turns', async () => {
  const turns: string[][] = [];
  let turn: string[] | null = null;
  const note = (name: string) => () => {
    if (turn === null) {
      turn = [];
      turns.push(turn);
      setImmediate(() => {
        turn = null;
      });
    }
    turn.push(name);
  };
  const beats = [onBeat(200, note('often'))];
  await sleep(70);
  beats.push(onBeat(400, note('seldom')));
  await eventually(() => turns.filter((names) => names.includes('seldom')).length >= 3);
  for (const beat of beats) beat.stop();
  const alone = turns.filter((names) => names.join() === 'seldom');
  assert.deepEqual(alone, []);
});

test('it ends when it is stopped, also by its own work', async () => {
  let count = 0;
  const beat = onBeat(5, () => {
    count++;
    beat.stop();
  });
  await eventually(() => count === 1);
  await sleep(50);
  assert.equal(count, 1);
});

test('work with nothing to watch comes once a second, and often as soon as there is something', async () => {
  const often: number[] = [];
  let other = 0;
  let isResting = true;
  const beats = [
    onBeat(
      20,
      () => often.push(systemClock.monotonic()),
      () => isResting,
    ),
    onBeat(20, () => other++),
  ];
  await eventually(() => often.length >= 4);
  // The first comes after 20 ms. A timer may be 10 ms early, and late by any time on a busy host.
  const seconds = often.slice(1).map((at) => Math.floor((at + 10) / 1000));
  assert.deepEqual([...new Set(seconds)], seconds);
  isResting = false;
  const [before, otherBefore] = [often.length, other];
  await eventually(() => often.length - before >= 10);
  const turns = often.length - before;
  assert.ok(other - otherBefore < 10 * turns, `${turns} of ${other - otherBefore} turns`);
  for (const beat of beats) beat.stop();
});
