import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '../accounts/principal.ts';
import { type Compute, openComputeHouse } from '../testing/compute-house.ts';

const WISH = { name: 'web', instance_type: 't2.micro' };

async function newVm(compute: Compute, who: Principal): Promise<string> {
  return (await compute.machines.create(who, WISH)).vm_id;
}

test('what runs is stopped for want of credits, and only that is started again', async (t) => {
  const house = await openComputeHouse();
  t.after(() => house.close());
  const compute = await house.open();
  const ada = await house.newPrincipal('ada');
  const bob = await house.newPrincipal('bob');
  const [running, stopped, others] = [
    await newVm(compute, ada),
    await newVm(compute, ada),
    await newVm(compute, bob),
  ];
  for (const vmId of [running, stopped]) await compute.power.start(ada, vmId);
  await compute.power.start(bob, others);
  await compute.power.stop(ada, stopped);
  await compute.creditStops.stopForCredits(ada.accountId);
  await compute.creditStops.stopForCredits(ada.accountId);
  const states = async () =>
    Promise.all(
      [running, stopped, others].map(async (vmId) => {
        const row = await house.store.find(vmId);
        return `${row?.state} ${row?.reason_code}`;
      }),
    );
  assert.deepEqual(await states(), ['stopped credits_exhausted', 'stopped shut_down', 'running null']);
  assert.deepEqual(await compute.creditStops.resumeAfterCredits(ada.accountId), { waiting: 0 });
  assert.deepEqual(await states(), ['running null', 'stopped shut_down', 'running null']);
});

test('what there are no credits for yet goes on waiting', async (t) => {
  const house = await openComputeHouse();
  t.after(() => house.close());
  const compute = await house.open();
  const ada = await house.newPrincipal('ada');
  const vmId = await newVm(compute, ada);
  await compute.power.start(ada, vmId);
  await compute.creditStops.stopForCredits(ada.accountId);
  await house.spendAll();
  assert.deepEqual(await compute.creditStops.resumeAfterCredits(ada.accountId), { waiting: 1 });
  assert.equal((await house.store.find(vmId))?.reason_code, 'credits_exhausted');
  assert.match(compute.reports.join(), /could not be started again.*insufficient_credits|credits/);
});

test('a stop for want of credits that a crash cut off is still known as one', async (t) => {
  const house = await openComputeHouse();
  t.after(() => house.close());
  const compute = await house.open();
  const ada = await house.newPrincipal('ada');
  const vmId = await newVm(compute, ada);
  await compute.power.start(ada, vmId);
  const row = await compute.machines.findFor(ada, vmId);
  const reason = { code: 'credits_exhausted', message: 'none left' };
  await compute.changes.apply(row, { event: 'stop', desired: 'stopped', reason });
  const restarted = await house.open();
  await restarted.recovery.settle(vmId, { isSure: true });
  assert.equal((await house.store.find(vmId))?.reason_code, 'credits_exhausted');
  assert.deepEqual(await restarted.creditStops.resumeAfterCredits(ada.accountId), { waiting: 0 });
  assert.equal((await house.store.find(vmId))?.state, 'running');
});

test('what runs of a closed account is stopped, says so, and waits for no credits', async (t) => {
  const house = await openComputeHouse();
  t.after(() => house.close());
  const compute = await house.open();
  const ada = await house.newPrincipal('ada');
  const vmId = await newVm(compute, ada);
  await compute.power.start(ada, vmId);
  await compute.creditStops.stopOfClosed(ada.accountId);
  const row = await house.store.find(vmId);
  assert.deepEqual([row?.state, row?.reason_code], ['stopped', 'account_closed']);
  assert.deepEqual(await compute.creditStops.resumeAfterCredits(ada.accountId), { waiting: 0 });
  assert.equal((await house.store.find(vmId))?.state, 'stopped');
});
