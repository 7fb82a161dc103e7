/** Guests that try to hide, and the largest possible one, as seen by their owner. */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, guestPids, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
let cloud: CloudProcess;
let user: CheckedClient;
before(async () => {
  if (skip !== false) return;
  cloud = await CloudProcess.start({ env: { CLOUDLET_MEMORY_OVERCOMMIT: '64' } });
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
});
after(async () => {
  if (skip !== false) return;
  await removeAll(user);
  await cloud.stop();
});

const post = (path: string) => user.expect(200, path, { method: 'POST' });
const onlyPid = (vmId: string): number => {
  const [pid, ...more] = guestPids(vmId);
  assert.ok(pid !== undefined && more.length === 0);
  return pid;
};
const isThere = (pid: number): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
};

/** Like a guest that took over its process, whose command line is in its own memory. */
function hideCommandLine(pid: number): void {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [start, end] = [Number(fields[45]), Number(fields[46])];
  const memory = openSync(`/proc/${pid}/mem`, 'r+');
  writeSync(memory, Buffer.alloc(end - start), 0, end - start, start);
  closeSync(memory);
}

test('a guest behind another command line still runs, stops by force and can be deleted', {
  skip: skip || (process.getuid?.() === 0 ? false : 'only root may write to it'),
}, async () => {
  const vm = await newVm(user);
  const { vm_id, started_at } = await post(`${vm}/start`);
  const pid = onlyPid(vm_id);
  hideCommandLine(pid);
  assert.deepEqual(guestPids(vm_id), []);
  await eventually('its first sign of life', async () => (await user.expect(200, vm)).ready_at);
  const again = await post(`${vm}/start`);
  assert.deepEqual([again.state, again.started_at], ['running', started_at]);
  assert.deepEqual(guestPids(vm_id), [], 'no second one');
  assert.ok(isThere(pid));
  const stopped = await post(`${vm}/stop?force=true`);
  assert.deepEqual([stopped.state, stopped.state_reason.code], ['stopped', 'powered_off']);
  assert.equal(isThere(pid), false);
  await user.expect(200, vm, { method: 'DELETE' });
});

test('an overcommit lets the largest type start where it does not fit: memory comes when used', {
  skip,
}, async () => {
  const vm = await newVm(user, { instance_type: 'p3.2xlarge' });
  const started = await post(`${vm}/start`);
  assert.equal(started.state, 'running');
  const words = readFileSync(`/proc/${onlyPid(started.vm_id)}/cmdline`, 'latin1').split('\0');
  assert.ok(words.some((word) => word.includes('65536') || word === '64G'));
  await eventually('its first sign of life', async () => (await user.expect(200, vm)).ready_at);
  assert.equal((await post(`${vm}/stop`)).state_reason.code, 'shut_down');
  assert.deepEqual(guestPids(started.vm_id), []);
});
