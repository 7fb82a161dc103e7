import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AGELESS } from '../../metadata/ages.ts';
import { Bus } from '../../metadata/bus.ts';
import { BACKGROUND, Changes } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { openAccountFixture } from '../../testing/account-fixture.ts';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { CatalogStore } from '../catalog/catalog-store.ts';
import { Prices } from '../catalog/prices.ts';
import { Rating } from '../metering/rating.ts';
import { SteadyClock } from '../metering/steady-clock.ts';
import { UsageStore } from '../metering/usage-store.ts';
import { BillingAccountStore } from './billing-account-store.ts';
import { Credit, Spendable } from './credit.ts';

test('an account pays while a micro-credit is left; an unknown one never, nor one that ran out', async () => {
  const fixture = await openAccountFixture();
  try {
    const fields = { username: 'payer', email: 'payer@example.org', password: 'correct horse' };
    const { id } = await fixture.accounts.register(BACKGROUND, fields);
    const accounts = new BillingAccountStore(fixture.metadata);
    const { metadata, clock } = fixture;
    const steady = new SteadyClock({ clock, bootId: 'boot', anchor: null });
    const of = { bus: new Bus(), ages: AGELESS };
    const prices = new Prices({ ...of, store: new CatalogStore(metadata), clock, builtIn: [] });
    const shared = { accounts, prices, clock, steady };
    const changes = new Changes({ metadata });
    const rating = new Rating({ ...shared, changes, usage: new UsageStore(metadata) });
    const spendable = new Spendable({ ...shared, rating });
    const credit = new Credit({
      accounts,
      spendable,
      checks: { assertSound() {} },
      caps: { assertBelow: async () => {} },
    });
    const set = (micro: number | bigint) =>
      fixture.metadata.commit([
        { sql: 'UPDATE accounts SET credits_micro = ? WHERE id = ?', params: [micro, id] },
      ]);
    for (const micro of [10_000_000, 1, 2n ** 60n]) {
      await set(micro);
      await credit.assertCredit(id);
    }
    const refused = (error: unknown) => isAppError(error, 'insufficient_credits');
    for (const micro of [0, -1, -(2n ** 60n)]) {
      await set(micro);
      await assert.rejects(credit.assertCredit(id), refused, String(micro));
    }
    await assert.rejects(credit.assertCredit(id + 1), refused);
    await set(0);
    await assert.rejects(credit.assertCredit(id, 5_000_001n), (error: unknown) => {
      assert.ok(isAppError(error, 'insufficient_credits'));
      assert.deepEqual(error.extra, { needed: 5.000001, available: 0 });
      return true;
    });
    await set(5_000_000);
    await credit.assertCredit(id, 5_000_001n);
    for (const state of ['ok', 'low', 'critical', 'grace', 'suspended']) {
      await fixture.metadata.commit([
        { sql: 'UPDATE billing_accounts SET state = ? WHERE account_id = ?', params: [state, id] },
      ]);
      if (state === 'grace' || state === 'suspended')
        await assert.rejects(credit.assertCredit(id), refused, state);
      else await credit.assertCredit(id);
    }
  } finally {
    await fixture.close();
  }
});

test('credits that are shown decide: an account is refused exactly when unrated use brings it to 0', async () => {
  const fixture = await openBillingFixture({ creditsMicro: 100n });
  try {
    const { accounts, spendable, usage, holds, clock, metadata, rating } = fixture;
    const credit = new Credit({
      accounts,
      spendable,
      checks: { assertSound() {} },
      caps: { assertBelow: async () => {} },
    });
    const isRefused = (work: Promise<unknown>) =>
      work.then(
        () => false,
        (error) => isAppError(error, 'insufficient_credits') || assert.fail(String(error)),
      );
    const vm = { vm_id: 'vm-1', account_id: 1, name: 'web', instance_type: 't2.micro', disk_gb: 8 };
    await metadata.commit([...usage.vmCreated(vm), ...usage.vmStarted(vm, clock.now())]);
    // 3.2 micro-credits a second, none of which is charged.
    let shownZero = 0;
    for (let second = 0; second < 40; second++) {
      const { free } = await spendable.of(1);
      assert.equal(await isRefused(credit.assertCredit(1)), free === 0n, `${second} s: ${free} are shown`);
      if (free === 0n) shownZero++;
      assert.ok(await isRefused(holds.place({ ...vm, vm_id: `vm-${second + 2}` })), 'an hour costs 11,600');
      clock.advance(1000);
    }
    assert.ok(shownZero > 3 && shownZero < 20, `${shownZero} of 40`);
    assert.equal(Number((await fixture.row()).credits_micro), 100, 'nothing was charged meanwhile');
    await rating.rateUsage(1);
    assert.equal(Number((await fixture.row()).credits_micro), 0);
    await fixture.grant(1, 11_700n);
    clock.advance(10_000);
    await metadata.commit([...usage.vmStopped(vm, clock.now())]);
    const { free } = await spendable.of(1);
    assert.ok(free > 11_600n, String(free));
    await holds.place({ ...vm, vm_id: 'vm-99' });
    clock.advance(1000);
    await metadata.commit([...usage.vmStarted(vm, clock.now())]);
    clock.advance(60_000);
    assert.ok((await spendable.of(1)).free < 11_600n);
    assert.ok(await isRefused(holds.place({ ...vm, vm_id: 'vm-100' })), 'its credits are used already');
  } finally {
    await fixture.close();
  }
});
