import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError, type ErrorCode, isAppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { by } from '../../testing/account-fixture.ts';
import { type Compute, type ComputeFixture, openComputeFixture } from '../../testing/compute-fixture.ts';

let fixture: ComputeFixture;
let cloud: Compute;
let ann: Call;
before(async () => {
  fixture = await openComputeFixture();
  cloud = await fixture.open();
  ann = await fixture.newCall('ann');
});
after(() => fixture.close());

const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);
const call = () => by(ann.principal);
const newVm = async () =>
  (await cloud.machines.create(call(), { name: 'web', instance_type: 't2.micro' })).vm_id;
const take = (vmId: string, name = 's') => cloud.snapshots.create(call(), vmId, { name });
const guest = (vmId: string) => fixture.engine.guests.get(vmId) ?? assert.fail();
/** GB for which the disk of the machine is charged. */
const charged = async (vmId: string) => {
  const sql = "SELECT level FROM usage_lines WHERE meter = 'vm.disk' AND resource_id = ?";
  return (await fixture.metadata.get<{ level: number }>(sql, vmId))?.level;
};

test('a machine goes back to a snapshot, which stays, is charged, and ends with the machine', async () => {
  const vmId = await newVm();
  guest(vmId).disk = 'before';
  const { snapshot_id, created_at, ...rest } = await take(vmId, ' first ');
  assert.deepEqual(rest, { name: 'first', size: 2 ** 30 + 1, available: true });
  assert.equal(await charged(vmId), 30 + 2);
  await cloud.power.start(call(), vmId);
  guest(vmId).disk = 'after';
  await assert.rejects(take(vmId), code('vm_not_stopped'));
  await assert.rejects(cloud.snapshots.restore(call(), vmId, snapshot_id), code('vm_not_stopped'));
  await cloud.power.stop(call(), vmId);
  assert.equal((await cloud.snapshots.restore(call(), vmId, snapshot_id)).state, 'stopped');
  assert.equal(guest(vmId).disk, 'before');
  // A larger disk is charged in addition to the snapshots.
  await cloud.machineChanges.change(call(), vmId, { disk_gb: 40 });
  assert.equal(await charged(vmId), 40 + 2);
  const second = await take(vmId, 'second');
  assert.deepEqual(
    (await cloud.snapshots.list(call(), vmId)).map(({ name }) => name),
    ['first', 'second'],
  );
  await cloud.snapshots.remove(call(), vmId, snapshot_id);
  await assert.rejects(cloud.snapshots.remove(call(), vmId, snapshot_id), code('snapshot_not_found'));
  await assert.rejects(cloud.snapshots.restore(call(), vmId, snapshot_id), code('snapshot_not_found'));
  assert.equal(await charged(vmId), 40 + 2);
  assert.deepEqual([...fixture.engine.snapshots.keys()], [second.snapshot_id]);
  await cloud.deleter.remove(call(), vmId);
  assert.deepEqual([...fixture.engine.snapshots.keys()], []);
  assert.deepEqual(await fixture.metadata.all('SELECT * FROM vm_snapshots'), []);
});

test('what a crash left without a row is removed, and what is missing is told', async () => {
  const vmId = await newVm();
  const stray = newId('snp', fixture.clock);
  fixture.engine.snapshots.set(stray, { vmId, disk: '' });
  assert.deepEqual(await cloud.snapshots.list(call(), vmId), []);
  const kept = await take(vmId);
  assert.ok(!fixture.engine.snapshots.has(stray));
  cloud.scripted.script('takeSnapshot', () => Promise.reject(new AppError('out_of_space', 'as scripted')));
  await assert.rejects(take(vmId), code('out_of_space'));
  cloud.scripted.script('takeSnapshot');
  fixture.engine.snapshots.delete(kept.snapshot_id);
  assert.deepEqual(
    (await cloud.snapshots.list(call(), vmId)).map(({ available }) => available),
    [false],
  );
  await assert.rejects(cloud.snapshots.restore(call(), vmId, kept.snapshot_id), code('disk_missing'));
  await cloud.snapshots.remove(call(), vmId, kept.snapshot_id);
});

test('at most ten, by their owner, with a name, and with credits left', async () => {
  const vmId = await newVm();
  const bob = await fixture.newCall('bob');
  await assert.rejects(cloud.snapshots.create(bob, vmId, { name: 'x' }), code('vm_not_found'));
  await assert.rejects(cloud.snapshots.list(bob, vmId), code('vm_not_found'));
  await assert.rejects(async () => take(vmId, ' \n'), code('invalid_request'));
  // Many at once are counted one by one.
  const taken = await Promise.allSettled(Array.from({ length: 12 }, () => take(vmId)));
  const refused = taken.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.ok(refused.length === 2 && refused.every(code('quota_exceeded')), refused.join());
  const [first] = await cloud.snapshots.list(call(), vmId);
  await cloud.snapshots.remove(call(), vmId, first?.snapshot_id ?? '');
  await fixture.spendAll();
  await assert.rejects(take(vmId), code('insufficient_credits'));
});
