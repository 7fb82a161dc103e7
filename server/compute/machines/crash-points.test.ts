/** Cloudlet is killed between every two steps of create, start, stop and delete, and started again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import {
  type Compute,
  type ComputeFixture,
  openComputeFixture,
  TEST_ORPHAN_GRACE_MS,
} from '../../testing/compute-fixture.ts';
import { Fuse, Killed } from '../../testing/fuse.ts';
import type { Hypervisor } from '../hypervisor.ts';

function wrappers(fuse: Fuse) {
  return {
    wrapMetadata: (metadata: Metadata) => fuse.metadata(metadata),
    wrapHypervisor: (inner: Hypervisor) => fuse.calls(inner, ['prepare', 'start', 'stop', 'discard']),
  };
}

/** Calls about a machine, and how the machine gets into the state for each. */
const ACTIONS: Readonly<
  Record<
    string,
    { prepare: readonly string[]; act: (cloud: Compute, ann: Call, vmId: string) => Promise<unknown> }
  >
> = {
  create: { prepare: [], act: (cloud, ann) => create(cloud, ann) },
  'start of a new one': { prepare: ['create'], act: (cloud, ann, vmId) => cloud.power.start(ann, vmId) },
  'start of a stopped one': {
    prepare: ['create', 'stop'],
    act: (cloud, ann, vmId) => cloud.power.start(ann, vmId),
  },
  stop: { prepare: ['create', 'start'], act: (cloud, ann, vmId) => cloud.power.stop(ann, vmId) },
  delete: {
    prepare: ['create', 'start', 'stop'],
    act: (cloud, ann, vmId) => cloud.deleter.remove(ann, vmId),
  },
  resize: {
    prepare: ['create', 'start', 'stop'],
    act: (cloud, ann, vmId) =>
      cloud.machineChanges.change(ann, vmId, { instance_type: 't2.small', disk_gb: 50 }),
  },
};

async function create(cloud: Compute, ann: Call): Promise<string> {
  return (await cloud.machines.create(ann, { name: 'web', instance_type: 't2.micro' })).vm_id;
}

/** Invariants once everything was reconciled, whatever was interrupted. */
async function assertClean(fixture: ComputeFixture, cloud: Compute, where: string): Promise<void> {
  const rows = await fixture.store.list(0, 1000);
  const running = fixture.engine.running().sort();
  const shouldRun = rows.filter(({ state }) => state === 'running').map(({ vm_id }) => vm_id);
  assert.deepEqual(running, shouldRun.sort(), `${where}: guests that run are those whose rows say so`);
  const disks = [...fixture.engine.guests.keys()].sort();
  assert.deepEqual(
    disks,
    rows.map(({ vm_id }) => vm_id).sort(),
    `${where}: a disk for each row, and no other`,
  );
  for (const row of rows) {
    assert.ok(['created', 'running', 'stopped'].includes(row.state), `${where}: ${row.state}`);
    assert.ok(row.address, `${where}: address`);
    const entry = cloud.ingress.entries.get(row.vm_id);
    const isRunning = row.state === 'running';
    assert.equal(entry?.exposure.address, isRunning ? row.address : undefined, `${where}: ingress`);
    assert.equal(entry?.isRunning, isRunning || undefined, `${where}: ingress runs`);
    assert.equal(row.handle, fixture.engine.guests.get(row.vm_id)?.run?.handle ?? null, `${where}: handle`);
  }
  assert.equal(cloud.ingress.entries.size, shouldRun.length, `${where}: ingresses`);
  await assertUsage(fixture, where);
  // The pool of two addresses has lost none: free addresses can still be assigned.
  for (let free = 2 - rows.length; free > 0; free--) await create(cloud, await callOf(fixture));
}

/** The events of each machine are in an order that can be billed. */
async function assertUsage(fixture: ComputeFixture, where: string): Promise<void> {
  const rows = await fixture.metadata.all<{ vm_id: string; event: string }>(
    'SELECT vm_id, event FROM vm_usage ORDER BY id',
  );
  const events = Map.groupBy(rows, ({ vm_id }) => vm_id);
  for (const [vmId, list] of events) {
    const row = await fixture.store.find(vmId);
    const text = list.map(({ event }) => event).join(' ');
    const end = row === undefined ? ' deleted' : row.state === 'running' ? ' started' : '';
    assert.match(text, new RegExp(`^created(?: started stopped)*${end}$`), `${where}: ${text}`);
  }
}

const calls = new WeakMap<ComputeFixture, Call>();
async function callOf(fixture: ComputeFixture): Promise<Call> {
  const call = calls.get(fixture) ?? (await fixture.newCall('ann'));
  calls.set(fixture, call);
  return call;
}

async function restart(fixture: ComputeFixture): Promise<Compute> {
  const cloud = await fixture.open({ pool: '10.0.0.0/30' });
  cloud.supervisor.start();
  await cloud.supervisor.recovered();
  await cloud.supervisor.sweepOrphans();
  fixture.clock.advance(TEST_ORPHAN_GRACE_MS);
  await cloud.supervisor.sweepOrphans();
  return cloud;
}

/**
 * Runs the action with a kill at that step, then starts again. Returns false if the action had fewer steps.
 */
async function killAt(name: string, step: number): Promise<boolean> {
  const fixture = await openComputeFixture();
  const fuse = new Fuse();
  const where = `${name}, killed at step ${step}`;
  try {
    const ann = await callOf(fixture);
    const cloud = await fixture.open({ pool: '10.0.0.0/30', ...wrappers(fuse) });
    const { prepare = [], act } = ACTIONS[name] ?? assert.fail(name);
    const vmId = prepare.includes('create') ? await create(cloud, ann) : '';
    if (prepare.includes('start')) await cloud.power.start(ann, vmId);
    if (prepare.includes('stop')) await cloud.power.stop(ann, vmId);
    fuse.left = step;
    const outcome = await act(cloud, ann, vmId).then(
      () => 'done',
      (error: unknown) => (error instanceof Killed ? 'killed' : Promise.reject(error)),
    );
    await cloud.turns.idle();
    if (outcome === 'done') return false;
    const after = await restart(fixture);
    await assertClean(fixture, after, where);
    assert.deepEqual(after.reports, [], where);
    return true;
  } finally {
    await fixture.close();
  }
}

const STEPS: Readonly<Record<string, number>> = {
  create: 4,
  'start of a new one': 6,
  'start of a stopped one': 6,
  stop: 6,
  delete: 6,
  // The only commit; the next start does the rest.
  resize: 2,
};

for (const name of Object.keys(ACTIONS)) {
  test(`${name}: killed between every two steps`, async () => {
    let step = 1;
    while (await killAt(name, step)) step++;
    assert.equal(step - 1, STEPS[name], 'steps that were killed at');
  });
}
