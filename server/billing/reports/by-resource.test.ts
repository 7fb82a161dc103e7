import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { monthOf } from '../metering/settlement.ts';
import { Reports } from './report.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test('a day ends at midnight UTC: each second is on its own day, also at the end of a month', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 10n ** 12n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  const month = monthOf(monthOf(clock.now()).to);
  const last = monthOf(month.to).from;
  const one = { vm_id: 'vm-1', account_id: 1, name: 'one', instance_type: 'p3.2xlarge', disk_gb: 1 };
  const reports = new Reports({ metadata, clock, rating });
  const daysIn = async (period: { from: number; to: number }) => {
    const found = await reports.byResource(1, period, 8);
    const total = (await reports.usage(1, period)).total_cost;
    assert.equal(found.total_cost, total);
    const costs = found.dates.map((_, at) => Number(found.resources[0]?.days[at] ?? 0));
    return { dates: found.dates, costs };
  };
  await metadata.commit(usage.vmCreated(one));
  const startAt = async (at: number) => {
    clock.advance(at - clock.now());
    // The cloud does this every hour.
    await rating.rateUsage(1);
    await metadata.commit(usage.vmStarted(one, clock.now()));
  };
  const stopAfter = async (ms: number) => {
    clock.advance(ms);
    await metadata.commit(usage.vmStopped(one, clock.now()));
    await rating.rateUsage(1);
  };
  // Half an hour before a midnight within the month, to half an hour after it.
  await startAt(month.from + DAY - HOUR / 2);
  await stopAfter(HOUR);
  let { dates, costs } = await daysIn(month);
  assert.deepEqual([dates.length, costs], [2, [1.53, 1.53]]);
  // The same across the last midnight of the month.
  await startAt(last - HOUR / 2);
  await stopAfter(HOUR);
  ({ dates, costs } = await daysIn(month));
  assert.equal(dates.length, (month.to - month.from) / DAY);
  assert.deepEqual([costs.at(0), costs.at(1), costs.at(-1)], [1.53, 1.53, 1.53]);
  ({ dates, costs } = await daysIn(monthOf(clock.now())));
  assert.deepEqual([dates.length, costs], [1, [1.53]]);
  // Exactly at midnight the new day exists, and is empty.
  clock.advance(monthOf(clock.now()).from + DAY - clock.now());
  ({ dates, costs } = await daysIn(monthOf(clock.now())));
  assert.deepEqual(costs, [1.53, 0]);
});

test('of two thousand resources those that cost most are listed, and the sum of all is the report’s', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 10n ** 15n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  clock.advance(monthOf(clock.now()).to - clock.now());
  for (let at = 0; at < 2000; at += 100) {
    const made = Array.from({ length: 100 }, (_, n) => {
      const id = `vm-${String(at + n).padStart(4, '0')}`;
      const type = at + n < 3 ? 'p3.2xlarge' : 't2.micro';
      return { vm_id: id, account_id: 1, name: `<b>${id}`, instance_type: type, disk_gb: 1 };
    });
    await metadata.commit(
      made.flatMap((one) => [...usage.vmCreated(one), ...usage.vmStarted(one, clock.now())]),
    );
  }
  const period = monthOf(clock.now());
  clock.advance(3 * HOUR);
  await rating.rateUsage(1);
  const reports = new Reports({ metadata, clock, rating });
  const found = await reports.byResource(1, period, 8);
  assert.deepEqual(
    found.resources.slice(0, 4).map(({ resource_id }) => resource_id),
    ['vm-0000', 'vm-0001', 'vm-0002', 'vm-0003'],
  );
  assert.deepEqual([found.resources.length, found.others.count], [8, 1992]);
  const sum = [...found.resources, found.others].reduce((all, { cost }) => all + Number(cost), 0);
  const report = await reports.usage(1, period);
  assert.equal(found.total_cost, report.total_cost);
  assert.equal(Math.round(sum * 1e6), Math.round(Number(report.total_cost) * 1e6));
});

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
