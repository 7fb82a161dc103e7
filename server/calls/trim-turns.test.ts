import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrimSchedule } from './kept-answers.ts';

test('the first row of each account is due, then every hundredth part of what is kept', () => {
  const turns = new TrimSchedule({ rows: 1000, bytes: 1e9 });
  const due = (accountId: number) => Array.from({ length: 31 }, () => turns.isDue(accountId));
  for (const accountId of [1, 2]) {
    const at = due(accountId).flatMap((isDue, row) => (isDue ? [row] : []));
    assert.deepEqual(at, [0, 10, 20, 30]);
  }
});

test('where few are kept every row is due', () => {
  const turns = new TrimSchedule({ rows: 5, bytes: 1e9 });
  for (let i = 0; i < 5; i++) assert.ok(turns.isDue(1));
});

test('so is the row with which a hundredth part of the bytes was added', () => {
  const turns = new TrimSchedule({ rows: 1e6, bytes: 100_000 });
  const due = Array.from({ length: 9 }, () => turns.isDue(1, 300));
  assert.deepEqual(due, [true, false, false, false, true, false, false, false, true]);
});
