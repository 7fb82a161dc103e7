/** The life of real guests. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, firstLine, guestPids, idleImage, newVm, removeAll, sshBanner } from './vms-kit.ts';

const skip = cannotRunGuests();
let cloud: CloudProcess;
let user: CheckedClient;
/** The machine of the first test, reused by the next one: a boot takes seconds of a processor. */
let answering = '';
before(async () => {
  if (skip !== false) return;
  // On a busy host a guest takes longer to shut down than the default allows.
  cloud = await CloudProcess.start({ env: { CLOUDLET_VM_GRACE_SECONDS: '300' } });
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
});
after(async () => {
  if (skip !== false) return;
  await removeAll(user);
  await cloud.stop();
});

const post = (path: string) => user.expect(200, path, { method: 'POST' });

test('created, started, answering, stopped, started again', { skip }, async () => {
  const vm = await newVm(user);
  const { vm_id, ip_address } = await user.expect(200, vm);
  assert.equal(await firstLine(ip_address, 2222), null);

  const running = await post(`${vm}/start`);
  assert.equal(running.state, 'running');
  assert.ok(running.accel);
  assert.equal(guestPids(vm_id).length, 1);
  assert.match(await sshBanner(ip_address), /^SSH-2\.0-/);
  await eventually('ready_at', async () => (await user.expect(200, vm)).ready_at);

  const again = await post(`${vm}/start`);
  assert.equal(again.started_at, running.started_at);
  assert.equal(guestPids(vm_id).length, 1);
  await user.refused(409, 'vm_not_stopped', [vm, { method: 'DELETE' }]);

  const stopped = await post(`${vm}/stop`);
  assert.equal(stopped.state, 'stopped');
  assert.equal(stopped.state_reason.code, 'shut_down');
  assert.deepEqual(guestPids(vm_id), []);
  assert.equal(await firstLine(ip_address, 2222), null);

  const second = await post(`${vm}/start`);
  assert.equal(second.ip_address, ip_address);
  assert.match(await sshBanner(ip_address), /^SSH-2\.0-/);
  answering = vm;
});

test('a killed Cloudlet finds its guests again: none lost, none doubled; stopped by force, deleted', {
  skip,
}, async () => {
  const vm = answering;
  const before = await user.expect(200, vm);
  const pids = guestPids(before.vm_id);
  await cloud.crash();
  assert.deepEqual(guestPids(before.vm_id), pids);
  await cloud.start();
  user = (await CheckedClient.open(cloud.api)).as(user.key);
  const now = await user.expect(200, vm);
  assert.deepEqual([now.state, now.started_at], ['running', before.started_at]);
  assert.match(await sshBanner(before.ip_address), /^SSH-2\.0-/);
  assert.deepEqual(guestPids(before.vm_id), pids);
  assert.equal((await post(`${vm}/stop?force=true`)).state, 'stopped');
  await user.expect(200, vm, { method: 'DELETE' });
  await user.refused(404, 'vm_not_found', [vm]);
});

test('two starts at once: one guest, one answer', { skip }, async () => {
  const vm = await newVm(user);
  const [one, two] = await Promise.all([post(`${vm}/start`), post(`${vm}/start`)]);
  assert.equal(one.started_at, two.started_at);
  assert.equal(guestPids(one.vm_id).length, 1);
  await post(`${vm}/stop?force=true`);
});

test('whatever it is called, a guest is started with the same words', { skip }, async () => {
  const words: string[][] = [];
  for (const name of ['web', '-snapshot,guest=x=$(id)";\'`\\😀 file=/etc/shadow,if=virtio -monitor stdio']) {
    const vm = await newVm(user, { name, tags: name, user_data: `#!/bin/sh\n# ${name}\n` });
    const { vm_id } = await post(`${vm}/start`);
    const [pid] = guestPids(vm_id);
    // The separate resources of each machine.
    const own =
      /vm-[0-9a-z]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|5[26](?::[0-9a-f]{2}){5}|127(?:\.\d+){3}/g;
    words.push(readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(own, '…').split('\0'));
    await post(`${vm}/stop?force=true`);
  }
  assert.ok((words[0]?.length ?? 0) > 30);
  assert.deepEqual(words[1], words[0]);
});

test('a guest whose process is killed: error, with the reason; a stop mends it', { skip }, async () => {
  const vm = await newVm(user);
  const { vm_id } = await post(`${vm}/start`);
  for (const pid of guestPids(vm_id)) process.kill(pid, 'SIGKILL');
  const failed = await eventually('the end of the guest', async () => {
    const now = await user.expect(200, vm);
    return now.state === 'running' ? null : now;
  });
  assert.deepEqual([failed.state, failed.state_reason.code], ['error', 'crashed']);
  assert.equal((await post(`${vm}/stop`)).state, 'stopped');
  await user.expect(200, vm, { method: 'DELETE' });
});

test('killed while it starts a guest: the guest runs in the end, and there is one of it', {
  skip,
}, async () => {
  const vm = await newVm(user);
  const { vm_id } = await user.expect(200, vm);
  const starting = user.fetch(`${vm}/start`, { method: 'POST' }).catch(() => null);
  await eventually('the start', async () => (await user.expect(200, vm)).state !== 'created');
  await cloud.crash();
  await starting;
  await cloud.start();
  user = (await CheckedClient.open(cloud.api)).as(user.key);
  await eventually('the rest of the start', async () => (await user.expect(200, vm)).state === 'running');
  assert.equal(guestPids(vm_id).length, 1);
  await post(`${vm}/stop?force=true`);
});

test('a Cloudlet that is stopped says how many machines run on, and how to stop them', { skip }, async () => {
  const idle = await idleImage(user.as(ADMIN_KEY));
  const paths = [await newVm(user, idle), await newVm(user, idle)];
  for (const path of paths) await post(`${path}/start`);
  for (const [left, words] of [
    [
      2,
      /^2 virtual machines keep running; their addresses are reachable again when Cloudlet is restarted\.\n.*\/stop/m,
    ],
    [1, /^1 virtual machine keeps running; its address is reachable again/m],
    [0, /^Stopping: .*\n$/m],
  ] as const) {
    await cloud.end();
    assert.match(cloud.output, words);
    if (left === 0) assert.doesNotMatch(cloud.output, /virtual machine/);
    await cloud.start();
    user = (await CheckedClient.open(cloud.api)).as(user.key);
    if (left > 0) await post(`${paths[left - 1]}/stop?force=true`);
  }
});
