import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reads } from '../../metadata/metadata.ts';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { transferStatements } from '../ledger/ledger.ts';
import { BillingAccountStore } from './billing-account-store.ts';

test('who was granted credits is read once, from the grants alone, and later from new ones', async (t) => {
  const { metadata, addAccount, close } = await openBillingFixture();
  t.after(close);
  const plans: string[] = [];
  const values: unknown[] = [];
  const reads: Pick<Reads, 'get' | 'all'> = {
    get: (sql, ...params) => metadata.get(sql, ...params),
    all: async (sql, ...params) => {
      const steps = await metadata.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...params);
      plans.push(steps.map(({ detail }) => detail).join('; '));
      values.push(...params);
      return metadata.all(sql, ...params);
    },
  };
  const store = new BillingAccountStore(reads as Reads);
  const [admin, granted, later] = [await addAccount(0n), await addAccount(5n), await addAccount(5n)];
  await metadata.commit([{ sql: 'UPDATE accounts SET is_admin = 1 WHERE id = ?', params: [admin] }]);
  const grant = (accountId: number) => {
    const sides = { debit: 'system:grants', credit: `account:${accountId}`, amountMicro: 1n };
    const booking = {
      ...sides,
      id: `by-admin-${accountId}`,
      code: 'admin_grant',
      reference: 'a test',
      at: 0,
    };
    return metadata.commit(transferStatements(booking));
  };
  await grant(granted);
  assert.deepEqual([...(await store.trusted())].sort(), [admin, granted]);
  await grant(later);
  assert.deepEqual([...(await store.trusted())].sort(), [admin, granted, later]);
  assert.deepEqual([...(await store.trusted())].sort(), [admin, granted, later]);
  // The grants of the accounts and of the administrator are transfers, and each is read once.
  assert.deepEqual(values, [0, 4, 5]);
  assert.match(plans.join('\n'), /SEARCH ledger_transfers USING INDEX ledger_debit \(debit=\? AND seq>\?\)/);
  assert.doesNotMatch(plans.join('\n'), /ledger_credit|SCAN ledger/);
});
