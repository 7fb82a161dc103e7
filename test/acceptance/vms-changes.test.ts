/** Real guests that are renamed, resized, and restored from a snapshot. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, newVm, removeAll, sshBanner } from './vms-kit.ts';

const skip = cannotRunGuests() || notInstalled('ssh');
const directory = mkdtempSync(join(tmpdir(), 'cloudlet-changes-'));
const keyFile = join(directory, 'key');
let cloud: CloudProcess;
let user: CheckedClient;
let vm = '';
before(async () => {
  if (skip) return;
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
  cloud = await CloudProcess.start({ env: { CLOUDLET_VM_GRACE_SECONDS: '300' } });
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
  vm = await newVm(user, { ssh_keys: [readFileSync(`${keyFile}.pub`, 'utf8').trim()] });
});
after(async () => {
  if (!skip) {
    await removeAll(user);
    await cloud.stop();
  }
  rmSync(directory, { recursive: true });
});

const post = (path: string) => user.expect(200, `${vm}${path}`, { method: 'POST' });
const change = (json: object) => ({ method: 'PATCH', json });

/** Starts it and runs `command` in the guest. */
async function inGuest(command: string): Promise<string> {
  const { ip_address } = await post('/start');
  await sshBanner(ip_address);
  const options = [
    'StrictHostKeyChecking=accept-new',
    `UserKnownHostsFile=${keyFile}.hosts`,
    'LogLevel=ERROR',
  ];
  const words = [...options.flatMap((one) => ['-o', one]), '-i', keyFile, '-p', '2222', `root@${ip_address}`];
  return eventually('the guest answers', () => {
    return new Promise<string | null>((resolve) => {
      execFile('ssh', [...words, command], { timeout: 110_000 }, (error, stdout) => {
        resolve(error === null ? stdout : null);
      });
    });
  });
}

const FIGURES = "df -k / | awk 'END {print $2}'; awk '/MemTotal/ {print $2}' /proc/meminfo; cat ~/note";
const figuresOf = (output: string) => {
  const [disk = '', memory = '', note = ''] = output.trim().split('\n');
  return { diskGb: Number(disk) / 2 ** 20, memoryMb: Number(memory) / 1024, note };
};

test('a guest that is off is resized, finds more memory and disk, and what it wrote', { skip }, async () => {
  const first = figuresOf(await inGuest(`echo kept >~/note; sync; ${FIGURES}`));
  assert.ok(first.diskGb < 30 && first.memoryMb < 1024, JSON.stringify(first));
  await user.refused(409, 'vm_not_stopped', [vm, change({ disk_gb: 60 })]);
  await user.refused(409, 'vm_not_stopped', [vm, change({ instance_type: 't2.small', name: 'x' })]);
  const named = await user.expect(200, vm, change({ name: 'Shop', tags: 'blog,production' }));
  assert.deepEqual([named.name, named.tags, named.state], ['Shop', 'blog,production', 'running']);
  await post('/stop');
  await user.refused(400, 'invalid_request', [vm, change({ disk_gb: 29 })]);
  await user.refused(400, 'invalid_request', [vm, change({ disk: 60 })]);
  const { price_per_hour } = await user.expect(200, vm);
  const larger = await user.expect(200, vm, change({ instance_type: 't2.small', disk_gb: 60 }));
  assert.deepEqual([larger.memory_mb, larger.disk_gb, larger.internal_name], [2048, 60, 'shop.internal']);
  assert.ok(larger.price_per_hour > price_per_hour);
  // Killed right after the answer.
  await cloud.crash();
  await cloud.start();
  user = (await CheckedClient.open(cloud.api)).as(user.key);
  const then = figuresOf(await inGuest(FIGURES));
  assert.ok(then.diskGb > 55 && then.memoryMb > 1024, JSON.stringify(then));
  assert.equal(then.note, 'kept');
  await post('/stop');
  const entries = await user.expect(200, '/api/audit');
  const details = entries
    .filter(({ action }: { action: string }) => action === 'changeVm')
    .map(({ detail }: { detail: object }) => JSON.stringify(detail));
  assert.ok(
    details.some((text: string) => text.includes('"disk_gb":60')),
    details.join(),
  );
});

test('a guest finds its disk as it was when the snapshot was made', { skip }, async () => {
  const made = await user.expect(201, `${vm}/snapshots`, { json: { name: 'kept' } });
  assert.ok(made.size > 2 ** 20, `${made.size} bytes`);
  // It contains the written data, not 60 GB.
  assert.ok(made.size < 2 ** 30, `${made.size} bytes`);
  await inGuest('rm ~/note; echo other >~/other; sync');
  const snapshot = `${vm}/snapshots/${made.snapshot_id}`;
  const refused = await user.refused(409, 'vm_not_stopped', [`${snapshot}/restore`, { method: 'POST' }]);
  assert.match(refused.detail, /stopped.*running/);
  await post('/stop?force=true');
  assert.equal((await post(`/snapshots/${made.snapshot_id}/restore`)).state, 'stopped');
  assert.equal(await inGuest('cat ~/note; ls ~ | grep -c other || true'), 'kept\n0\n');
  await post('/stop');
  assert.deepEqual(
    (await user.expect(200, `${vm}/snapshots`)).map(({ available }: { available: boolean }) => available),
    [true],
  );
  await user.expect(200, snapshot, { method: 'DELETE' });
  await user.refused(404, 'snapshot_not_found', [snapshot, { method: 'DELETE' }]);
});
