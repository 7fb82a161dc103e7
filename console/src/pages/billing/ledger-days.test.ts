import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Booked, daysOf } from './ledger-days.ts';

const entry = (created_at: string, credits: Omit<Booked, 'created_at'>): Booked => ({
  created_at,
  ...credits,
});

test('a day has the sums of its entries and the balance of the newest', () => {
  const days = daysOf([
    entry('2026-02-01 00:00:00', { amount: -0.25, held: 0, balance: 9.25 }),
    entry('2026-01-31 23:59:59', { amount: -0.5, held: -0.125, balance: 9.5 }),
    entry('2026-01-31 09:00:00', { amount: 10, held: 0.25, balance: 10 }),
  ]);
  assert.deepEqual(
    days.map(({ date, entries, amount, held, balance }) => [date, entries.length, amount, held, balance]),
    [
      ['2026-02-01', 1, -0.25, 0, 9.25],
      ['2026-01-31', 2, 9.5, 0.125, 9.5],
    ],
  );
  assert.deepEqual(daysOf([]), []);
});
