/** The cached catalogue of a node while another node changes it without a notification. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ages, MAX_AGE_MS } from '../../metadata/ages.ts';
import { Bus } from '../../metadata/bus.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { Rating } from '../metering/rating.ts';
import { Monthly, Plans } from './plans.ts';
import { Prices } from './prices.ts';
import { Quotas } from './quotas.ts';

const HOUR_MS = 3_600_000;
const TEN_MINUTES_MS = 600_000;

/** `there` changes plans and prices; the others belong to another node, with its own bus. */
async function twoNodes() {
  const fixture = await openBillingFixture({ creditsMicro: 1_000_000_000n });
  const { clock, catalog: store } = fixture;
  const ages = new Ages({ membership: { isShared: true, isCurrent: () => true }, clock });
  const here = { ...fixture, store, ages, bus: new Bus() };
  const prices = new Prices({ ...here, builtIn: [] });
  const deps = { ...fixture, store, creditsAdded: () => {} };
  const there = new Plans({ ...deps, quotas: new Quotas(deps), monthly: new Monthly(deps) });
  return {
    ...fixture,
    there,
    herePrices: prices,
    hereRating: new Rating({ ...fixture, prices, usage: fixture.usageStore }),
    quotas: new Quotas(here),
    monthly: new Monthly({ ...here, creditsAdded: () => {} }),
  };
}

test('a limit on stored bytes holds at another node after 2 s', async (t) => {
  const { clock, quotas, there, close } = await twoNodes();
  t.after(close);
  assert.deepEqual(await quotas.claimStorage(1, 1000), []);
  await there.change(BACKGROUND, 'free', { quotas: { storage_bytes: 100 } });
  clock.advance(MAX_AGE_MS - 1);
  assert.deepEqual(await quotas.claimStorage(1, 1000), []);
  clock.advance(1);
  await assert.rejects(quotas.claimStorage(1, 1000), /quota/);
});

test('a price that another node set before its hour is the price of that hour', async (t) => {
  const { clock, catalog, metadata, usage, herePrices, hereRating, row, close } = await twoNodes();
  t.after(close);
  await herePrices.load();
  const vm = { account_id: 1, vm_id: 'vm-1', instance_type: 't2.micro', name: 'a', vcpus: 1, disk_gb: 1 };
  await metadata.commit(usage.vmCreated(vm));
  await metadata.commit(usage.vmStarted(vm, clock.now()));
  const hour = herePrices.nextHour();
  const price = { meter: 'vm.time' as const, variant: 't2.micro', plan: '', price_nano: 5_000_000_000 };
  await metadata.commit([catalog.setPrice({ ...price, effective_from: hour })]);
  const before = BigInt((await row()).credits_micro);
  clock.advance(hour - clock.now() + HOUR_MS);
  await hereRating.rateUsage(1);
  assert.equal(before - BigInt((await row()).credits_micro), 5_000_000n);
});

test('credits of a plan that another node changed are given within 10 minutes', async (t) => {
  const { clock, monthly, there, close } = await twoNodes();
  t.after(close);
  assert.equal(await monthly.tick(), 0);
  await there.change(BACKGROUND, 'free', { monthly_credits: 2 });
  assert.equal(await monthly.tick(), 0);
  clock.advance(TEN_MINUTES_MS);
  assert.equal(await monthly.tick(), 1);
  assert.equal(await monthly.tick(), 0);
});
