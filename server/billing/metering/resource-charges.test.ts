import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { type BillingFixture, openBillingFixture } from '../../testing/billing-fixture.ts';
import { CatalogStore } from '../catalog/catalog-store.ts';
import { Quotas } from '../catalog/quotas.ts';
import { Credit } from '../credit/credit.ts';
import { Reports } from '../reports/report.ts';
import { databaseCharges, vmCharges } from './resource-charges.ts';

const GIB = 2 ** 30;
const HOUR_MS = 3_600_000;
/** Nano-credits for a GB-hour, as in the fixture. */
const PRICE = 50_003;
const SHOP = { database_id: 'db-1', account_id: 1, name: 'shop', engine: 'sqlite' };

let fixture: BillingFixture;
let charges: ReturnType<typeof databaseCharges>;
let ofVms: ReturnType<typeof vmCharges>;

beforeEach(async () => {
  fixture = await openBillingFixture();
  const { usage, prices, clock, metadata, accounts, holds, spendable } = fixture;
  const quotas = new Quotas({ ...fixture, store: new CatalogStore(metadata) });
  const credit = new Credit({
    accounts,
    spendable,
    checks: { assertSound() {} },
    caps: { assertBelow: async () => {} },
  });
  const deps = { usage, prices, quotas, accounts, credit, clock, rating: fixture.rating };
  charges = databaseCharges(deps);
  ofVms = vmCharges({ ...deps, holds });
});
afterEach(() => fixture.close());

/** The cost of the account's databases up to now, in micro-credits, and their GB-hours. */
async function items() {
  const { metadata, clock, rating } = fixture;
  const reports = new Reports({ metadata, clock, rating });
  const { items: list } = await reports.usage(1, { from: 0, to: clock.now() + HOUR_MS });
  return list.map(({ resource_type, resource_id, name, meter, quantity, unit }) => ({
    of: `${resource_type} ${resource_id} ${name}`,
    used: `${meter} ${quantity} ${unit}`,
  }));
}

test('the bytes of a database are charged for the time that they were there', async () => {
  const { metadata, clock } = fixture;
  await metadata.commit(await charges.created(SHOP));
  clock.advance(HOUR_MS);
  await metadata.commit(charges.opened(SHOP, GIB));
  clock.advance(2 * HOUR_MS);
  await metadata.commit(charges.resized(SHOP, 3 * GIB));
  clock.advance(HOUR_MS);
  await metadata.commit(charges.resized(SHOP, 0));
  clock.advance(5 * HOUR_MS);
  assert.deepEqual(await items(), [{ of: 'database db-1 shop', used: 'database.storage 5 GB-hour' }]);
  await fixture.rating.rateUsage(1);
  const taken = 10_000_000n - BigInt((await fixture.row()).credits_micro);
  assert.equal(taken, BigInt(Math.floor((5 * PRICE) / 1000)));
});

test('a deleted database is not charged any more, and one that is had back is charged again', async () => {
  const { metadata, clock } = fixture;
  await metadata.commit(await charges.created(SHOP));
  await metadata.commit(charges.opened(SHOP, 2 * GIB));
  clock.advance(HOUR_MS);
  await metadata.commit(charges.deleted(SHOP));
  clock.advance(HOUR_MS);
  await metadata.commit(charges.resized(SHOP, 9 * GIB));
  clock.advance(HOUR_MS);
  // Before anything was rated, such as during an operator's first minute.
  await metadata.commit([...(await charges.created(SHOP)), ...charges.opened(SHOP, GIB)]);
  clock.advance(HOUR_MS);
  assert.deepEqual(await items(), [{ of: 'database db-1 shop', used: 'database.storage 3 GB-hour' }]);
  await assert.rejects(metadata.commit(charges.opened(SHOP, GIB)), 'it is open');
});

test('a report has the name that a database was given last', async () => {
  const { metadata, clock } = fixture;
  await metadata.commit(charges.opened(SHOP, GIB));
  clock.advance(HOUR_MS);
  await items();
  await metadata.commit(charges.renamed({ ...SHOP, name: 'store' }));
  clock.advance(24 * HOUR_MS);
  assert.deepEqual(await items(), [{ of: 'database db-1 store', used: 'database.storage 25 GB-hour' }]);
});

test('the price of an hour is that of its present bytes and its engine', () => {
  const price = (engine: string, size_bytes: number) => charges.pricePerHour('free', { engine, size_bytes });
  assert.equal(price('sqlite', 2 * GIB), (2 * PRICE) / 1e9);
  assert.equal(price('sqlite', 0), 0);
  assert.equal(price('postgresql', GIB), 0, 'nobody set a price for it');
});

test('a machine that never ran is charged what its disk is said to cost', async () => {
  const { metadata, clock, rating } = fixture;
  const vm = { vm_id: 'vm-1', account_id: 1, name: 'a', instance_type: 't2.micro', vcpus: 1, disk_gb: 30 };
  const said = ofVms.diskPricePerHour('free', vm);
  assert.equal(said, 30 * 137e-9);
  await metadata.commit(await ofVms.created(vm));
  clock.advance(1000 * HOUR_MS);
  await rating.rateUsage(1);
  const taken = 10_000_000n - BigInt((await fixture.row()).credits_micro);
  assert.equal(Number(taken), Math.floor(said * 1000 * 1e6));
});

test('a resized machine costs its new price from that moment, and its earlier hours the earlier one', async () => {
  const { metadata, clock, rating } = fixture;
  const small = { vm_id: 'vm-1', account_id: 1, name: 'a', instance_type: 't2.micro', vcpus: 1, disk_gb: 30 };
  const large = { ...small, instance_type: 'p3.2xlarge', vcpus: 8, disk_gb: 60 };
  await metadata.commit(await ofVms.created(small));
  await metadata.commit([...ofVms.started(small, clock.now())]);
  clock.advance(HOUR_MS);
  await metadata.commit([...ofVms.stopped(small, clock.now())]);
  // Nothing of it has been charged when the type changes.
  await metadata.commit(await ofVms.resized(small, large));
  await metadata.commit([...ofVms.started(large, clock.now())]);
  clock.advance(HOUR_MS);
  await rating.rateUsage(1);
  const priceOf = (vm: typeof small) =>
    ofVms.pricePerHour('free', vm.instance_type) + ofVms.diskPricePerHour('free', vm);
  assert.ok(priceOf(large) > priceOf(small));
  const taken = 10_000_000n - BigInt((await fixture.row()).credits_micro);
  assert.equal(Number(taken), Math.floor((priceOf(small) + priceOf(large)) * 1e6));
  const { metadata: reads } = fixture;
  assert.deepEqual(
    await reads.all('SELECT vm_count AS vms, vcpu_count AS vcpus FROM billing_accounts WHERE account_id = 1'),
    [{ vms: 1, vcpus: 8 }],
  );
  await metadata.commit(await ofVms.resized(large, small));
  assert.deepEqual(
    await reads.all('SELECT vm_count AS vms, vcpu_count AS vcpus FROM billing_accounts WHERE account_id = 1'),
    [{ vms: 1, vcpus: 1 }],
  );
});
