import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import {
  type Compute,
  type ComputeFixture,
  type ComputeOptions,
  openComputeFixture,
  TEST_ORPHAN_GRACE_MS,
} from '../../testing/compute-fixture.ts';
import { type ReconcileStep, reconcileStep } from './reconcile.ts';
import { VM_STATES } from './transitions.ts';

let fixture: ComputeFixture;
let ann: Call;
before(async () => {
  fixture = await openComputeFixture();
  ann = await fixture.newCall('ann');
});
after(() => fixture.close());

async function restart(options: ComputeOptions = {}): Promise<Compute> {
  const cloud = await fixture.open(options);
  cloud.supervisor.start();
  await cloud.supervisor.recovered();
  return cloud;
}

async function newRunning(cloud: Compute): Promise<string> {
  const { vm_id } = await cloud.machines.create(ann, { name: 'web', instance_type: 't2.micro' });
  await cloud.power.start(ann, vm_id);
  return vm_id;
}

const read = async (cloud: Compute, vmId: string) => {
  const { state, state_reason } = await cloud.machines.describe(ann.principal, vmId);
  return [state, state_reason?.code];
};
const events = async (vmId: string) => (await fixture.usage(vmId)).map(({ event }) => event);

test('the table: what is done for every state, with and without a guest', () => {
  const expected: Readonly<Record<string, readonly [runs: ReconcileStep, gone: ReconcileStep]>> = {
    created: ['end_stray', 'leave'],
    starting: ['start', 'start'],
    running: ['adopt', 'note_gone'],
    stopping: ['stop', 'stop'],
    stopped: ['end_stray', 'leave'],
    error: ['stop', 'note_gone'],
    deleting: ['delete', 'delete'],
  };
  for (const state of VM_STATES) {
    assert.deepEqual([reconcileStep(state, true), reconcileStep(state, false)], expected[state], state);
  }
});

test('a guest that ran on is adopted: same run, same usage, its address answers, its end is noticed', async () => {
  const vmId = await newRunning(await restart());
  const starts = fixture.engine.starts.length;
  const cloud = await restart();
  assert.deepEqual(await read(cloud, vmId), ['running', undefined]);
  assert.equal(fixture.engine.starts.length, starts);
  assert.ok(cloud.scripted.adopted.includes(vmId));
  assert.equal(cloud.ingress.entries.get(vmId)?.isRunning, true);
  cloud.scripted.end(vmId, 'guest_shutdown');
  await cloud.turns.idle();
  assert.deepEqual(await read(cloud, vmId), ['stopped', 'guest_shutdown']);
  assert.deepEqual(await events(vmId), ['created', 'started', 'stopped']);
});

test('what ended while nobody watched is counted to its end, with the reason', async () => {
  for (const [cause, state] of [
    ['crashed', 'error'],
    ['guest_shutdown', 'stopped'],
  ] as const) {
    const first = await restart();
    const vmId = await newRunning(first);
    fixture.clock.advance(7000);
    const { at } = first.scripted.end(vmId, cause, false);
    fixture.clock.advance(60_000);
    const cloud = await restart();
    assert.deepEqual(await read(cloud, vmId), [state, cause]);
    assert.deepEqual((await fixture.usage(vmId)).at(-1), { event: 'stopped', at });
    assert.equal(cloud.ingress.entries.has(vmId), false);
  }
});

test('a stop that was cut off after the guest was gone is counted to its end, and says how', async () => {
  for (const cause of ['guest_shutdown', 'crashed'] as const) {
    const first = await restart();
    const vmId = await newRunning(first);
    const stopping = "UPDATE vms SET state = 'stopping', desired_state = 'stopped' WHERE vm_id = ?";
    await fixture.metadata.commit([{ sql: stopping, params: [vmId] }]);
    fixture.clock.advance(7000);
    const { at, message } = first.scripted.end(vmId, cause, false);
    fixture.clock.advance(60_000);
    const cloud = await restart();
    assert.deepEqual(await read(cloud, vmId), ['stopped', cause]);
    const said = (await cloud.machines.describe(ann.principal, vmId)).state_reason?.message;
    const unseen = 'The virtual machine shut down while Cloudlet was not running, before its stop completed';
    assert.equal(said, cause === 'crashed' ? message : unseen);
    assert.deepEqual((await fixture.usage(vmId)).at(-1), { event: 'stopped', at });
  }
});

test('how an earlier run ended says nothing of the present one', async () => {
  const first = await restart();
  const vmId = await newRunning(first);
  const { at } = first.scripted.end(vmId, 'guest_shutdown', false);
  await fixture.metadata.commit([
    { sql: "UPDATE vms SET handle = 'a later run' WHERE vm_id = ?", params: [vmId] },
  ]);
  fixture.clock.advance(60_000);
  const cloud = await restart();
  assert.deepEqual(await read(cloud, vmId), ['error', 'crashed']);
  assert.ok(((await fixture.usage(vmId)).at(-1)?.at ?? 0) <= at, 'nobody saw it run any longer');
});

test('one of whose end nobody knows is in error, and only what was seen of it is counted', async () => {
  const first = await restart();
  const vmId = await newRunning(first);
  const startedAt = fixture.clock.now();
  const row = await fixture.store.find(vmId);
  fixture.clock.advance(60_000);
  await fixture.metadata.commit([
    {
      sql: 'INSERT INTO vm_samples (vm, step_seconds, at) VALUES (?, 5, ?)',
      params: [row?.id ?? 0, startedAt + 42_000],
    },
  ]);
  first.scripted.end(vmId, 'crashed', false);
  fixture.engine.forgetEnds();
  const cloud = await restart();
  assert.deepEqual(await read(cloud, vmId), ['error', 'crashed']);
  assert.deepEqual((await fixture.usage(vmId)).at(-1), { event: 'stopped', at: startedAt + 42_000 });
  assert.equal(cloud.ingress.entries.has(vmId), false);
});

test('after a restart of the host, what ran is started again, and what was stopped is not', async () => {
  const first = await restart();
  const [vmId, stopped] = [await newRunning(first), await newRunning(first)];
  await first.power.stop(ann, stopped);
  fixture.engine.losePower();
  fixture.clock.advance(90_000);
  const cloud = await restart();
  assert.deepEqual(await read(cloud, vmId), ['running', undefined]);
  assert.deepEqual(await read(cloud, stopped), ['stopped', 'shut_down']);
  assert.deepEqual(fixture.engine.running().includes(stopped), false);
  assert.deepEqual(await events(vmId), ['created', 'started', 'stopped', 'started']);
  assert.equal(cloud.ingress.entries.get(vmId)?.isRunning, true);
});

test('an engine whose guests die with us: they are started again', async () => {
  const vmId = await newRunning(await restart());
  fixture.engine.losePower();
  const cloud = await restart({ survivesRestart: false });
  assert.deepEqual(await read(cloud, vmId), ['running', undefined]);
});

test('nothing of a suspended account is started by a restart of the host, or as the end of a start', async () => {
  const first = await restart();
  const [vmId, begun, left] = [await newRunning(first), await newRunning(first), await newRunning(first)];
  // Two starts interrupted by a kill: before the guest ran, and after.
  await first.power.stop(ann, begun);
  for (const id of [begun, left]) {
    const sql = "UPDATE vms SET state = 'starting', desired_state = 'running' WHERE vm_id = ?";
    await fixture.metadata.commit([{ sql, params: [id] }]);
  }
  await fixture.suspend(ann.principal.accountId);
  fixture.engine.losePower(vmId);
  const { length } = fixture.engine.starts;
  const cloud = await restart();
  const ids = [vmId, begun, left];
  assert.deepEqual(await fixture.reasons(ids), Array(3).fill('stopped account_suspended'));
  assert.deepEqual(
    fixture.engine.running().filter((id) => ids.includes(id)),
    [],
  );
  assert.equal(fixture.engine.starts.length, length);
  assert.deepEqual(await events(vmId), ['created', 'started', 'stopped']);
  assert.equal(cloud.ingress.entries.has(vmId), false);
  await fixture.suspend(ann.principal.accountId, null);
  assert.deepEqual(await cloud.accountStops.resume(ann.principal.accountId), { waiting: 0 });
  assert.deepEqual(await fixture.reasons(ids), Array(3).fill('running null'));
});

test('a guest that is found gone while we run is noted the second time only', async () => {
  const cloud = await restart();
  const vmId = await newRunning(cloud);
  cloud.scripted.end(vmId, 'crashed', false);
  await cloud.supervisor.check();
  assert.deepEqual(await read(cloud, vmId), ['running', undefined]);
  await cloud.supervisor.check();
  assert.deepEqual(await read(cloud, vmId), ['error', 'crashed']);
  assert.deepEqual(await events(vmId), ['created', 'started', 'stopped']);
});

test('a guest that runs though its machine is stopped is ended', async () => {
  const first = await restart();
  const vmId = await newRunning(first);
  const spec = fixture.engine.guests.get(vmId)?.spec;
  await first.power.stop(ann, vmId);
  assert.ok(spec);
  await first.scripted.start(spec);
  const cloud = await restart();
  assert.deepEqual(await read(cloud, vmId), ['stopped', 'shut_down']);
  assert.ok(!fixture.engine.running().includes(vmId));
});

test('guests without a row go, but not before their time, and nothing that is not ours', async () => {
  const cloud = await restart();
  const kept = await newRunning(cloud);
  const [some] = fixture.engine.guests.values();
  assert.ok(some);
  const orphan = newId('vm', fixture.clock);
  for (const vmId of [orphan, 'other-guest']) {
    await cloud.scripted.start({ ...some.spec, vmId });
  }
  await cloud.supervisor.sweepOrphans();
  fixture.clock.advance(TEST_ORPHAN_GRACE_MS - 1);
  await cloud.supervisor.sweepOrphans();
  assert.ok(fixture.engine.guests.has(orphan));
  fixture.clock.advance(1);
  await cloud.supervisor.sweepOrphans();
  assert.ok(!fixture.engine.guests.has(orphan));
  assert.ok(fixture.engine.guests.has('other-guest'));
  assert.ok(fixture.engine.running().includes(kept));
  fixture.engine.guests.delete('other-guest');
});

test('a machine that is being created is no orphan, however long its disk takes', async () => {
  const cloud = await restart();
  let open = () => {};
  const disk = new Promise<void>((resolve) => {
    open = resolve;
  });
  // The disk exists already, but the engine has not reported it yet.
  const prepare = cloud.scripted.prepare.bind(cloud.scripted);
  cloud.scripted.prepare = async (spec) => {
    await prepare(spec);
    await disk;
  };
  const creating = cloud.machines.create(ann, { name: 'slow', instance_type: 't2.micro' });
  await new Promise((resolve) => setTimeout(resolve, 20));
  await cloud.supervisor.sweepOrphans();
  fixture.clock.advance(TEST_ORPHAN_GRACE_MS * 2);
  await cloud.supervisor.sweepOrphans();
  open();
  const { vm_id } = await creating;
  assert.ok(fixture.engine.guests.has(vm_id));
});

test('an engine that cannot even list its guests is reported, and machines are adopted once it can', async () => {
  const vmId = await newRunning(await restart());
  const cloud = await fixture.open();
  for (const method of ['list', 'inspect'] as const) {
    cloud.scripted.script(method, async () => {
      throw new AppError('engine_unavailable', 'gone');
    });
  }
  cloud.supervisor.start();
  await cloud.supervisor.recovered();
  assert.ok(cloud.reports.some((line) => line.includes(vmId)));
  assert.equal((await cloud.machines.describe(ann.principal, vmId)).state, 'running');
  cloud.scripted.script('inspect');
  await cloud.supervisor.check();
  assert.equal(cloud.ingress.entries.get(vmId)?.isRunning, true);
});

test('a machine of a host that restarted waits for the address of its database', async () => {
  const good = async () => 'postgresql://shop.db.internal/';
  const first = await restart({ databaseUri: good });
  const input = { name: 'web', instance_type: 't2.micro', databases: ['shop'] };
  const { vm_id } = await first.machines.create(ann, input);
  await first.power.start(ann, vm_id);
  fixture.engine.losePower();
  let uri: () => Promise<string | null> = () => Promise.reject(new AppError('engine_unavailable', 'away'));
  const cloud = await restart({ databaseUri: () => uri() });
  const starts = fixture.engine.starts.length;
  assert.deepEqual(await read(cloud, vm_id), ['starting', 'host_restarted']);
  uri = good;
  await cloud.supervisor.check();
  assert.equal((await read(cloud, vm_id))[0], 'running');
  assert.equal(fixture.engine.starts.length, starts + 1);
});
