import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError, type ErrorCode, isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { type Compute, type ComputeFixture, openComputeFixture } from '../../testing/compute-fixture.ts';

let fixture: ComputeFixture;
let cloud: Compute;
let ann: Call;
let bob: Call;
before(async () => {
  fixture = await openComputeFixture();
  cloud = await fixture.open();
  ann = await fixture.newCall('ann');
  bob = await fixture.newCall('bob');
});
after(() => fixture.close());

const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);
const again = ({ principal }: Call): Call => by(principal);
const newVm = async () =>
  (await cloud.machines.create(again(ann), { name: 'web', instance_type: 't2.micro', tags: 'a' })).vm_id;
const change = (vmId: string, input: object, call = ann) =>
  cloud.machineChanges.change(again(call), vmId, input);

/** Without a webhook no event is stored. */
const subscribe = (accountId: number) =>
  fixture.metadata.commit([
    {
      sql: `INSERT INTO webhooks (webhook_id, account_id, url, description, events, sealed_secret,
              created_at)
            VALUES ('whk-1', ?, 'http://127.0.0.1/', '', '["*"]', ?, 0)`,
      params: [accountId, Buffer.from('x')],
    },
  ]);

test('name and tags change while it runs, alone or together, and nobody else may', async () => {
  const vmId = await newVm();
  await subscribe(ann.principal.accountId);
  await cloud.power.start(again(ann), vmId);
  const named = await change(vmId, { name: ' Shop 2 ' });
  assert.deepEqual(
    [named.name, named.tags, named.internal_name, named.state],
    ['Shop 2', 'a', 'shop-2.internal', 'running'],
  );
  const tagged = await change(vmId, { tags: 'b,c' });
  assert.deepEqual([tagged.name, tagged.tags], ['Shop 2', 'b,c']);
  assert.deepEqual(await change(vmId, {}), tagged);
  await assert.rejects(change(vmId, { name: 'x' }, bob), code('vm_not_found'));
  await assert.rejects(change(vmId, { name: '\u200b' }), code('invalid_request'));
  assert.equal((await cloud.power.stop(again(ann), vmId)).name, 'Shop 2');
  const events = await fixture.metadata.all<{ body: string }>(
    "SELECT body FROM webhook_events WHERE type = 'vm.changed'",
  );
  assert.deepEqual(
    events
      .map(({ body }) => JSON.parse(body).data)
      .map(({ name, tags }) => `${name} ${tags}`)
      .sort(),
    ['Shop 2 a', 'Shop 2 b,c'],
  );
});

test('type and disk change only while it is off, and the disk only grows', async () => {
  const vmId = await newVm();
  await cloud.power.start(again(ann), vmId);
  for (const input of [{ instance_type: 't2.small' }, { disk_gb: 60 }]) {
    await assert.rejects(change(vmId, { name: 'no', ...input }), code('vm_not_stopped'));
  }
  assert.equal((await cloud.machines.describe(ann.principal, vmId)).name, 'web');
  // The current size is not a change.
  await change(vmId, { instance_type: 't2.micro', disk_gb: 30 });
  await cloud.power.stop(again(ann), vmId);
  for (const input of [{ disk_gb: 29 }, { disk_gb: 1025 }, { instance_type: 't9.huge' }]) {
    await assert.rejects(change(vmId, input), code('invalid_request'));
  }
  const small = await change(vmId, { instance_type: 't2.small', disk_gb: 60, name: 'big' });
  assert.deepEqual(
    [small.instance_type, small.memory_mb, small.disk_gb, small.name, small.price_per_hour],
    ['t2.small', 2048, 60, 'big', 0.023],
  );
  assert.equal(fixture.engine.guests.get(vmId)?.spec.diskGb, 60);
  // A smaller type keeps the disk.
  const micro = await change(vmId, { instance_type: 't2.micro' });
  assert.deepEqual([micro.memory_mb, micro.disk_gb], [1024, 60]);
  assert.equal((await cloud.power.start(again(ann), vmId)).state, 'running');
  await cloud.power.stop(again(ann), vmId);
});

test('a disk that could not be grown at once is grown by the next start', async () => {
  const vmId = await newVm();
  await cloud.power.stop(again(ann), vmId);
  cloud.scripted.script('prepare', () => Promise.reject(new AppError('out_of_space', 'as scripted')));
  assert.equal((await change(vmId, { disk_gb: 40 })).disk_gb, 40);
  assert.match(cloud.reports.pop() ?? '', /grow its disk.*as scripted/);
  assert.equal(fixture.engine.guests.get(vmId)?.spec.diskGb, 30);
  cloud.scripted.script('prepare');
  await cloud.power.start(again(ann), vmId);
  assert.equal(fixture.engine.guests.get(vmId)?.spec.diskGb, 40);
  await cloud.power.stop(again(ann), vmId);
});

test('a larger machine is held against the quota of virtual CPUs and the credits', async () => {
  const eve = await fixture.newCall('eve');
  const { accountId } = eve.principal;
  await fixture.setQuotas(accountId, { vcpus: 2 });
  const { vm_id } = await cloud.machines.create(again(eve), { name: 'm', instance_type: 't2.micro' });
  await assert.rejects(change(vm_id, { instance_type: 'c5.xlarge' }, eve), code('quota_exceeded'));
  // Many at once claim the same virtual CPUs only once.
  await Promise.all([1, 2, 3].map(() => change(vm_id, { instance_type: 't2.medium' }, eve)));
  await assert.rejects(
    cloud.machines.create(again(eve), { name: 'n', instance_type: 't2.micro' }),
    code('quota_exceeded'),
  );
  await change(vm_id, { instance_type: 't2.micro' }, eve);
  await cloud.machines.create(again(eve), { name: 'n', instance_type: 't2.micro' });
  await fixture.spendAll();
  await fixture.setQuotas(accountId, { vcpus: null });
  await assert.rejects(change(vm_id, { instance_type: 't2.small' }, eve), code('insufficient_credits'));
  await assert.rejects(change(vm_id, { disk_gb: 31 }, eve), code('insufficient_credits'));
});

test('disks and snapshots are held against the quota, also many at once, and what there is stays', async () => {
  const dan = await fixture.newCall('dan');
  const { accountId } = dan.principal;
  const make = (name: string) =>
    cloud.machines.create(again(dan), { name, instance_type: 't2.micro' }).then(({ vm_id }) => vm_id);
  const settled = async (work: readonly Promise<unknown>[]) => {
    const results = await Promise.allSettled(work);
    const refused = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    assert.ok(refused.every(code('quota_exceeded')), refused.join());
    return results.length - refused.length;
  };
  await fixture.setQuotas(accountId, { disk_gb: 95 });
  assert.equal(await settled(['a', 'b', 'c', 'd', 'e'].map(make)), 3);
  const [a = '', b = '', c = ''] = (await fixture.store.listOf(accountId, 0, 5)).map(({ vm_id }) => vm_id);
  // Disks left behind by refused machines would be orphans.
  const guests = [...fixture.engine.guests.values()].filter(({ spec }) => [a, b, c].includes(spec.vmId));
  assert.equal(guests.length, 3);
  assert.equal(await settled([a, b, c].map((id) => change(id, { disk_gb: 33 }, dan))), 1);
  const grown = (await fixture.store.listOf(accountId, 0, 5)).find(({ disk_gb }) => disk_gb === 33)?.vm_id;
  const left = [a, b, c].filter((id) => id !== grown);
  // A copy of the scripted engine takes 2 GB.
  const copies = fixture.engine.snapshots.size;
  const snap = (vmId: string) => cloud.snapshots.create(again(dan), vmId, { name: 's' });
  assert.equal(await settled(left.map(snap)), 1);
  assert.equal(fixture.engine.snapshots.size, copies + 1, 'a refused copy is gone');
  const grow = (disk_gb: number) => change(grown ?? '', { disk_gb }, dan);
  await assert.rejects(grow(34), (error: unknown) => {
    assert.ok(isAppError(error, 'quota_exceeded'));
    assert.deepEqual(error.extra, { quota: 'disk_gb', limit: 95, used: 95, requested: 1 });
    return true;
  });
  // Above a lowered limit nothing is lost: changes that do not grow are allowed, and deletions free quota.
  await fixture.setQuotas(accountId, { disk_gb: 10 });
  await change(grown ?? '', { instance_type: 't2.small', name: 'kept' }, dan);
  await cloud.power.start(again(dan), grown ?? '');
  await cloud.power.stop(again(dan), grown ?? '');
  await fixture.setQuotas(accountId, { disk_gb: 95 });
  const [full = ''] = left.filter((id) => id !== grown);
  for (const { snapshot_id } of await cloud.snapshots.list(again(dan), full))
    await cloud.snapshots.remove(again(dan), full, snapshot_id);
  await cloud.power.stop(again(dan), full);
  await cloud.deleter.remove(again(dan), full);
  await make('f');
});

test('a rebuilt machine has a new disk and keeps the rest; the row counts, and snapshots hold it', async () => {
  const kim = await fixture.newCall('kim');
  const { vm_id: vmId } = await cloud.machines.create(again(kim), { name: 'web', instance_type: 't2.micro' });
  const rebuild = (input = {}, call = kim) => cloud.machineRebuilds.rebuild(again(call), vmId, input);
  const guest = () => fixture.engine.guests.get(vmId) ?? assert.fail();
  guest().disk = 'old';
  await cloud.power.start(again(kim), vmId);
  await assert.rejects(rebuild(), code('vm_not_stopped'));
  await cloud.power.stop(again(kim), vmId);
  await assert.rejects(rebuild({}, bob), code('vm_not_found'));
  await assert.rejects(rebuild({ image: 'img-00000000000000000000000000' }), code('image_not_found'));
  const { snapshot_id } = await cloud.snapshots.create(again(kim), vmId, { name: 's' });
  await assert.rejects(rebuild(), code('vm_invalid_state'));
  assert.equal(guest().disk, 'old');
  await cloud.snapshots.remove(again(kim), vmId, snapshot_id);
  const before = await cloud.machines.describe(kim.principal, vmId);
  assert.deepEqual(await rebuild(), before);
  assert.equal(guest().disk, '');
  // If it was killed or failed in between, the next start replaces the disk, once.
  guest().disk = 'second';
  cloud.scripted.script('prepare', () => Promise.reject(new AppError('out_of_space', 'as scripted')));
  await rebuild();
  assert.match(cloud.reports.pop() ?? '', /replace its disk.*as scripted/);
  cloud.scripted.script('prepare');
  assert.equal(guest().disk, 'second');
  await cloud.power.start(again(kim), vmId);
  assert.equal(guest().disk, '');
  guest().disk = 'kept';
  await cloud.power.stop(again(kim), vmId);
  await cloud.power.start(again(kim), vmId);
  assert.equal(guest().disk, 'kept');
  await cloud.power.stop(again(kim), vmId);
});
