import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock, formatTime, formatTimeOrNull, systemClock } from './clock.ts';

test('times in records are UTC to the second', () => {
  assert.equal(formatTime(0), '1970-01-01 00:00:00');
  assert.equal(formatTime(Date.UTC(2026, 1, 28, 23, 59, 59, 999)), '2026-02-28 23:59:59');
  assert.equal(formatTimeOrNull(0), '1970-01-01 00:00:00');
  assert.equal(formatTimeOrNull(null), null);
});

test('any time reads back, without its milliseconds', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }), (ms) => {
      const text = formatTime(ms);
      assert.match(text, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
      assert.equal(Date.parse(`${text.replace(' ', 'T')}Z`), ms - (ms % 1000));
    }),
  );
});

test('a fake clock stands still, goes on when told, and jumps in wall time only', () => {
  const clock = new FakeClock(1000);
  assert.deepEqual([clock.now(), clock.monotonic()], [1000, 0]);
  clock.advance(50);
  clock.jump(-500);
  assert.deepEqual([clock.now(), clock.monotonic()], [550, 50]);
});

test("the system's monotonic time never goes back", () => {
  let last = systemClock.monotonic();
  for (let i = 0; i < 1000; i++) {
    const now = systemClock.monotonic();
    assert.ok(now >= last);
    last = now;
  }
});
