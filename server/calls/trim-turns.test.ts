import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrimSchedule } from './idempotency.ts';

test('the first row of each account is due, then every hundredth part of what is kept', () => {
  const turns = new TrimSchedule(1000);
  const due = (accountId: number) => Array.from({ length: 31 }, () => turns.isDue(accountId));
  for (const accountId of [1, 2]) {
    const at = due(accountId).flatMap((isDue, row) => (isDue ? [row] : []));
    assert.deepEqual(at, [0, 10, 20, 30]);
  }
});

test('where few are kept every row is due', () => {
  const turns = new TrimSchedule(5);
  for (let i = 0; i < 5; i++) assert.ok(turns.isDue(1));
});
