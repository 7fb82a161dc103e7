/** The hours in which a use is charged are those in which it was used, whenever it is rated. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BillingFixture, openBillingFixture } from '../../testing/billing-fixture.ts';
import { hourOf } from './settlement.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const VM = { vm_id: 'vm-1', account_id: 1, name: 'web', instance_type: 't2.micro', disk_gb: 0 };
const BUCKET = { id: 7, account_id: 1, name: 'photos' };
const GIB = 2 ** 30;

async function hoursOf(fixture: BillingFixture, meter: string): Promise<[number, number][]> {
  const windows = await fixture.usageStore.windowsOf(1, 0, Number.MAX_SAFE_INTEGER);
  return windows
    .filter((window) => window.meter === meter && BigInt(window.quantity) !== 0n)
    .map((window) => [window.window_start, Number(window.quantity)]);
}

test('what is sent is charged in its hour, not in that of the rating before', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage, rating, catalog, prices } = fixture;
  await metadata.commit(usage.bucketCreated(BUCKET));
  clock.advance(30 * DAY_MS);
  const from = prices.nextHour();
  const dear = {
    meter: 'egress',
    variant: '',
    plan: '',
    effective_from: from,
    price_nano: 5_000_000,
  } as const;
  await metadata.commit([catalog.setPrice(dear)]);
  await prices.load();
  clock.advance(2 * HOUR_MS);
  await metadata.commit([usage.bucketSent(BUCKET.id, GIB)]);
  const first = hourOf(clock.now());
  clock.advance(HOUR_MS / 2);
  await rating.rateUsage(1);
  assert.deepEqual(await hoursOf(fixture, 'egress'), [[first, GIB]]);
  assert.equal((await fixture.row()).credits_micro, 10_000_000 - 5000, 'by the price of its hour');
  clock.advance(3 * DAY_MS);
  await metadata.commit([usage.bucketSent(BUCKET.id, 5)]);
  const second = hourOf(clock.now());
  await rating.rateUsage(1);
  assert.deepEqual(await hoursOf(fixture, 'egress'), [
    [first, GIB],
    [second, 5],
  ]);
});

test('a short run after a long rest is charged in its hour alone', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  await metadata.commit([...usage.vmCreated(VM), ...usage.bucketCreated(BUCKET)]);
  clock.advance(40 * DAY_MS);
  const hour = hourOf(clock.now());
  await metadata.commit([...usage.vmStarted(VM, clock.now()), usage.bucketChanged(BUCKET.id, 1000)]);
  clock.advance(600_000);
  await metadata.commit([...usage.vmStopped(VM, clock.now()), usage.bucketChanged(BUCKET.id, -1000)]);
  clock.advance(600_000);
  await rating.rateUsage(1);
  assert.deepEqual(await hoursOf(fixture, 'vm.time'), [[hour, 600_000]]);
  assert.deepEqual(await hoursOf(fixture, 'storage'), [[hour, 600_000]]);
});

test('what was charged after the real end goes back to the hours it was charged in', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  await metadata.commit(usage.vmCreated(VM));
  const hour = hourOf(clock.now());
  clock.advance(hour + HOUR_MS - clock.now());
  await metadata.commit(usage.vmStarted(VM, clock.now()));
  clock.advance(HOUR_MS / 2);
  const died = clock.now();
  clock.advance((5 * HOUR_MS) / 2);
  await rating.rateUsage(1);
  await metadata.commit(usage.vmStopped(VM, died));
  await rating.rateUsage(1);
  assert.deepEqual(await hoursOf(fixture, 'vm.time'), [[hour + HOUR_MS, HOUR_MS / 2]]);
});

test('everybody is charged soon after an hour began, once, whoever cannot be', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  const other = await fixture.addAccount(1_000_000n);
  await metadata.commit(usage.vmCreated({ ...VM, disk_gb: 1 }));
  await metadata.commit(usage.vmCreated({ ...VM, vm_id: 'vm-2', account_id: other, disk_gb: 1 }));
  clock.advance(60_000);
  await rating.rateHour();
  assert.equal((await fixture.row()).settlement, 1);
  clock.advance(60_000);
  await rating.rateHour();
  assert.equal((await fixture.row()).settlement, 1, 'not twice in an hour');
  // Quantities that can never be charged: larger than any transfer of the ledger.
  await metadata.commit([
    { sql: 'UPDATE usage_lines SET pending = 1 << 62 WHERE account_id = 1', params: [] },
  ]);
  clock.advance(HOUR_MS);
  await metadata.commit([
    {
      sql: `INSERT INTO prices (meter, variant, plan, effective_from, price_nano)
            VALUES ('vm.disk', 't2.micro', '', 0, 1000000000000)`,
      params: [],
    },
  ]);
  await fixture.prices.load();
  await assert.rejects(rating.rateHour(), /1 of 2 accounts could not be charged/);
  assert.equal((await fixture.row(other)).settlement, 2);
});

test('what is much is charged in more commits than one, and all of it', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 10n ** 15n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  const ids = Array.from({ length: 60 }, (_, i) => i + 1);
  for (const id of ids) {
    await metadata.commit([
      ...usage.bucketCreated({ ...BUCKET, id, name: `b-${id}` }),
      usage.bucketChanged(id, 1_000_000_007 * id),
    ]);
  }
  clock.advance(100 * HOUR_MS);
  await Promise.all([rating.rateUsage(1), rating.rateUsage(1)]);
  assert.ok((await fixture.row()).settlement >= 6);
  for (const id of ids) await metadata.commit(usage.bucketDeleted(id));
  await rating.rateUsage(1);
  const windows = await fixture.usageStore.windowsOf(1, 0, Number.MAX_SAFE_INTEGER);
  const used = windows.reduce((sum, window) => sum + BigInt(window.quantity), 0n);
  assert.equal(used, 1_000_000_007n * BigInt((60 * 61) / 2) * 360_000n);
  const cost = windows.reduce((sum, window) => sum + BigInt(window.cost_micro), 0n);
  assert.equal(BigInt((await fixture.row()).credits_micro), 10n ** 15n - cost);
  assert.equal((await fixture.ledger.verify()).problem, null);
  assert.deepEqual((await Array.fromAsync(fixture.usageStore.linePages(1))).flat(), []);
});
