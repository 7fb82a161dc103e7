import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventLoopDelay } from './host-metrics.ts';

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('the longest stall is the maximum, without the period of the timer that measures', async () => {
  const delay = new EventLoopDelay();
  delay.start();
  // The first timer of the monitor must have run for a delay to be between two of them.
  await sleep(100);
  block(300);
  await sleep(50);
  delay.stop();
  // The stall may begin up to one period after the timer ran, never later.
  assert.ok(delay.maxSeconds >= 0.289, `${delay.maxSeconds} s`);
  assert.ok(delay.p99Seconds > 0 && delay.p99Seconds <= delay.maxSeconds + 0.001);
});

test('before the first sample both are 0', () => {
  const delay = new EventLoopDelay();
  assert.deepEqual([delay.p99Seconds, delay.maxSeconds], [0, 0]);
});
