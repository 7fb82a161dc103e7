/** A full disk refuses only uploads, loses no bytes, and recovers automatically. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { Checker } from './check.ts';
import { Load, makeBuckets, type TestBucket } from './load.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';
import { Oracle, type Write } from './oracle.ts';

const MIB = 2 ** 20;
const DISK_BYTES = 64 * MIB;
const env = { CLOUDLET_RATE_REQUESTS: '1000000', CLOUDLET_SWEEP_GRACE_SECONDS: '1' };
const buckets: readonly TestBucket[] = [{ name: 'plain', versioning: false, encryption: false }];
const skip = noLoopDisk();

interface Fixture {
  readonly disk: LoopDisk;
  readonly cloud: CloudProcess;
  readonly client: Client;
  readonly oracle: Oracle;
  readonly checker: Checker;
  readonly load: Load;
}

async function open(t: TestContext): Promise<Fixture> {
  const disk = new LoopDisk(DISK_BYTES);
  const dataDir = `${disk.mountPoint}/data`;
  let running: CloudProcess | undefined;
  // Before the start: a failed one must not leave the disk mounted.
  t.after(async () => {
    await running?.crash();
    disk.remove();
  });
  const cloud = await CloudProcess.start({ dataDir, env });
  running = cloud;
  const client = await new Client(cloud.api).newUser();
  await makeBuckets(client, buckets);
  const oracle = new Oracle();
  t.after(() => oracle.close());
  const load = new Load({ client, oracle, random: () => 0, buckets });
  return { disk, cloud, client, oracle, checker: new Checker(oracle), load };
}

/** Uploads until one is refused, `clients` at a time. Returns the refused ones. */
async function fill({ load, oracle }: Fixture, size: number, clients: number): Promise<Write[]> {
  const refused: Write[] = [];
  const lane = async () => {
    while (refused.length === 0) {
      const write = await load.put('plain', `fill/${size}/${oracle.writes.length}`, size);
      if (write.outcome !== 'acked') refused.push(write);
    }
  };
  await Promise.all(Array.from({ length: clients }, lane));
  return refused;
}

/** Everything except uploads works, and refused objects do not exist. */
async function assertUsable({ client, checker, cloud }: Fixture, refused: readonly Write[]): Promise<void> {
  await checker.check(client, { buckets, allBytes: true });
  const { body: listed } = await client.call('/api/buckets/plain/files');
  const names = new Set(listed.map(({ name }: { name: string }) => name));
  assert.deepEqual(
    refused.filter(({ name }) => names.has(name)).map(({ name }) => name),
    [],
    'uploads that were refused for lack of space are listed',
  );
  const large = listed.filter(({ size }: { size: number }) => size > 16_384);
  await eventually('the bytes of refused uploads are gone', () => {
    return blobFiles(cloud.dataDir).length === large.length;
  });
}

/** At most `most`: the number of rows on a full disk depends on how much of the log was written back. */
async function remove({ client, oracle }: Fixture, most: number): Promise<void> {
  const { body: listed } = await client.call('/api/buckets/plain/files');
  const count = Math.min(most, listed.length);
  assert.ok(count >= 4, `only ${listed.length} objects are there`);
  for (const { id, name } of listed.slice(0, count)) {
    const write = oracle.begin({ kind: 'delete', bucket: 'plain', name });
    const { status, body } = await client.call(`/api/storage/${id}`, { method: 'DELETE' });
    oracle.end(write, { status, versionId: body.version_id });
    assert.equal(status, 200, `delete on a full disk: ${JSON.stringify(body)}`);
  }
}

for (const { what, size, clients, taken } of [
  { what: 'large uploads', size: 5 * MIB, clients: 4, taken: 0 },
  // Half of the disk is filled first, otherwise it would be thousands of them.
  { what: 'small inline uploads', size: 16_000, clients: 16, taken: DISK_BYTES / 2 },
]) {
  test(`a disk filled by ${what} answers 507, serves and deletes, and recovers`, { skip }, async (t) => {
    const fixture = await open(t);
    writeFileSync(`${fixture.disk.mountPoint}/taken`, Buffer.alloc(taken));
    const refused = await fill(fixture, size, clients);
    assert.deepEqual([...fixture.load.answers.keys()].sort(), [200, 507]);
    const { status, components } = (await fixture.client.call('/api/system/status')).body;
    assert.deepEqual([status, components.storage.status], ['degraded', 'degraded']);
    assert.match(components.storage.problem, /uploads.* refused/);
    await assertUsable(fixture, refused);
    await remove(fixture, Math.ceil((20 * MIB) / size));
    await eventually('uploads work again', async () => {
      return (
        (await fixture.load.put('plain', `again/${fixture.oracle.writes.length}`, 40_000)).outcome === 'acked'
      );
    });
    await eventually('the status is ok again', async () => {
      return (await fixture.client.call('/api/system/status')).body.status === 'ok';
    });
    await fixture.checker.check(fixture.client, { buckets, allBytes: true });
  });
}

test('a disk filled to the last byte by others serves and deletes, and recovers', { skip }, async (t) => {
  const fixture = await open(t);
  for (let i = 0; i < 20; i++) await fixture.load.put('plain', `small/${i}`, 1000 + i * 3000);
  const filler = `${fixture.disk.mountPoint}/filler`;
  assert.throws(() => {
    execFileSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k', 'conv=fsync'], { stdio: 'pipe' });
  }, /No space left/);
  const refused: Write[] = [];
  // An upload admitted by the last check of the disk, half a second ago, may still find space in the log.
  await eventually('a small upload is refused', async () => {
    const write = await fixture.load.put('plain', `late/${fixture.oracle.writes.length}`, 100);
    if (write.outcome !== 'acked') refused.push(write);
    return refused.length > 0;
  });
  refused.push(await fixture.load.put('plain', 'late/large', 3 * MIB));
  assert.equal(fixture.load.answers.get(507), 2);
  await remove(fixture, 5);
  await assertUsable(fixture, refused);
  rmSync(filler);
  await eventually('uploads work again', async () => {
    return (
      (await fixture.load.put('plain', `again/${fixture.oracle.writes.length}`, 40_000)).outcome === 'acked'
    );
  });
  await fixture.checker.check(fixture.client, { buckets, allBytes: true });
});

/** Leaves 256 KiB. */
function fillNearly({ mountPoint }: LoopDisk, name: string): string {
  const path = `${mountPoint}/${name}`;
  const { bavail, bsize } = statfsSync(mountPoint);
  const count = Math.floor((bavail * bsize) / 65_536) - 4;
  execFileSync('dd', ['if=/dev/zero', `of=${path}`, 'bs=64k', `count=${count}`], { stdio: 'pipe' });
  return path;
}

test('a cloud starts on a full disk, so that something can be deleted', { skip }, async (t) => {
  const fixture = await open(t);
  for (let i = 0; i < 5; i++) await fixture.load.put('plain', `kept/${i}`, 30_000);
  assert.equal(await fixture.cloud.stop(), 0);
  fillNearly(fixture.disk, 'filler');
  await fixture.cloud.start();
  const client = new Client(fixture.cloud.api, fixture.client.key);
  await remove({ ...fixture, client }, 4);
  await fixture.checker.check(client, { buckets, allBytes: true });
});

test('a start on a disk that is full without the reserve ends with one clear line', { skip }, async (t) => {
  const { disk, cloud } = await open(t);
  assert.equal(await cloud.stop(), 0);
  rmSync(`${cloud.dataDir}/reserve`);
  const filler = fillNearly(disk, 'filler');
  await assert.rejects(cloud.start(), (error: Error) => {
    assert.match(error.message, /\(exit [1-9]\d*\)/);
    const lines = error.message.split('\n').filter((line) => /full|space/.test(line));
    assert.equal(lines.length, 1, error.message);
    assert.doesNotMatch(error.message, /^\s+at /m);
    return true;
  });
  rmSync(filler);
  await cloud.start();
  assert.equal((await new Client(cloud.api, ADMIN_KEY).call('/readyz')).status, 200);
});
