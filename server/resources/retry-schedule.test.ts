import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_DELAY_MS, MAX_TRIES, parseRetryAfter, retryDelayMs } from './retry-schedule.ts';

const delays = (chance: number) =>
  Array.from({ length: MAX_TRIES }, (_, i) => retryDelayMs({ tries: i + 1, chance, retryAfterMs: null }));

test('5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, and then it has failed', () => {
  const seconds = [5, 300, 1800, 7200, 18_000, 36_000, 36_000];
  assert.deepEqual(delays(0), [...seconds.map((second) => second * 1000), null]);
  assert.deepEqual(delays(1), [...seconds.map((second) => second * 1100), null]);
  for (const delay of delays(1)) assert.ok((delay ?? 0) <= MAX_DELAY_MS);
});

test('Retry-After postpones up to a day, hurries nothing and adds no attempt', () => {
  const delay = (retryAfterMs: number, tries = 1) => retryDelayMs({ tries, chance: 0, retryAfterMs });
  assert.equal(delay(0), 5000);
  assert.equal(delay(60_000), 60_000);
  assert.equal(delay(60_000, 4), 7_200_000);
  assert.equal(delay(10 ** 12), 86_400_000);
  assert.equal(delay(60_000, MAX_TRIES), null);
});

test('Retry-After is read in seconds and as a date', () => {
  const now = Date.UTC(2026, 0, 1);
  const cases: [string | null, number | null][] = [
    [null, null],
    ['120', 120_000],
    [' 0 ', 0],
    ['Thu, 01 Jan 2026 00:02:00 GMT', 120_000],
    ['Wed, 31 Dec 2025 23:00:00 GMT', 0],
    ['', null],
    ['-5', null],
    ['1.5', null],
    ['soon', null],
    ['9999999999999', null],
    ['Thu, nonsense', null],
  ];
  for (const [text, expected] of cases) assert.equal(parseRetryAfter(text, now), expected, String(text));
});
