import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeavyAccounts } from './heavy-accounts.ts';

function fixture() {
  let now = 1000;
  const clock = { now: () => now, monotonic: () => now, uptime: () => now };
  const accounts = new HeavyAccounts(clock);
  return { accounts, pass: (ms: number) => (now += ms) };
}

test('who starts many processes in a short time has the next ones start last', () => {
  const { accounts, pass } = fixture();
  const starts = (account: number, count: number) =>
    Array.from({ length: count }, () => accounts.startsLast(account));
  assert.deepEqual(starts(1, 6), [false, false, false, false, true, true]);
  assert.deepEqual(starts(2, 1), [false]);
  pass(5000);
  assert.deepEqual(starts(1, 1), [false]);
});

test('whose statements compute for long has processes start last, for a while', () => {
  const { accounts, pass } = fixture();
  accounts.noteLong(1);
  pass(4999);
  for (const [account, isHeavy] of [
    [1, true],
    [2, false],
  ] as const) {
    assert.equal(accounts.startsLast(account), isHeavy);
    assert.equal(accounts.computes(account), isHeavy);
  }
  pass(1);
  assert.equal(accounts.startsLast(1), false);
  assert.equal(accounts.computes(1), false);
});
