import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DueRow } from './serving-order.ts';
import { ServingOrder } from './serving-order.ts';

class Cloud {
  now = 0;
  readonly order = new ServingOrder({ monotonic: () => this.now });
  readonly running = new Map<DueRow, () => void>();

  /** Starts all that may start. */
  serve(waiting: readonly DueRow[]): DueRow[] {
    const due = waiting.filter((row) => !this.running.has(row));
    const begun: DueRow[] = [];
    for (const row of this.order.next(waiting, due)) {
      this.running.set(row, this.order.begin(row));
      begun.push(row);
    }
    return begun;
  }

  /** Ends all that run after `ms`. */
  pass(ms: number): void {
    this.now += ms;
    for (const end of this.running.values()) end();
    this.running.clear();
  }
}

/** Each account has `count` webhooks. */
function webhooksOf(accounts: number, count: number): DueRow[] {
  const rows = Array.from({ length: accounts * count }, (_, index) => index);
  return rows.map((index) => ({ receiver: index, account_id: 100 + Math.floor(index / count), next_at: 0 }));
}

const victim: DueRow = { receiver: 9999, account_id: 1, next_at: 5 };

test('accounts take turns, whatever number of webhooks each has', () => {
  const cloud = new Cloud();
  const waiting = [...webhooksOf(3, 20), victim];
  for (let round = 0; round < 5; round++) {
    const begun = cloud.serve(waiting);
    assert.ok(begun.includes(victim), `round ${round}`);
    for (const account of [100, 101, 102]) {
      assert.equal(begun.filter(({ account_id }) => account_id === account).length, 4);
    }
    cloud.pass(10);
  }
});

test('receivers that do not respond hold half of the places, of however many accounts', () => {
  const cloud = new Cloud();
  const hostile = webhooksOf(100, 20);
  // Nothing is known about them yet: they get all slots, once.
  assert.equal(cloud.serve(hostile).length, 16);
  cloud.pass(10_000);
  const known = hostile.filter(({ account_id }) => account_id < 104);
  for (let round = 0; round < 5; round++) {
    assert.equal(cloud.serve(known).length, 8, `round ${round}`);
    assert.deepEqual(cloud.serve([...known, victim]), [victim]);
    cloud.now += 10;
    cloud.running.get(victim)?.();
    cloud.running.delete(victim);
    cloud.pass(10_000);
  }
});

test('an attempt that runs for long counts as slow before its end', () => {
  const cloud = new Cloud();
  const hostile = webhooksOf(4, 4);
  assert.equal(cloud.serve(hostile.slice(0, 8)).length, 8);
  cloud.now += 3000;
  for (const row of hostile.slice(0, 4)) {
    cloud.running.get(row)?.();
    cloud.running.delete(row);
  }
  // Account 100 is known to be slow, and 101 has been busy for 3 s: four slots for slow accounts are left.
  assert.equal(cloud.serve(hostile.slice(0, 8)).length, 4);
  assert.equal(cloud.serve([...hostile.slice(0, 8), victim]).length, 1);
});

test('a slow account is given another chance after ten minutes', () => {
  const cloud = new Cloud();
  const rows = webhooksOf(4, 4);
  cloud.serve(rows);
  cloud.pass(5000);
  assert.equal(cloud.serve(rows).length, 8);
  cloud.pass(10);
  cloud.now += 600_000;
  assert.equal(cloud.serve(rows).length, 16);
});
