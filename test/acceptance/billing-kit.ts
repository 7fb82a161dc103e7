/** Shared by the tests of billing: the books as stored on disk, and a machine's bill. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { CheckedClient } from '../harness/checked-client.ts';

/** Micro-credits. */
export const T2_MICRO_PRICE = 11_600;

interface Transfer {
  readonly seq: bigint;
  readonly id: string;
  readonly debit: string;
  readonly credit: string;
  readonly amount_micro: bigint;
  readonly code: string;
  readonly reference: string;
  readonly created_at: bigint;
  readonly prev_hash: string;
  readonly hash: string;
}

function reading<T>(dataDir: string, work: (database: Database.Database) => T): T {
  const database = new Database(join(dataDir, 'metadata.db'), { readonly: true });
  database.defaultSafeIntegers(true);
  try {
    // All reads use one state, even while the cloud runs.
    return database.transaction(() => work(database))();
  } finally {
    database.close();
  }
}

function assertChain(transfers: readonly Transfer[]): void {
  let head = '0'.repeat(64);
  for (const [i, row] of transfers.entries()) {
    assert.equal(row.seq, BigInt(i + 1), 'a row is missing');
    assert.equal(row.prev_hash, head, `row ${row.seq} does not follow`);
    const { prev_hash, seq, id, debit, credit, amount_micro, code, reference, created_at } = row;
    const text = [prev_hash, seq, id, debit, credit, amount_micro, code, reference, created_at]
      .map((field) => `${Buffer.byteLength(String(field))}:${field},`)
      .join('');
    assert.equal(createHash('sha256').update(text).digest('hex'), row.hash, `row ${row.seq} was changed`);
    head = row.hash;
  }
}

/**
 * Verifies the whole ledger, independently of the server: the chain is complete, each transfer adds up to 0,
 * every cached balance is its sum, and no account is below 0. Returns the transfers.
 */
export function assertBooks(dataDir: string): Transfer[] {
  return reading(dataDir, (database) => {
    const transfers = database.prepare('SELECT * FROM ledger_transfers ORDER BY seq').all() as Transfer[];
    assertChain(transfers);
    const sums = new Map<string, bigint>();
    const move = (side: string, amount: bigint) => sums.set(side, (sums.get(side) ?? 0n) + amount);
    for (const { debit, credit, amount_micro } of transfers) {
      assert.ok(amount_micro > 0n);
      move(debit, -amount_micro);
      move(credit, amount_micro);
    }
    assert.equal(
      [...sums.values()].reduce((sum, each) => sum + each, 0n),
      0n,
    );
    const cached = database
      .prepare('SELECT id, credits_micro, held_micro FROM accounts JOIN billing_accounts ON account_id = id')
      .all() as { id: bigint; credits_micro: bigint; held_micro: bigint }[];
    for (const { id, credits_micro, held_micro } of cached) {
      assert.equal(credits_micro, sums.get(`account:${id}`) ?? 0n, `account ${id}`);
      assert.equal(held_micro, sums.get(`held:${id}`) ?? 0n, `held of account ${id}`);
      assert.ok(credits_micro >= 0n && held_micro >= 0n);
    }
    const holds = database.prepare('SELECT account_id AS id, sum(amount_micro) AS sum FROM holds GROUP BY 1');
    for (const { id, sum } of holds.all() as { id: bigint; sum: bigint }[]) {
      assert.equal(sums.get(`held:${id}`) ?? 0n, sum, `holds of account ${id}`);
    }
    return transfers;
  });
}

export interface Run {
  /** ms since 1970. */
  readonly from: number;
  readonly to: number;
}

/** The runs of a stopped machine, as recorded in the commits that started and ended them. */
export function runsOf(dataDir: string, vmId: string): Run[] {
  const events = reading(
    dataDir,
    (database) =>
      database
        .prepare(
          "SELECT event, at FROM vm_usage WHERE vm_id = ? AND event IN ('started', 'stopped') ORDER BY id",
        )
        .all(vmId) as { event: string; at: bigint }[],
  );
  assert.deepEqual(
    events.map(({ event }) => event),
    events.map((_, i) => (i % 2 === 0 ? 'started' : 'stopped')),
  );
  assert.equal(events.length % 2, 0, 'its last run is over');
  return events.flatMap(({ at }, i) =>
    i % 2 === 0 ? [{ from: Number(at), to: Number(events[i + 1]?.at) }] : [],
  );
}

export const msOf = (runs: readonly Run[]) => runs.reduce((sum, { from, to }) => sum + to - from, 0);

export interface Bill {
  /** The charged time, ms. */
  readonly ms: number;
  readonly micro: number;
}

/** The cost of a machine's time up to now. Also checks the sums of the report. */
export async function billOf(user: CheckedClient, vmId: string, query = ''): Promise<Bill> {
  const report = await user.expect(200, `/api/billing/usage${query}`);
  const micro = (credits: number) => Math.round(credits * 1e6);
  const total = (report.items as { cost: number }[]).reduce((sum, { cost }) => sum + micro(cost), 0);
  assert.equal(micro(report.total_cost), total);
  const days = (report.daily as { cost: number }[]).reduce((sum, { cost }) => sum + micro(cost), 0);
  assert.equal(days, total);
  const { granted, used, balance } = report.credits;
  assert.equal(micro(granted) - micro(used), micro(balance));
  type Item = { meter: string; resource_id: string; quantity: number; cost: number };
  const items = (report.items as Item[]).filter(
    ({ meter, resource_id }) => meter === 'vm.time' && resource_id === vmId,
  );
  return {
    ms: Math.round(items.reduce((sum, { quantity }) => sum + quantity, 0) * 3_600_000),
    micro: items.reduce((sum, { cost }) => sum + micro(cost), 0),
  };
}

/** The bill is the price of that time, in whole micro-credits; clocks may differ by `tolerance` ms. */
export function assertBill({ ms, micro }: Bill, expectedMs: number, tolerance: number): void {
  assert.ok(Math.abs(ms - expectedMs) <= tolerance, `charged for ${ms} ms, it ran ${expectedMs} ms`);
  assert.equal(micro, Math.floor((ms * T2_MICRO_PRICE) / 3_600_000));
}
