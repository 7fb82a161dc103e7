import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { monthOf } from '../metering/settlement.ts';
import { Reports } from './report.ts';

const HOUR = 3_600_000;

test('the dearest resources by day, deleted ones by name, and the rest together; sums are those of the report', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 10n ** 12n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  clock.advance(monthOf(clock.now()).to - clock.now());
  const vm = (id: string, instance_type: string) => ({
    vm_id: id,
    account_id: 1,
    name: `the ${id}`,
    instance_type,
    disk_gb: 1,
  });
  const all = [vm('vm-1', 'p3.2xlarge'), vm('vm-2', 't2.micro'), vm('vm-3', 't2.micro')];
  for (const one of all)
    await metadata.commit([...usage.vmCreated(one), ...usage.vmStarted(one, clock.now())]);
  clock.advance(30 * HOUR);
  await rating.rateUsage(1);
  const [first] = all;
  assert.ok(first);
  await metadata.commit([...usage.vmStopped(first, clock.now()), ...usage.vmDeleted(first)]);
  await rating.rateUsage(1);
  clock.advance(30 * HOUR);
  const reports = new Reports({ metadata, clock, rating });
  const period = monthOf(clock.now());
  const found = await reports.byResource(1, period, 1);
  const usageReport = await reports.usage(1, period);
  assert.equal(found.total_cost, usageReport.total_cost);
  assert.deepEqual(
    found.dates,
    usageReport.daily.map(({ date }) => date),
  );
  const [dearest] = found.resources;
  assert.deepEqual(
    [dearest?.resource_id, dearest?.name, dearest?.is_deleted, dearest?.cost, dearest?.days],
    ['vm-1', 'the vm-1', true, 3.06 * 30, [3.06 * 24, 3.06 * 6, 0]],
  );
  assert.equal(found.resources.length, 1);
  assert.equal(found.others.count, 2);
  const micro = (amounts: readonly (number | string)[]) =>
    amounts.map((one) => Math.round(Number(one) * 1e6));
  const days = found.dates.map((_, day) => Number(dearest?.days[day]) + Number(found.others.days[day]));
  assert.deepEqual(micro(days), micro(usageReport.daily.map(({ cost }) => cost)));
  const every = await reports.byResource(1, period, 50);
  assert.deepEqual(
    every.resources.map(({ resource_id, is_deleted }) => [resource_id, is_deleted]),
    [
      ['vm-1', true],
      ['vm-2', false],
      ['vm-3', false],
    ],
  );
  assert.deepEqual([every.others.count, every.others.cost], [0, 0]);
});
