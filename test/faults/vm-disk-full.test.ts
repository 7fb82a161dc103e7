/** Machines on a disk that is full: none is half made, and one that runs waits until there is space again. */
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
/** Fewer addresses than machines that are tried below. */
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
    // The machines of a test that failed. They hold the disk until they have ended.
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

/** Takes all that is free, in blocks that hold nothing. Returns what gives it back. */
function fill({ disk }: Fixture): () => void {
  const path = join(disk.mountPoint, 'filler');
  // What the file system needs to note the blocks makes the first try too large.
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
  // Several looks at the disk later it still does.
  await sleep(3000);
  assert.deepEqual(await lookedAt(), ['running', 'disk_full']);
  assert.doesNotMatch(await log(), /written well/);
  empty();
  await eventually('it went on', async () => (await log()).includes('written well'));
  assert.deepEqual(guestPids(vm.vm_id), [pid]);
  assert.equal((await client.call(path)).body.state_reason, null);
  assert.equal((await post('stop?force=true')).state, 'stopped');
});

/** Guests that write on and on, each in a way of its own: its name, and what it does at last. */
const WRITERS = [
  ['that comes to the end of the disk', 'while :; do one conv=fsync; done'],
  // It still has much to write when the reserve is given back.
  ['with dirty pages in its memory', 'while :; do one; done'],
  // Longer than it takes until commits of ours found the disk full.
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
    // In which the reserve is given back to commits of ours, and every guest above wrote; nothing tells.
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
