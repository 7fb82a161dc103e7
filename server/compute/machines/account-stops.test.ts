import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError } from '../../platform/errors.ts';
import { type Compute, openComputeFixture } from '../../testing/compute-fixture.ts';

const WISH = { name: 'web', instance_type: 't2.micro' };

async function newVm(compute: Compute, who: Call): Promise<string> {
  return (await compute.machines.create(who, WISH)).vm_id;
}

async function open(t: TestContext) {
  const fixture = await openComputeFixture();
  t.after(() => fixture.close());
  return { fixture, compute: await fixture.open(), ada: await fixture.newCall('ada') };
}

/** A running machine whose stop is stored, but not done. Returns the row as it was before. */
async function cutOffStop(compute: Compute, who: Call, code: string) {
  const vmId = await newVm(compute, who);
  await compute.power.start(who, vmId);
  const row = await compute.machines.findFor(who.principal, vmId);
  await compute.lifecycle.apply(row, { event: 'stop', desired: 'stopped', reason: { code, message: 'why' } });
  return row;
}

test('what runs is stopped for want of credits, and only that is started again', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const bob = await fixture.newCall('bob');
  const [running, stopped, others] = [
    await newVm(compute, ada),
    await newVm(compute, ada),
    await newVm(compute, bob),
  ];
  for (const vmId of [running, stopped]) await compute.power.start(ada, vmId);
  await compute.power.start(bob, others);
  await compute.power.stop(ada, stopped);
  await compute.accountStops.stop(ada.principal.accountId, 'credits_exhausted');
  await compute.accountStops.stop(ada.principal.accountId, 'credits_exhausted');
  const states = () => fixture.reasons([running, stopped, others]);
  assert.deepEqual(await states(), ['stopped credits_exhausted', 'stopped shut_down', 'running null']);
  assert.deepEqual(await compute.accountStops.resume(ada.principal.accountId), { waiting: 0 });
  assert.deepEqual(await states(), ['running null', 'stopped shut_down', 'running null']);
});

test('what there are no credits for yet goes on waiting', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const vmId = await newVm(compute, ada);
  await compute.power.start(ada, vmId);
  await compute.accountStops.stop(ada.principal.accountId, 'credits_exhausted');
  await fixture.spendAll();
  assert.deepEqual(await compute.accountStops.resume(ada.principal.accountId), { waiting: 1 });
  assert.equal((await fixture.store.find(vmId))?.reason_code, 'credits_exhausted');
  assert.match(compute.reports.join(), /resuming a resource failed.*insufficient_credits|credits/);
});

test('a stop for want of credits that a crash cut off is still known as one', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const { vm_id: vmId } = await cutOffStop(compute, ada, 'credits_exhausted');
  const restarted = await fixture.open();
  await restarted.reconciler.reconcile(vmId, { isSure: true });
  assert.equal((await fixture.store.find(vmId))?.reason_code, 'credits_exhausted');
  assert.deepEqual(await restarted.accountStops.resume(ada.principal.accountId), { waiting: 0 });
  assert.equal((await fixture.store.find(vmId))?.state, 'running');
});

test('a stop that goes on while its account is resumed is waited for, and its machine started again', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const { vm_id: vmId } = await cutOffStop(compute, ada, 'account_suspended');
  const restarted = await fixture.open();
  const engineStops = Promise.withResolvers<void>();
  const mayStop = Promise.withResolvers<void>();
  restarted.scripted.script('stop', () => {
    engineStops.resolve();
    return mayStop.promise;
  });
  const reconciling = restarted.reconciler.reconcile(vmId, { isSure: true });
  await engineStops.promise;
  const resumed = restarted.accountStops.resume(ada.principal.accountId);
  mayStop.resolve();
  assert.deepEqual(await resumed, { waiting: 0 });
  await reconciling;
  assert.deepEqual(await fixture.reasons([vmId]), ['running null']);
  assert.deepEqual(restarted.reports, []);
});

test('a stop that nobody goes on with is finished before its machine is started again', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const { vm_id: vmId, handle } = await cutOffStop(compute, ada, 'account_suspended');
  const restarted = await fixture.open();
  assert.deepEqual(await restarted.accountStops.resume(ada.principal.accountId), { waiting: 0 });
  assert.deepEqual(await fixture.reasons([vmId]), ['running null']);
  assert.notEqual((await fixture.store.find(vmId))?.handle, handle, 'another run');
});

test('what its owner started while its account was being resumed is left alone', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const { vm_id: vmId } = await cutOffStop(compute, ada, 'account_suspended');
  const restarted = await fixture.open();
  const mayGoOn = Promise.withResolvers<void>();
  const find = () => restarted.machines.findFor(ada.principal, vmId);
  const started = restarted.turns.act({ id: vmId, action: 'start', find }, async () => {
    await mayGoOn.promise;
    await fixture.metadata.commit([
      { sql: "UPDATE vms SET state = 'running', desired_state = 'running', reason_code = NULL", params: [] },
    ]);
    return find();
  });
  const resumed = restarted.accountStops.resume(ada.principal.accountId);
  mayGoOn.resolve();
  await started;
  assert.deepEqual(await resumed, { waiting: 0 });
  assert.deepEqual(await fixture.reasons([vmId]), ['running null']);
  assert.equal(fixture.engine.starts.length, 1, 'the first one');
});

test('what was stopped with its account is started again with what credits stopped, and nothing else', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push(await newVm(compute, ada));
  const [broke = '', owned = '', suspended = '', touched = '', never = ''] = ids;
  const states = () => fixture.reasons(ids);
  await compute.power.start(ada, broke);
  await compute.accountStops.stop(ada.principal.accountId, 'credits_exhausted');
  for (const vmId of [owned, suspended, touched]) await compute.power.start(ada, vmId);
  await compute.power.stop(ada, owned);
  await compute.accountStops.stop(ada.principal.accountId, 'account_suspended');
  assert.equal((await fixture.store.find(never))?.state, 'created');
  await compute.power.start(ada, touched);
  await compute.power.stop(ada, touched);
  assert.deepEqual(await states(), [
    ...['stopped credits_exhausted', 'stopped shut_down', 'stopped account_suspended'],
    ...['stopped shut_down', 'created null'],
  ]);
  assert.deepEqual(await compute.accountStops.resume(ada.principal.accountId), { waiting: 0 });
  assert.deepEqual(await states(), [
    ...['running null', 'stopped shut_down', 'running null', 'stopped shut_down', 'created null'],
  ]);
  assert.deepEqual(compute.reports, []);
});

test('a start that is under way when its account is suspended is stopped as soon as it is done', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const vmId = await newVm(compute, ada);
  const engineStarts = Promise.withResolvers<void>();
  const mayStart = Promise.withResolvers<void>();
  compute.scripted.script('start', () => {
    engineStarts.resolve();
    return mayStart.promise;
  });
  const start = compute.power.start(ada, vmId);
  await engineStarts.promise;
  await fixture.suspend(ada.principal.accountId);
  const stop = compute.accountStops.stop(ada.principal.accountId, 'account_suspended');
  mayStart.resolve();
  assert.equal((await start).state, 'running');
  await stop;
  assert.deepEqual(await fixture.reasons([vmId]), ['stopped account_suspended']);
  assert.deepEqual(compute.reports, []);
});

test('nobody starts a machine of an account that is suspended or closed', async (t) => {
  const fixture = await openComputeFixture();
  t.after(() => fixture.close());
  const ada = await fixture.newCall('ada');
  let suspend = async () => {};
  // The last moment: between the check whether the start is allowed and its commit.
  const compute = await fixture.open({
    wrapMetadata: (metadata) => ({
      get: (...given) => metadata.get(...given),
      all: (...given) => metadata.all(...given),
      snapshot: metadata.snapshot.bind(metadata),
      close: () => metadata.close(),
      commit: async (statements) => {
        await suspend();
        return metadata.commit(statements);
      },
    }),
  });
  const vmId = await newVm(compute, ada);
  const refused = { name: 'AppError', code: 'account_suspended' };
  suspend = () => fixture.suspend(ada.principal.accountId);
  await assert.rejects(compute.power.start(ada, vmId), refused);
  assert.deepEqual(await fixture.reasons([vmId]), ['created null']);
  suspend = async () => {};
  await assert.rejects(compute.power.start(ada, vmId), refused);
  // A start interrupted by a kill, not yet reconciled.
  const setState = (state: string) =>
    fixture.metadata.commit([{ sql: 'UPDATE vms SET state = ?', params: [state] }]);
  await setState('starting');
  await assert.rejects(compute.power.start(ada, vmId), refused);
  await setState('created');
  await fixture.metadata.commit([{ sql: 'UPDATE accounts SET closed_at = 1, is_active = 0', params: [] }]);
  await assert.rejects(compute.power.start(ada, vmId), refused);
  assert.equal(fixture.engine.starts.length, 0);
  assert.deepEqual(await fixture.reasons([vmId]), ['created null']);
});

test('a guest that could not be stopped is stopped the next time', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const vmId = await newVm(compute, ada);
  await compute.power.start(ada, vmId);
  compute.scripted.script('stop', async () => {
    throw new AppError('engine_unavailable', 'as scripted');
  });
  await compute.accountStops.stop(ada.principal.accountId, 'account_suspended');
  assert.equal((await fixture.store.find(vmId))?.state, 'error');
  assert.match(compute.reports.join(), /stopping a resource failed \(account_suspended\)/);
  compute.scripted.script('stop');
  await compute.accountStops.stop(ada.principal.accountId, 'account_suspended');
  assert.deepEqual(await fixture.reasons([vmId]), ['stopped account_suspended']);
});

test('the machines of a closed account are deleted, whatever they were, and their addresses are free', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const bob = await fixture.newCall('bob');
  const others = await newVm(compute, bob);
  const [fresh, running, stopped] = [
    await newVm(compute, ada),
    await newVm(compute, ada),
    await newVm(compute, ada),
  ];
  for (const vmId of [running, stopped]) await compute.power.start(ada, vmId);
  await compute.power.stop(ada, stopped);
  fixture.clock.advance(5000);
  await compute.accountStops.stop(ada.principal.accountId, 'account_closed');
  await compute.accountStops.stop(ada.principal.accountId, 'account_closed');
  assert.deepEqual(await fixture.store.listOf(ada.principal.accountId, 0, 10), []);
  assert.deepEqual([...fixture.engine.guests.keys()], [others]);
  assert.equal((await fixture.store.addresses()).length, 1);
  const events = async (vmId: string) => (await fixture.usage(vmId)).map(({ event }) => event);
  assert.deepEqual(await events(fresh), ['created', 'deleted']);
  assert.deepEqual(await events(running), ['created', 'started', 'stopped', 'deleted']);
  assert.deepEqual(compute.reports, []);
});

test('a machine of a closed account that cannot be deleted is deleted when it can', async (t) => {
  const { fixture, compute, ada } = await open(t);
  const [first, second] = [await newVm(compute, ada), await newVm(compute, ada)];
  await compute.power.start(ada, first);
  compute.scripted.script('stop', async () => {
    throw new AppError('engine_unavailable', 'gone');
  });
  await compute.accountStops.stop(ada.principal.accountId, 'account_closed');
  const left = await fixture.store.listOf(ada.principal.accountId, 0, 10);
  assert.deepEqual(
    left.map(({ vm_id }) => vm_id),
    [first],
  );
  assert.match(compute.reports.join(), /deleting a resource with its account failed/);
  assert.equal(await fixture.store.find(second), undefined);
  compute.scripted.script('stop');
  await compute.accountStops.stop(ada.principal.accountId, 'account_closed');
  assert.equal(await fixture.store.find(first), undefined);
});
