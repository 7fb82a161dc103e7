// A process of its own: it is about the memory of the whole process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { eventually } from '../../testing/eventually.ts';
import { collectOnceQuiet } from './quiet-collection.ts';

const MIB = 2 ** 20;

/** Bytes that are set aside for new objects. */
function newSpace(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
}

/** Creates objects that live for a while, until the space for new ones has grown. */
function fill(): void {
  let kept: object[] = [];
  for (let i = 0; newSpace() < 4 * MIB && i < 1e7; i++) {
    kept.push({ i });
    if (kept.length > 50_000) kept = [];
  }
}

test('memory is given back once the process is quiet, not while it computes', async (t) => {
  fill();
  assert.ok(newSpace() >= 4 * MIB);
  let isBusy = true;
  t.after(() => {
    isBusy = false;
  });
  const beat = collectOnceQuiet(1000);
  t.after(() => beat.stop());
  // A heartbeat keeps no process alive.
  const alive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(alive));
  const working = (async () => {
    for (let rounds = 0; isBusy && rounds < 1000; rounds++) {
      for (const until = process.cpuUsage().user + 20_000; process.cpuUsage().user < until; );
      await sleep(20);
    }
  })();
  await sleep(2500);
  assert.ok(newSpace() >= 4 * MIB, 'it computes');
  isBusy = false;
  await working;
  await eventually(() => newSpace() < MIB);
});
