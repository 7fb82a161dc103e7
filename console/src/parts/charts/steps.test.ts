import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gauge, onSteps, readingsFor } from './steps.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const at = (ms: number) => ({
  timestamp: new Date(ms).toISOString().slice(0, 19).replace('T', ' '),
  value: 1,
});

test('charts of what is young begin with it, and have room for 5 minutes', () => {
  const old = onSteps([at(NOW - 3_600_000), at(NOW)], 'hour', NOW);
  assert.equal(old.times.length, 241);
  assert.deepEqual([old.times[0], old.times.at(-1)], [NOW / 1000 - 3600, NOW / 1000]);
  const young = onSteps([at(NOW - 600_000), at(NOW)], 'hour', NOW);
  assert.deepEqual([young.times.length, young.times[0]], [41, NOW / 1000 - 600]);
  const values = gauge(young, ({ value }) => value);
  assert.deepEqual([values[0], values[1], values.at(-1)], [1, null, 1]);
  assert.equal(onSteps([at(NOW - 30_000)], 'hour', NOW).times.length, 21);
  assert.equal(onSteps([], 'hour', NOW).times.length, 21);
});

test('longer spans of what is young have the readings of a shorter one', () => {
  const aged = (seconds: number) => at(NOW - seconds * 1000).timestamp;
  const ages = { minute: 60, hour: 3600, 'two hours': 7200, 'two days': 2 * 86_400 };
  const chosen = Object.entries(ages).map(([name, age]) => {
    const spans = (['hour', 'day', 'month'] as const).map((span) => readingsFor(span, aged(age), NOW));
    return `${name}: ${spans.join(', ')}`;
  });
  assert.deepEqual(chosen, [
    'minute: hour, hour, hour',
    'hour: hour, hour, hour',
    'two hours: hour, day, day',
    'two days: hour, day, month',
  ]);
});
