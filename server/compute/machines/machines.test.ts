import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { CommitOutcomeUnknown, type Metadata } from '../../metadata/metadata.ts';
import { AppError, type ErrorCode, isAppError } from '../../platform/errors.ts';
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

const list = ({ principal }: Call, limit: number) =>
  cloud.machines.list(principal.accountId, { after: 0, limit });
const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);
const NEW = { name: 'web', instance_type: 't2.small' };

const closedPort = (port: number) => ({
  port,
  guest_port: port,
  open: false,
  reason: 'the virtual machine is not running',
});

test('a new machine says all of itself, has a disk, its own address, and usage', async () => {
  const vm = await cloud.machines.create(ann, { ...NEW, tags: 'a,b', region: 'eu-1', ports: [9000] });
  const { vm_id, ip_address, private_ip, created_at, ...rest } = vm;
  assert.match(vm_id, /^vm-[0-9a-z]{26}$/);
  assert.match(ip_address ?? '', /^127\.80\.\d+\.\d+$/);
  // The same in the private network.
  assert.equal(private_ip, ip_address?.replace(/^127/, '10'));
  assert.deepEqual(rest, {
    name: 'web',
    internal_name: 'web.internal',
    instance_type: 't2.small',
    region: 'eu-1',
    tags: 'a,b',
    image: 'tiny',
    state: 'created',
    state_reason: null,
    vcpus: 1,
    memory_mb: 2048,
    disk_gb: 50,
    price_per_hour: 0.023,
    price_per_month: 16.79,
    disk_price_per_hour: 0,
    total_price_per_hour: 0.023,
    total_price_per_month: 16.79,
    outbound: false,
    ports: [22, 80, 443, 8080, 9000].map(closedPort),
    ssh_command: null,
    accel: null,
    accel_reason: null,
    started_at: null,
    ready_at: null,
    uptime_seconds: 0,
  });
  assert.deepEqual(await cloud.machines.describe(ann.principal, vm_id), vm);
  const spec = fixture.engine.guests.get(vm_id)?.spec;
  assert.deepEqual(
    { hostname: spec?.hostname, memory: spec?.memoryMb, disk: spec?.diskGb, image: spec?.image },
    {
      hostname: 'web',
      memory: 2048,
      disk: 50,
      image: { imageId: 'tiny', boot: 'kernel', format: 'raw' },
    },
  );
  assert.match(spec?.network.mac ?? '', /^52(?::[0-9a-f]{2}){5}$/);
  assert.ok(!cloud.ingress.entries.has(vm_id), 'what does not run costs no listener');
  assert.deepEqual(await fixture.usage(vm_id), [{ event: 'created', at: fixture.clock.now() }]);
  assert.ok(created_at);
});

test('whether it may go out is what holds now: nobody goes out when the operator says so', async () => {
  const open = await fixture.open({ outbound: true });
  const { vm_id, outbound } = await open.machines.create(ann, NEW);
  assert.equal(outbound, true);
  assert.equal((await cloud.machines.describe(ann.principal, vm_id)).outbound, false);
  assert.equal((await open.machines.describe(ann.principal, vm_id)).outbound, true);
});

test('100 at once: 100 addresses', async () => {
  await fixture.unlimit(bob.principal.accountId);
  const made = await Promise.all(Array.from({ length: 100 }, () => cloud.machines.create(bob, NEW)));
  assert.equal(new Set(made.map(({ ip_address }) => ip_address)).size, 100);
  const listed: string[] = [];
  for await (const entry of list(bob, Infinity)) listed.push(JSON.stringify(entry));
  assert.deepEqual(listed.sort(), made.map((vm) => JSON.stringify(vm)).sort());
  const firstPage: string[] = [];
  for await (const entry of list(bob, 7)) firstPage.push(entry.toJSON().vm_id);
  assert.equal(firstPage.length, 7);
});

test("another account's machine is not there", async () => {
  const { vm_id } = await cloud.machines.create(ann, NEW);
  for (const id of [vm_id, 'vm-00000000000000000000000000', 'nonsense', '']) {
    await assert.rejects(cloud.machines.findFor(bob.principal, id), code('vm_not_found'));
    await assert.rejects(cloud.power.start(bob, id), code('vm_not_found'));
    await assert.rejects(cloud.power.stop(bob, id), code('vm_not_found'));
    await assert.rejects(cloud.deleter.remove(bob, id), code('vm_not_found'));
  }
});

test('what is refused leaves nothing behind: no disk, no row, no address', async () => {
  const small = await fixture.open({ pool: '10.9.9.0/30' });
  const disks = fixture.engine.guests.size;
  await assert.rejects(small.machines.create(ann, { ...NEW, image: 'img-none' }), code('image_not_found'));
  small.scripted.script('prepare', async () => {
    throw new AppError('out_of_space', 'The disk is full');
  });
  for (let i = 0; i < 3; i++) {
    await assert.rejects(small.machines.create(ann, NEW), code('out_of_space'));
  }
  small.scripted.script('prepare');
  const made = [await small.machines.create(ann, NEW), await small.machines.create(ann, NEW)];
  assert.deepEqual(made.map(({ ip_address }) => ip_address).sort(), ['10.9.9.1', '10.9.9.2']);
  await assert.rejects(small.machines.create(ann, NEW), code('no_free_address'));
  assert.equal(fixture.engine.guests.size, disks + 2);
});

test('a commit that failed for sure takes the disk and the address back; one in doubt leaves them', async () => {
  let failure: Error | null = null;
  const wrapMetadata = (metadata: Metadata): Metadata => ({
    get: (sql, ...params) => metadata.get(sql, ...params),
    all: (sql, ...params) => metadata.all(sql, ...params),
    commit: async (statements) => {
      if (failure !== null) throw failure;
      return metadata.commit(statements);
    },
    snapshot: metadata.snapshot.bind(metadata),
    close: () => metadata.close(),
  });
  const failing = await fixture.open({ pool: '10.9.8.0/30', wrapMetadata });
  const disks = fixture.engine.guests.size;
  for (let i = 0; i < 3; i++) {
    failure = new AppError('overloaded', 'as scripted');
    await assert.rejects(failing.machines.create(ann, NEW), code('overloaded'));
  }
  assert.equal(fixture.engine.guests.size, disks);
  failure = new CommitOutcomeUnknown('as scripted');
  await assert.rejects(failing.machines.create(ann, NEW), code('read_only'));
  assert.equal(fixture.engine.guests.size, disks + 1);
});

test('an address that turns out to be taken: the machine gets another', async () => {
  const pool = '10.9.7.0/29';
  const [one, two] = [await fixture.open({ pool }), await fixture.open({ pool })];
  const first = await one.machines.create(ann, NEW);
  const second = await two.machines.create(ann, NEW);
  assert.deepEqual([first.ip_address, second.ip_address], ['10.9.7.1', '10.9.7.2']);
  assert.equal((await two.machines.describe(ann.principal, second.vm_id)).ip_address, '10.9.7.2');
});

test('without credits nothing is created', async () => {
  const poor = await openComputeFixture();
  const { machines } = await poor.open();
  const eve = await poor.newCall('eve');
  await poor.spendAll();
  await assert.rejects(machines.create(eve, NEW), code('insufficient_credits'));
  assert.equal(poor.engine.guests.size, 0);
  await poor.close();
});
