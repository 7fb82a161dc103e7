import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTime } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { formatMonth, type PeriodText, readDayOrTime, readMonth, readPeriod } from './report-period.ts';

const NOW = Date.UTC(2026, 1, 14, 15, 16, 17);

const shown = (text: PeriodText) => {
  const { from, to } = readPeriod(text, NOW);
  return [formatTime(from), formatTime(to)];
};

test('a period is of whole hours, by default the month', () => {
  const month = ['2026-02-01 00:00:00', '2026-03-01 00:00:00'];
  assert.deepEqual(shown({}), month);
  assert.deepEqual(shown({ from: '2026-02-03 04:05:06' }), ['2026-02-03 04:00:00', month[1]]);
  assert.deepEqual(shown({ from: '2025-12-31' }), ['2025-12-31 00:00:00', month[1]]);
  assert.deepEqual(shown({ from: '2026-05-02' }), ['2026-05-02 00:00:00', '2026-06-01 00:00:00']);
  assert.deepEqual(shown({ to: '2026-02-01T00:00:00Z' }), ['2026-01-01 00:00:00', month[0]]);
  assert.deepEqual(shown({ from: '2026-02-03T04:30:00+02:00', to: '2026-02-03 02:30:00' }), [
    '2026-02-03 02:00:00',
    '2026-02-03 03:00:00',
  ]);
});

test('what is no time, goes back, or is too long names its field', () => {
  const refused = (text: PeriodText, field: string) =>
    assert.throws(
      () => readPeriod(text, NOW),
      (error) => isAppError(error, 'invalid_request') && error.fields?.[0]?.field === field,
      JSON.stringify(text),
    );
  for (const bad of [
    '',
    'yesterday',
    '2026-02-30',
    '2026-2-3',
    '2026-02-03 25:00:00',
    '2026-02-03T00',
    '1e3',
  ])
    refused({ from: bad }, 'from');
  refused({ to: '2026-13-01' }, 'to');
  refused({ from: '2026-02-02', to: '2026-02-01' }, 'from');
  refused({ from: '2024-01-01' }, 'from');
  assert.deepEqual(shown({ from: '2026-02-02', to: '2026-02-02' }), [
    '2026-02-02 00:00:00',
    '2026-02-02 00:00:00',
  ]);
  assert.throws(() => readMonth('month', '2026-13'), /month/);
  assert.equal(formatMonth(readMonth('month', '2026-12').to), '2027-01');
  assert.equal(readDayOrTime('from', '2026-01-01'), Date.UTC(2026, 0, 1));
});
