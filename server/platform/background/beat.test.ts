import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../testing/eventually.ts';
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
  let [often, other] = [0, 0];
  let isResting = true;
  const beats = [
    onBeat(
      20,
      () => often++,
      () => isResting,
    ),
    onBeat(20, () => other++),
  ];
  await eventually(() => often >= 2);
  assert.ok(other > 3 * often, `${often} of ${other} turns`);
  isResting = false;
  const [before, otherBefore] = [often, other];
  await eventually(() => often - before >= 10);
  assert.ok(other - otherBefore < 10 * (often - before), `${often - before} of ${other - otherBefore} turns`);
  for (const beat of beats) beat.stop();
});
