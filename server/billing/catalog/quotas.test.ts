import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CommitRejected, type Statement } from '../../metadata/metadata.ts';
import { isAppError } from '../../platform/errors.ts';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { CatalogStore } from './catalog-store.ts';
import { type Limits, Quotas } from './quotas.ts';

async function openQuotas() {
  const fixture = await openBillingFixture();
  const quotas = new Quotas({ ...fixture, store: new CatalogStore(fixture.metadata) });
  const setPlan = (limits: Limits) =>
    fixture.metadata.commit([
      { sql: "UPDATE plans SET quotas = ? WHERE name = 'free'", params: [JSON.stringify(limits)] },
    ]);
  const setOwn = (limits: Limits) => fixture.metadata.commit([quotas.setOwn(1, limits)]);
  /** As the domains do: claims again if another caller was faster. */
  const take = async (
    claim: () => Promise<readonly Statement[]>,
    first: readonly Statement[] = [],
  ): Promise<boolean> => {
    for (;;) {
      try {
        await fixture.metadata.commit([...first, ...(await claim())]);
        return true;
      } catch (error) {
        if (error instanceof CommitRejected) continue;
        if (isAppError(error, 'quota_exceeded')) return false;
        throw error;
      }
    }
  };
  const store = (bytes: number) =>
    take(
      () => quotas.claimStorage(1, bytes),
      [{ sql: 'UPDATE accounts SET storage_bytes = storage_bytes + ? WHERE id = 1', params: [bytes] }],
    );
  const used = async () => {
    const found = await quotas.termsOf(1);
    assert.ok(found);
    return Object.fromEntries(Object.entries(found.quotas).map(([quota, use]) => [quota, use.used]));
  };
  return { ...fixture, quotas, setPlan, setOwn, take, store, used };
}

const VM = { account_id: 1, vcpus: 2, disk_gb: 30 };

test('50 at once at a limit of 5: exactly 5', async (t) => {
  const fixture = await openQuotas();
  t.after(fixture.close);
  const { quotas, setPlan, take } = fixture;
  await setPlan({ vms: 5, buckets: 5, databases: 5 });
  const many = (claim: () => Promise<readonly Statement[]>) =>
    Promise.all(Array.from({ length: 50 }, () => take(claim)));
  for (const claim of [
    () => quotas.claimVm(VM),
    () => quotas.claimBucket(1),
    () => quotas.claimDatabase(1),
  ]) {
    const made = await many(claim);
    assert.equal(made.filter(Boolean).length, 5);
  }
  const none = { memory_mb: 0, disk_gb: 0, storage_bytes: 0 };
  assert.deepEqual(await fixture.used(), { ...none, vms: 5, vcpus: 10, buckets: 5, databases: 5 });
});

test('the commit refuses what another commit took since it was asked', async (t) => {
  const fixture = await openQuotas();
  t.after(fixture.close);
  const { quotas, setPlan, metadata } = fixture;
  await setPlan({ vms: 1, vcpus: 2, buckets: 1, storage_bytes: 100 });
  for (const claim of [() => quotas.claimVm(VM), () => quotas.claimBucket(1)]) {
    const [one, other] = [await claim(), await claim()];
    await metadata.commit(one);
    await assert.rejects(metadata.commit(other), CommitRejected);
  }
  const [one, other] = [await quotas.claimStorage(1, 60), await quotas.claimStorage(1, 60)];
  const count = { sql: 'UPDATE accounts SET storage_bytes = storage_bytes + 60 WHERE id = 1', params: [] };
  await metadata.commit([count, ...one]);
  await assert.rejects(metadata.commit([count, ...other]), CommitRejected);
});

test('a refusal names quota, limit, use and request', async (t) => {
  const fixture = await openQuotas();
  t.after(fixture.close);
  const { quotas, setPlan, take } = fixture;
  await setPlan({ vms: 3, vcpus: 3 });
  assert.ok(await take(() => quotas.claimVm(VM)));
  await assert.rejects(quotas.claimVm(VM), (error: unknown) => {
    assert.ok(isAppError(error, 'quota_exceeded'));
    assert.deepEqual(error.extra, { quota: 'vcpus', limit: 3, used: 2, requested: 2 });
    return true;
  });
  // Returned quota can be claimed again.
  await fixture.metadata.commit(quotas.releaseVm(VM));
  assert.ok(await take(() => quotas.claimVm({ ...VM, vcpus: 3 })));
});

test("an account's own limits go before its plan's, null takes one away, and less than is used keeps it", async (t) => {
  const fixture = await openQuotas();
  t.after(fixture.close);
  const { quotas, setPlan, setOwn, take } = fixture;
  const bucket = () => take(() => quotas.claimBucket(1));
  assert.ok(await bucket(), 'nothing is limited at first');
  await setPlan({ buckets: 1 });
  assert.equal(await bucket(), false);
  await setOwn({ buckets: 2 });
  assert.deepEqual([await bucket(), await bucket()], [true, false]);
  await setOwn({ buckets: null });
  assert.ok(await bucket());
  await setOwn({ buckets: 0 });
  assert.equal(await bucket(), false);
  await fixture.metadata.commit(quotas.releaseBucket(1));
  assert.deepEqual((await quotas.termsOf(1))?.quotas.buckets, { limit: 0, used: 2 });
  assert.equal(await quotas.termsOf(99), undefined);
});

test('any mix of bytes at once keeps to the limit, and every refusal was right when it was given', async (t) => {
  const fixture = await openQuotas();
  t.after(fixture.close);
  await fixture.setPlan({ storage_bytes: 1000 });
  const sizes = fc.array(fc.integer({ min: 1, max: 600 }), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(sizes, async (wanted) => {
      const kept = await Promise.all(wanted.map(fixture.store));
      const sum = wanted.reduce((total, size, i) => total + (kept[i] ? size : 0), 0);
      assert.equal((await fixture.used()).storage_bytes, sum);
      assert.ok(sum <= 1000);
      for (const [i, size] of wanted.entries()) assert.ok(kept[i] || sum + size > 1000);
      await fixture.metadata.commit([{ sql: 'UPDATE accounts SET storage_bytes = 0', params: [] }]);
    }),
    { numRuns: cases(40) },
  );
});
