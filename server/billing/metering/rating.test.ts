import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type BillingFixture, openBillingFixture } from '../../testing/billing-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { METERS } from './meters.ts';

const VM = { vm_id: 'vm-1', account_id: 1, name: 'web', instance_type: 't2.micro', disk_gb: 30 };
const BUCKET = { id: 7, account_id: 1, name: 'photos' };

const usedMicro = async (fixture: BillingFixture) => {
  const windows = await fixture.usageStore.windowsOf(1, 0, Number.MAX_SAFE_INTEGER);
  return windows.reduce((sum, window) => sum + BigInt(window.cost_micro), 0n);
};

/** The usage booked by the ledger, whoever paid. */
const bookedMicro = async (fixture: BillingFixture) => {
  const row = await fixture.metadata.get<{ sum: number | bigint }>(
    `SELECT coalesce(sum(CASE code WHEN 'usage' THEN amount_micro ELSE -amount_micro END), 0) AS sum
     FROM ledger_transfers WHERE code IN ('usage', 'usage_correction')`,
  );
  return BigInt(row?.sum ?? -1);
};

async function assertSound(fixture: BillingFixture): Promise<void> {
  assert.equal((await fixture.ledger.verify()).problem, null);
  assert.equal(await usedMicro(fixture), await bookedMicro(fixture));
  const holds = await fixture.usageStore.holdsOf(1);
  const held = holds.reduce((sum, hold) => sum + BigInt(hold.amount_micro), 0n);
  assert.equal(BigInt((await fixture.row()).held_micro), held);
}

test('a machine is charged by the second, once, however often it is rated', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  await metadata.commit(usage.vmCreated({ ...VM, disk_gb: 0 }));
  await metadata.commit(usage.vmStarted(VM, clock.now()));
  clock.advance(45_000);
  await Promise.all(Array.from({ length: 20 }, () => rating.rateUsage(1)));
  assert.equal(await usedMicro(fixture), 145n);
  clock.advance(45_000);
  await metadata.commit(usage.vmStopped(VM, clock.now()));
  clock.advance(100_000);
  await rating.rateUsage(1);
  assert.equal(await usedMicro(fixture), 290n);
  assert.equal((await fixture.row()).credits_micro, 10_000_000 - 290);
  await assertSound(fixture);
});

test('an end that turns out to have been earlier gives back what was charged too much', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  await metadata.commit(usage.vmCreated({ ...VM, disk_gb: 0 }));
  await metadata.commit(usage.vmStarted(VM, clock.now()));
  clock.advance(90_000);
  const died = clock.now();
  clock.advance(60_000);
  await rating.rateUsage(1);
  await metadata.commit(usage.vmStopped(VM, died));
  await rating.rateUsage(1);
  assert.equal(await usedMicro(fixture), 290n);
  assert.equal((await fixture.row()).credits_micro, 10_000_000 - 290);
  await assertSound(fixture);
});

test('what an account cannot pay is taken from what it holds, then written off', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 3_070_000n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating, holds } = fixture;
  const big = { ...VM, instance_type: 'p3.2xlarge', disk_gb: 0 };
  await metadata.commit(usage.vmCreated(big));
  await metadata.commit([...(await holds.place(big)), ...usage.vmStarted(big, clock.now())]);
  assert.equal((await fixture.row()).credits_micro, 10_000);
  assert.equal((await fixture.row()).held_micro, 3_060_000);
  clock.advance(60_000);
  await rating.rateUsage(1);
  assert.equal((await fixture.row()).credits_micro, 0);
  assert.equal((await fixture.row()).held_micro, 3_060_000 - 41_000);
  await assertSound(fixture);
  clock.advance(2 * 3_600_000);
  await rating.rateUsage(1);
  assert.equal((await fixture.row()).held_micro, 0);
  const unpaid = await metadata.get<{ sum: number }>(
    "SELECT sum(amount_micro) AS sum FROM ledger_transfers WHERE debit = 'system:write-offs'",
  );
  assert.equal(unpaid?.sum, 2 * 3_060_000 + 51_000 - 3_070_000);
  await metadata.commit([...(await holds.release(big)), ...usage.vmStopped(big, clock.now())]);
  await assertSound(fixture);
});

test('what goes back to an account pays what it owes before anything is written off', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 3_060_000n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  const big = { ...VM, instance_type: 'p3.2xlarge', disk_gb: 0 };
  await metadata.commit([...usage.vmCreated(big), ...usage.vmStarted(big, clock.now())]);
  await metadata.commit(usage.bucketCreated(BUCKET));
  const died = clock.now() + 600_000;
  clock.advance(3_600_000);
  await rating.rateUsage(1);
  assert.equal((await fixture.row()).credits_micro, 0);
  await metadata.commit([...usage.vmStopped(big, died), usage.bucketSent(BUCKET.id, 2 ** 30)]);
  await rating.rateUsage(1);
  assert.equal((await fixture.row()).credits_micro, 3_060_000 - 510_000 - 90_000);
  await assertSound(fixture);
});

test('holds let exactly as many start as there are credits for', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 11_600n * 5n + 11_599n });
  t.after(fixture.close);
  const started = await Promise.allSettled(
    Array.from({ length: 64 }, async (_, i) => {
      await fixture.metadata.commit(await fixture.holds.place({ ...VM, vm_id: `vm-${i}` }));
    }),
  );
  assert.equal(started.filter(({ status }) => status === 'fulfilled').length, 5);
  await assertSound(fixture);
  for (let i = 0; i < 64; i++) {
    await fixture.metadata.commit(await fixture.holds.release({ ...VM, vm_id: `vm-${i}` }));
  }
  assert.equal((await fixture.row()).credits_micro, 11_600 * 5 + 11_599);
  assert.equal((await fixture.row()).held_micro, 0);
  await assertSound(fixture);
});

/** Steps in the life of resources, and the quantities of a model without lines, windows or ratings. */
test('any history, rated anyhow, adds up to what a model says was used', async () => {
  const step = fc.record({
    advance: fc.integer({ min: 0, max: 5_000_000 }),
    what: fc.constantFrom('start', 'stop', 'put', 'remove', 'send', 'settle', 'settle', 'nothing'),
    bytes: fc.integer({ min: 1, max: 10 ** 12 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const fixture = await openBillingFixture({ creditsMicro: 10n ** 15n });
      const { clock, metadata, usage, rating } = fixture;
      const model = { running: false, bytes: 0, runMs: 0n, diskMs: 0n, byteSeconds: 0n, sent: 0n };
      const beganAt = clock.now();
      try {
        await metadata.commit([...usage.vmCreated(VM), ...usage.bucketCreated(BUCKET)]);
        for (const { advance, what, bytes } of steps) {
          const before = clock.now();
          clock.advance(advance);
          const seconds = Math.floor(clock.now() / 1000) - Math.floor(before / 1000);
          model.runMs += model.running ? BigInt(advance) : 0n;
          model.byteSeconds += BigInt(model.bytes) * BigInt(seconds);
          if (what === 'start' && !model.running) await metadata.commit(usage.vmStarted(VM, clock.now()));
          if (what === 'stop' && model.running) await metadata.commit(usage.vmStopped(VM, clock.now()));
          if (what === 'start' || what === 'stop') model.running = what === 'start';
          const change = what === 'put' ? bytes : what === 'remove' ? -Math.min(bytes, model.bytes) : 0;
          if (change !== 0) await metadata.commit([usage.bucketChanged(BUCKET.id, change)]);
          model.bytes += change;
          if (what === 'send') {
            await metadata.commit([usage.bucketSent(BUCKET.id, bytes)]);
            model.sent += BigInt(bytes);
          }
          if (what === 'settle') await rating.rateUsage(1);
        }
        await metadata.commit([...usage.vmDeleted(VM), ...usage.bucketDeleted(BUCKET.id)]);
        await rating.rateAll();
        model.diskMs = BigInt(VM.disk_gb) * BigInt(clock.now() - beganAt);
        const quantities = new Map<string, bigint>();
        for (const window of await fixture.usageStore.windowsOf(1, 0, Number.MAX_SAFE_INTEGER)) {
          const before = quantities.get(window.meter) ?? 0n;
          quantities.set(window.meter, before + BigInt(window.quantity));
        }
        const of = (meter: keyof typeof METERS) => quantities.get(meter) ?? 0n;
        assert.equal(of('vm.time'), model.runMs);
        assert.equal(of('vm.disk'), model.diskMs);
        assert.equal(of('storage'), model.byteSeconds);
        assert.equal(of('egress'), model.sent);
        const cost = (quantity: bigint, priceNano: bigint, meter: keyof typeof METERS) =>
          (quantity * priceNano) / (METERS[meter].perUnit * 1000n);
        const expected =
          cost(model.runMs, 11_600_000n, 'vm.time') +
          cost(model.diskMs, 137n, 'vm.disk') +
          cost(model.byteSeconds, 31_507n, 'storage') +
          cost(model.sent, 90_000_001n, 'egress');
        assert.equal(await usedMicro(fixture), expected);
        await assertSound(fixture);
        assert.deepEqual(
          (await Array.fromAsync(fixture.usageStore.linePages(1))).flat(),
          [],
          'closed lines are gone when rated',
        );
      } finally {
        await fixture.close();
      }
    }),
    { numRuns: cases(60) },
  );
});

test('a price holds from its hour on, also when nobody rated in between', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage, rating, catalog, prices } = fixture;
  const from = prices.nextHour();
  await metadata.commit([
    catalog.setPrice({
      meter: 'vm.time',
      variant: 't2.micro',
      plan: '',
      effective_from: from,
      price_nano: 0,
    }),
    catalog.setPrice({
      meter: 'vm.time',
      variant: 't2.micro',
      plan: 'lab',
      effective_from: from,
      price_nano: 9,
    }),
  ]);
  await prices.load();
  await metadata.commit(usage.vmCreated({ ...VM, disk_gb: 0 }));
  await metadata.commit(usage.vmStarted(VM, clock.now()));
  clock.advance(from - clock.now() + 1_800_000);
  await rating.rateUsage(1);
  assert.equal(await usedMicro(fixture), 11_600n);
  const question = { meter: 'vm.time', variant: 't2.micro', plan: 'lab' } as const;
  assert.equal(prices.priceNano({ ...question, at: from }), 9n);
  assert.equal(prices.priceNano({ ...question, at: from - 1 }), 11_600_000n);
});

test('use that was written off is not given back to who never paid it', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 1_000_000n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  const big = { ...VM, instance_type: 'p3.2xlarge', disk_gb: 0 };
  await metadata.commit(usage.vmCreated(big));
  await metadata.commit(usage.vmStarted(big, clock.now()));
  const died = clock.now() + 60_000;
  clock.advance(3_600_000);
  await rating.rateUsage(1);
  assert.equal((await fixture.row()).written_off_micro, 2_060_000);
  await metadata.commit(usage.vmStopped(big, died));
  await rating.rateUsage(1);
  const { credits_micro, written_off_micro } = await fixture.row();
  assert.deepEqual([credits_micro, written_off_micro], [1_000_000 - 51_000, 0]);
  assert.equal(await usedMicro(fixture), 51_000n);
  await assertSound(fixture);
});
