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
