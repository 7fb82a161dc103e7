import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOfDay, lastDayOf } from './last-day.ts';

test('a day ends at midnight where its reader is, and shows as the same day again', () => {
  for (const day of ['2027-07-31', '2027-12-31', '2028-02-29', '2027-03-28', '2027-10-31']) {
    const end = endOfDay(day);
    assert.ok(end !== null);
    assert.equal(lastDayOf(end), day);
    const at = new Date(`${end.replace(' ', 'T')}Z`);
    assert.deepEqual([at.getHours(), at.getMinutes(), at.getSeconds()], [0, 0, 0]);
  }
  assert.equal(endOfDay(''), null);
  assert.equal(lastDayOf(null), '');
});
