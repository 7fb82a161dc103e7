/** Machines of a lost cloud, restored from a recovery point. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POST } from './recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll, sshBanner } from './vms-kit.ts';

const skip = cannotRunGuests() || notInstalled('ssh');
let lost: LosableCloud;
before(async () => {
  if (!skip) lost = await LosableCloud.start();
});
after(async () => {
  if (skip) return;
  await removeAll(lost.user);
  await lost.end();
});

function ssh(key: string, address: string, command: string): string {
  const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
  const words = [...options, 'ConnectTimeout=100'].flatMap((option) => ['-o', option]);
  const all = [...words, '-i', key, '-p', '2222', `root@${address}`, command];
  return execFileSync('ssh', all, { timeout: 110_000 }).toString();
}

test('one that ran is stopped, is itself again, and has its files', { skip }, async () => {
  const key = join(lost.root, 'ssh-key');
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const keys = [readFileSync(`${key}.pub`, 'utf8').trim()];
  const vm = await newVm(lost.user, { name: 'runs', ssh_keys: keys });
  const idle = await newVm(lost.user, { name: 'idle' });
  const { ip_address: address } = await lost.user.expect(200, `${vm}/start`, POST);
  await sshBanner(address);
  ssh(key, address, 'echo kept >~/file && sync');
  const before = await lost.user.expect(200, vm);
  const point = await lost.point();
  assert.deepEqual([point.state, point.gaps], ['complete', []]);
  assert.equal((await lost.user.expect(200, vm)).state, 'running');
  const folder = join(lost.dataDir, 'vms', String(vm.split('/').at(-1)), 'guest');
  assert.ok(!readdirSync(folder).includes('point.img'));
  // Twice: the first copy does not block the second.
  const second = await lost.point();
  assert.deepEqual(second.gaps, []);
  assert.ok(second.stored_bytes < point.stored_bytes / 2, `${second.stored_bytes} bytes`);
  await lost.keepKey();
  await removeRunning(vm);
  await lost.lose();
  const again = await eventually('it is stopped', async () => {
    const found = await lost.user.expect(200, vm);
    return found.state === 'stopped' ? found : undefined;
  });
  assert.equal(again.state_reason.code, 'restored');
  for (const field of ['vm_id', 'name', 'ip_address', 'created_at'] as const) {
    assert.equal(again[field], before[field], field);
  }
  await lost.user.expect(200, `${vm}/start`, POST);
  await sshBanner(address);
  assert.equal(ssh(key, address, 'cat ~/file'), 'kept\n');
  await lost.user.expect(200, `${idle}/start`, POST);
});

/** A lost machine does not continue to run. */
async function removeRunning(vm: string): Promise<void> {
  await lost.user.expect(200, `${vm}/stop?force=true`, POST);
}
