import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTimeOrNull, readTime } from '../../platform/clock.ts';
import { defaultSchedule, nextAfter, overdueMs, type Schedule } from './schedule.ts';

const DAILY = defaultSchedule(true);

function next(changed: Partial<Schedule>, after: string): string | null {
  return formatTimeOrNull(nextAfter({ ...DAILY, ...changed }, readTime('after', after)));
}

test('the next time is after now, never now', () => {
  assert.equal(next({}, '2026-11-26 02:59:59'), '2026-11-26 03:00:00');
  assert.equal(next({}, '2026-11-26 03:00:00'), '2026-11-27 03:00:00');
  assert.equal(next({ at: '23:45' }, '2026-12-31 23:50:00'), '2027-01-01 23:45:00');
  assert.equal(next({ every: 'hourly', at: '05:20' }, '2026-11-26 13:19:59'), '2026-11-26 13:20:00');
  assert.equal(next({ every: 'hourly', at: '00:00' }, '2026-11-26 23:00:00'), '2026-11-27 00:00:00');
  // 26 November 2026 is a Thursday.
  assert.equal(next({ every: 'weekly' }, '2026-11-26 12:00:00'), '2026-11-29 03:00:00');
  assert.equal(next({ every: 'weekly', weekday: 'thursday' }, '2026-11-26 03:00:00'), '2026-12-03 03:00:00');
  assert.equal(next({ every: 'weekly', weekday: 'wednesday' }, '2026-11-26 12:00:00'), '2026-12-02 03:00:00');
  assert.equal(next({ every: 'off' }, '2026-11-26 12:00:00'), null);
});

test('a point is overdue one period late, a day at most', () => {
  const hours = (every: Schedule['every']) => overdueMs({ ...DAILY, every }) / 3_600_000;
  assert.deepEqual([hours('hourly'), hours('daily'), hours('weekly')], [2, 48, 192]);
  assert.equal(hours('off'), Number.POSITIVE_INFINITY);
});
