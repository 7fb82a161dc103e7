import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { openAccountFixture } from '../../testing/account-fixture.ts';
import { BillingAccountStore } from './billing-account-store.ts';
import { Credit } from './credit.ts';

test('an account pays while a micro-credit is left; an unknown one never, nor one that ran out', async () => {
  const fixture = await openAccountFixture();
  try {
    const fields = { username: 'payer', email: 'payer@example.org', password: 'correct horse' };
    const { id } = await fixture.accounts.register(BACKGROUND, fields);
    const accounts = new BillingAccountStore(fixture.metadata);
    const credit = new Credit({ accounts, checks: { assertSound() {} } });
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
