import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { FakeClock, systemClock } from '../clock.ts';
import { isAppError } from '../errors.ts';
import { Descriptors } from './descriptors.ts';

test('the reserve is never given, and what was taken counts before it is seen', () => {
  const clock = new FakeClock();
  let open = 10;
  const descriptors = new Descriptors({ clock, reserve: 20, limit: 100, count: () => open });
  assert.ok(descriptors.take(60));
  // A question for free descriptors takes none.
  for (let times = 0; times < 5; times++) assert.ok(descriptors.hasFree(10));
  assert.ok(descriptors.take(10));
  assert.ok(!descriptors.take(1));
  assert.throws(
    () => descriptors.assertFree(1),
    (error) => isAppError(error, 'insufficient_capacity') && /100/.test(error.message),
  );
  // Some of them were closed again.
  open = 40;
  clock.advance(1000);
  assert.ok(descriptors.take(40));
  assert.ok(!descriptors.hasFree(1));
});

test('of a small limit a quarter is kept', () => {
  const descriptors = new Descriptors({ clock: new FakeClock(), reserve: 1000, limit: 100, count: () => 0 });
  assert.ok(!descriptors.hasFree(76));
  assert.ok(descriptors.hasFree(75));
});

test('files of this process are counted, up to its own limit', () => {
  const before = new Descriptors({ clock: systemClock, reserve: 0 });
  assert.ok(Number.isInteger(before.limit) && before.limit > 100, `${before.limit}`);
  const isEnough = (spare: number) =>
    new Descriptors({ clock: systemClock, reserve: 0, limit: spare }).hasFree(0);
  let limit = 0;
  while (!isEnough(limit)) limit++;
  const files = Array.from({ length: 5 }, () => openSync('/dev/null', 'r'));
  assert.ok(!isEnough(limit + 4));
  assert.ok(isEnough(limit + 5));
  files.forEach(closeSync);
  assert.ok(isEnough(limit));
});
