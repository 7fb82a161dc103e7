/** Machines on a full disk: none is created partially, and a running one waits until there is space again. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { cannotRunGuests, guestPids, NEW_VM } from '../acceptance/vms-kit.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess, POOL } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { rounds } from './load.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;
/** Large enough for mkfs to choose blocks of 4 KiB: a file may then have the size of a machine's disk. */
const DISK_BYTES = 640 * MIB;
/** Fewer addresses than machines tried below. */
const env = { CLOUDLET_VM_POOL: POOL.replace(/\/22$/, '/29') };
const skip = noLoopDisk();

interface Fixture {
  readonly disk: LoopDisk;
  readonly cloud: CloudProcess;
  readonly client: Client;
}

async function open(t: TestContext): Promise<Fixture> {
  const disk = new LoopDisk(DISK_BYTES);
  let running: CloudProcess | undefined;
  t.after(async () => {
    await running?.crash();
    const vms = `${disk.mountPoint}/data/vms`;
    // The machines of a failed test. They use the disk until they have ended.
    const guests = existsSync(vms) ? readdirSync(vms).flatMap(guestPids) : [];
    for (const pid of guests) process.kill(pid, 'SIGKILL');
    await eventually('nobody holds the disk', () => isRemoved(disk));
  });
  const cloud = await CloudProcess.start({ dataDir: `${disk.mountPoint}/data`, env });
  running = cloud;
  return { disk, cloud, client: await new Client(cloud.api).newUser() };
}

function isRemoved(disk: LoopDisk): boolean {
  try {
    disk.remove();
    return true;
  } catch {
    return false;
  }
}

/** Uses all free space except `left` bytes. Returns the function that releases it. */
function leave({ disk }: Fixture, left: number): () => void {
  const path = join(disk.mountPoint, 'most');
  const { bavail, bsize } = statfsSync(disk.mountPoint);
  execFileSync('fallocate', ['--length', String(bavail * bsize - left), path], { stdio: 'pipe' });
  return () => rmSync(path);
}

/** Uses all free space, in blocks without content. Returns the function that releases it. */
function fill({ disk }: Fixture): () => void {
  const path = join(disk.mountPoint, 'filler');
  // The file system needs space to record the blocks, so the first attempt is too large.
  for (let spare = 0; ; spare += 64) {
    const { bavail, bsize } = statfsSync(disk.mountPoint);
    if (bavail <= spare) return () => rmSync(path);
    try {
      execFileSync('fallocate', ['--length', String((bavail - spare) * bsize), path], { stdio: 'pipe' });
    } catch {
      rmSync(path, { force: true });
      continue;
    }
    try {
      execFileSync('dd', ['if=/dev/zero', `of=${path}`, 'bs=4k', 'oflag=append', 'conv=notrunc'], {
        stdio: 'pipe',
      });
    } catch {
      return () => rmSync(path);
    }
  }
}

const folders = ({ cloud }: Fixture) =>
  readdirSync(join(cloud.dataDir, 'vms')).filter((name) => /vm-/.test(name));

test('a machine that the disk has no space for is refused, and nothing of it is left', {
  skip,
}, async (t) => {
  const fixture = await open(t);
  const { client } = fixture;
  const first = await client.call('/api/vms', { json: NEW_VM });
  assert.equal(first.status, 201);
  const empty = fill(fixture);
  for (let i = 0; i < 20; i++) {
    const { status, body } = await client.call('/api/vms', { json: NEW_VM });
    assert.deepEqual([status, body.code], [507, 'out_of_space'], JSON.stringify(body));
  }
  assert.deepEqual((await client.call('/api/vms')).body, [first.body]);
  assert.deepEqual(folders(fixture), [first.body.vm_id]);
  empty();
  await eventually('there is space again', async () => {
    return (await client.call('/api/vms', { json: NEW_VM })).status === 201;
  });
  const addresses = (await client.call('/api/vms')).body.map((vm: { ip_address: string }) => vm.ip_address);
  assert.equal(new Set(addresses).size, 2);
});

test('a guest that writes on a full disk waits, loses nothing and goes on when there is space', {
  skip: skip || cannotRunGuests(),
}, async (t) => {
  const fixture = await open(t);
  const { client } = fixture;
  const script = [
    '#!/bin/sh',
    'echo writing soon >/dev/console',
    'sleep 5',
    'dd if=/dev/urandom of=work bs=1M count=40 conv=fsync && md5sum work >sum',
    'echo 3 >/proc/sys/vm/drop_caches',
    'md5sum -c sum && echo written well >/dev/console',
  ].join('\n');
  const { body: vm } = await client.call('/api/vms', { json: { ...NEW_VM, user_data: script } });
  const path = `/api/vms/${vm.vm_id}`;
  const log = async () => String((await client.call(`${path}/log`)).body);
  const post = async (what: string) => (await client.call(`${path}/${what}`, { method: 'POST' })).body;
  assert.equal((await post('start')).state, 'running');
  await eventually('it runs', async () => (await log()).includes('writing soon'));
  const empty = fill(fixture);
  const [pid] = guestPids(vm.vm_id);
  const lookedAt = async () => {
    const { state, state_reason } = (await client.call(path)).body;
    return [state, state_reason?.code];
  };
  await eventually('it waits for space', async () => (await lookedAt())[1] === 'disk_full');
  // After several more checks of the disk it still does.
  await sleep(3000);
  assert.deepEqual(await lookedAt(), ['running', 'disk_full']);
  assert.doesNotMatch(await log(), /written well/);
  empty();
  await eventually('it went on', async () => (await log()).includes('written well'));
  assert.deepEqual(guestPids(vm.vm_id), [pid]);
  assert.equal((await client.call(path)).body.state_reason, null);
  assert.equal((await post('stop?force=true')).state, 'stopped');
});

test('an account whose machine fills the disk waits first; the others go on with machines, files, databases', {
  skip: skip || cannotRunGuests(),
}, async (t) => {
  const fixture = await open(t);
  const { client: attacker, cloud } = fixture;
  const victim = await new Client(cloud.api).newUser();
  const script = (work: string) =>
    ['#!/bin/sh', 'echo up >/dev/console', `n=0; while :; do ${work}; done`].join('\n');
  const write = (kib: number) => `dd if=/dev/urandom of="w-$((n = n + 1))" bs=1k count=${kib} conv=fsync`;
  const machine = async (client: Client, user_data: string) => {
    const { body } = await client.call('/api/vms', { json: { ...NEW_VM, user_data } });
    assert.equal((await client.call(`/api/vms/${body.vm_id}/start`, { method: 'POST' })).status, 200);
    const log = async () => String((await client.call(`/api/vms/${body.vm_id}/log`)).body);
    await eventually('it is up', async () => /^up/m.test(await log()));
    return { path: `/api/vms/${body.vm_id}`, log };
  };
  const still = (await victim.call('/api/vms', { json: NEW_VM })).body;
  const other = await machine(victim, script(`sleep 1; ${write(16)}; echo wrote $n >/dev/console`));
  const back = leave(fixture, 220 * MIB);
  const bad = await machine(attacker, script(write(4096)));
  const reason = async (client: Client, { path }: { path: string }) =>
    (await client.call(path)).body.state_reason?.code ?? null;
  await eventually('the one that fills the disk waits', async () => {
    return (await reason(attacker, bad)) === 'disk_full';
  });
  const { bavail, bsize } = statfsSync(fixture.disk.mountPoint);
  assert.ok(bavail * bsize > 50 * MIB, `${Math.floor((bavail * bsize) / MIB)} MiB are left`);
  // The victim's machine continues to write, and so do its files and databases.
  const wrote = async () =>
    Number(
      (await other.log())
        .match(/wrote (\d+)/g)
        ?.at(-1)
        ?.slice(6) ?? 0,
    );
  const before = await wrote();
  await eventually('the other writes on', async () => (await wrote()) > before + 3);
  assert.equal(await reason(victim, other), null);
  assert.equal((await victim.call('/api/buckets', { json: { name: 'files' } })).status, 201);
  assert.equal((await victim.upload('files', 'a', Buffer.alloc(4 * MIB, 7))).status, 200);
  const database = await victim.call('/api/databases', { json: { name: 'shop' } });
  assert.equal(database.status, 201, JSON.stringify(database.body));
  const query = { json: { statement: 'CREATE TABLE t AS SELECT 1 AS a', read_only: false } };
  const made = await victim.call(`/api/databases/${database.body.database_id}/query`, query);
  assert.equal(made.status, 200, JSON.stringify(made.body));
  // Requests that would use more of the disk for machines are refused, and the operator is notified.
  for (const [path, json, method] of [
    ['/api/vms', NEW_VM, 'POST'],
    [`/api/vms/${still.vm_id}`, { disk_gb: 40 }, 'PATCH'],
  ] as const) {
    const { status, body } = await victim.call(path, { method, json });
    assert.deepEqual([status, body.code], [507, 'out_of_space'], JSON.stringify(body));
  }
  const alarms = async () => (await victim.call('/api/system/status')).body.alarms as { code: string }[];
  assert.ok((await alarms()).some(({ code }) => code === 'machines_may_not_grow'));
  assert.equal((await victim.call(`${other.path}/stop?force=true`, { method: 'POST' })).status, 200);
  back();
  await eventually('it goes on', async () => (await reason(attacker, bad)) === null);
  await eventually('the alarm is over', async () => {
    return (await alarms()).every(({ code }) => code !== 'machines_may_not_grow');
  });
  await attacker.call(`${bad.path}/stop?force=true`, { method: 'POST' });
});

/** Guests that write forever, each in its own way: its name, and its last action. */
const WRITERS = [
  ['that comes to the end of the disk', 'while :; do one conv=fsync; done'],
  // It still has much to write when the reserve is released.
  ['with dirty pages in its memory', 'while :; do one; done'],
  // Longer than our commits need to find the disk full.
  ['that begins to write when the reserve was given back', 'sleep 20; while :; do one conv=fsync; done'],
] as const;

for (const [which, then] of WRITERS.slice(0, rounds(0, WRITERS.length))) {
  test(`a guest ${which} does not take what is kept for stops and deletions`, {
    skip: skip || cannotRunGuests(),
  }, async (t) => {
    const fixture = await open(t);
    const { client, cloud } = fixture;
    const script = [
      '#!/bin/sh',
      'one() { dd if=/dev/urandom of="work-$((n = n + 1))" bs=1M count=4 "$@"; }',
      'one conv=fsync && echo writing on >/dev/console',
      then,
    ].join('\n');
    const { body: vm } = await client.call('/api/vms', { json: { ...NEW_VM, user_data: script } });
    const path = `/api/vms/${vm.vm_id}`;
    assert.equal((await client.call(`${path}/start`, { method: 'POST' })).status, 200);
    await eventually('it writes', async () => {
      return String((await client.call(`${path}/log`)).body).includes('writing on');
    });
    const empty = fill(fixture);
    // The time in which the reserve is released for our commits, and every guest above wrote; there is no
    // signal.
    await sleep(40_000);
    assert.equal(existsSync(join(cloud.dataDir, 'reserve')), false, cloud.output);
    const { state, state_reason } = (await client.call(path)).body;
    const { alarms } = (await client.call('/api/system/status')).body;
    const stopped = await client.call(`${path}/stop?force=true`, { method: 'POST' });
    assert.deepEqual([stopped.status, stopped.body.state], [200, 'stopped'], JSON.stringify(stopped.body));
    assert.equal((await client.call(path, { method: 'DELETE' })).status, 200);
    assert.deepEqual([state, state_reason?.code], ['running', 'disk_full']);
    assert.ok(alarms.some(({ code }: { code: string }) => code === 'machines_wait_for_room'));
    empty();
    await eventually('the alarm is over', async () => {
      const { body } = await client.call('/api/system/status');
      return body.alarms.every(({ code }: { code: string }) => code !== 'machines_wait_for_room');
    });
  });
}
