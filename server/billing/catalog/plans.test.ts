import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { CatalogStore } from './catalog-store.ts';
import { Monthly, Plans } from './plans.ts';
import { Quotas } from './quotas.ts';

const DAY = 24 * 3_600_000;
const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;

async function openPlans() {
  const fixture = await openBillingFixture({ creditsMicro: 0n });
  const store = new CatalogStore(fixture.metadata);
  const nudged: number[] = [];
  const deps = { ...fixture, store, creditsAdded: (id: number) => nudged.push(id) };
  /** Nothing in memory survives, as after a kill. */
  const newMonthly = () => new Monthly(deps);
  const monthly = newMonthly();
  const quotas = new Quotas({ ...fixture, store: new CatalogStore(fixture.metadata) });
  const plans = new Plans({ ...fixture, store, quotas, monthly });
  const credits = async (id = 1) => Number((await fixture.row(id)).credits_micro) / 1e6;
  return { ...fixture, store, monthly, newMonthly, plans, nudged, credits };
}

test('monthly credits come once a calendar month, whatever is killed or repeated', async (t) => {
  const fixture = await openPlans();
  t.after(fixture.close);
  const { plans, monthly, newMonthly, clock, credits, nudged } = fixture;
  assert.equal(await monthly.tick(), 0);
  await plans.change(BACKGROUND, 'free', { monthly_credits: 2.5 });
  assert.equal(await monthly.tick(), 1);
  await Promise.all([monthly.tick(), newMonthly().tick(), newMonthly().tick(), newMonthly().giveTo(1)]);
  assert.equal(await credits(), 2.5);
  assert.deepEqual(nudged, [1]);
  // A new account gets its quotas at the next tick.
  const second = await fixture.addAccount(0n);
  await monthly.tick();
  assert.deepEqual([await credits(), await credits(second)], [2.5, 2.5]);
  clock.advance(30 * DAY);
  await monthly.tick();
  assert.equal(await credits(), 2.5, 'January has 31 days');
  clock.advance(DAY);
  await Promise.all(Array.from({ length: 4 }, () => newMonthly().tick()));
  assert.deepEqual([await credits(), await credits(second)], [5, 5]);
  // The clock is set back, and forward again.
  clock.jump(-5 * DAY);
  await monthly.tick();
  clock.jump(5 * DAY);
  await monthly.tick();
  assert.deepEqual([await credits(), await credits(second)], [5, 5]);
  assert.equal((await fixture.ledger.verify()).problem, null);
});

test('as many as share a month are given in pages', async (t) => {
  const fixture = await openPlans();
  t.after(fixture.close);
  await fixture.plans.change(BACKGROUND, 'free', { monthly_credits: 1 });
  for (let i = 0; i < 450; i++) await fixture.addAccount(0n);
  assert.equal(await fixture.monthly.tick(), 451);
  assert.equal(await fixture.newMonthly().tick(), 0);
});

test('assigning a plan gives its credits at once, and each plan once a month', async (t) => {
  const fixture = await openPlans();
  t.after(fixture.close);
  const { plans, credits } = fixture;
  await plans.create(BACKGROUND, { name: 'pro', monthly_credits: 7, quotas: { vms: 3 } });
  await plans.create(BACKGROUND, { name: 'max', monthly_credits: 11 });
  const terms = await plans.setTerms(BACKGROUND, 1, { plan: 'pro', quotas: { buckets: 2 } });
  assert.deepEqual(terms, {
    id: 1,
    plan: 'pro',
    own_quotas: { buckets: 2 },
    quotas: {
      vms: { limit: 3, used: 0 },
      vcpus: { limit: null, used: 0 },
      memory_mb: { limit: null, used: 0 },
      disk_gb: { limit: null, used: 0 },
      storage_bytes: { limit: null, used: 0 },
      buckets: { limit: 2, used: 0 },
      databases: { limit: null, used: 0 },
    },
    spend_cap: null,
  });
  for (const plan of ['pro', 'free', 'pro', 'max', 'pro']) await plans.setTerms(BACKGROUND, 1, { plan });
  assert.equal(await credits(), 18);
  await assert.rejects(plans.setTerms(BACKGROUND, 1, { plan: 'none' }), code('plan_not_found'));
  await assert.rejects(plans.setTerms(BACKGROUND, 99, { plan: 'pro' }), code('account_not_found'));
  assert.deepEqual((await plans.setTerms(BACKGROUND, 1, {})).own_quotas, { buckets: 2 });
});

test('what was used before a change of plan is charged by the plan of before', async (t) => {
  const fixture = await openPlans();
  t.after(fixture.close);
  const { plans, usage, metadata, clock, grant, credits } = fixture;
  await grant(1, 10_000_000n);
  await plans.create(BACKGROUND, { name: 'gift' });
  const gift = { meter: 'vm.time', variant: 'p3.2xlarge', plan: 'gift', price_nano: 0 } as const;
  await metadata.commit([fixture.catalog.setPrice({ ...gift, effective_from: 0 })]);
  await fixture.prices.load();
  const vm = { vm_id: 'vm-1', account_id: 1, name: 'a', instance_type: 'p3.2xlarge', disk_gb: 0 };
  await metadata.commit([...usage.vmCreated(vm), ...usage.vmStarted(vm, clock.now())]);
  clock.advance(3_600_000);
  await plans.setTerms(BACKGROUND, 1, { plan: 'gift' });
  clock.advance(3_600_000);
  await fixture.rating.rateUsage(1);
  assert.equal(await credits(), 6.94);
});

test('plans are made, changed and deleted, but none that somebody has', async (t) => {
  const fixture = await openPlans();
  t.after(fixture.close);
  const { plans } = fixture;
  const quotas = { vms: 5, buckets: null, nonsense: 3 };
  const made = await plans.create(BACKGROUND, { name: 'pro', monthly_credits: 1.5, quotas });
  assert.deepEqual(made.quotas, { vms: 5, buckets: null });
  await assert.rejects(plans.create(BACKGROUND, { name: 'pro' }), code('plan_exists'));
  await assert.rejects(
    plans.create(BACKGROUND, { name: 'x', monthly_credits: 1e-7 }),
    code('invalid_request'),
  );
  const changed = await plans.change(BACKGROUND, 'pro', { quotas: { vcpus: 1 } });
  assert.deepEqual([changed.quotas, changed.monthly_credits], [{ vcpus: 1 }, 1.5]);
  await plans.setTerms(BACKGROUND, 1, { plan: 'pro' });
  const counts = (await plans.list()).map(({ name, account_count }) => [name, account_count]);
  assert.deepEqual(counts, [
    ['free', 0],
    ['pro', 1],
  ]);
  await assert.rejects(plans.remove(BACKGROUND, 'pro'), code('plan_in_use'));
  await assert.rejects(plans.remove(BACKGROUND, 'free'), code('plan_in_use'));
  await plans.setTerms(BACKGROUND, 1, { plan: 'free' });
  await plans.remove(BACKGROUND, 'pro');
  await assert.rejects(plans.remove(BACKGROUND, 'pro'), code('plan_not_found'));
  await assert.rejects(plans.change(BACKGROUND, 'pro', {}), code('plan_not_found'));
  const [assigned] = await fixture.metadata.commit([fixture.store.assignPlan(1, 'pro')]);
  assert.equal(assigned?.changes, 0);
});

test('the first plan follows the host until an operator sets its quotas', async (t) => {
  const fixture = await openPlans();
  t.after(fixture.close);
  const { plans } = fixture;
  const free = async () => (await plans.list()).find(({ name }) => name === 'free');
  assert.equal((await free())?.follows_host, true);
  await plans.followHost({ vms: 30, storage_bytes: 10 });
  assert.deepEqual((await free())?.quotas, { vms: 30, storage_bytes: 10 });
  // Another host, or more memory in this one.
  await plans.followHost({ vms: 40 });
  await plans.change(BACKGROUND, 'free', { monthly_credits: 1 });
  await plans.change(BACKGROUND, 'free', { quotas: { vms: 40 } });
  assert.deepEqual([(await free())?.quotas, (await free())?.follows_host], [{ vms: 40 }, true]);
  await plans.change(BACKGROUND, 'free', { quotas: { vms: 7 } });
  await plans.followHost({ vms: 50 });
  assert.deepEqual([(await free())?.quotas, (await free())?.follows_host], [{ vms: 7 }, false]);
  await plans.create(BACKGROUND, { name: 'own', quotas: { vms: 1 } });
  await plans.followHost({ vms: 60 });
  const own = (await plans.list()).find(({ name }) => name === 'own');
  assert.deepEqual([own?.quotas, own?.follows_host], [{ vms: 1 }, false]);
});
