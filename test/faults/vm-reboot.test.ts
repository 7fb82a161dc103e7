/**
 * A reboot of the host under machines: those that were running start automatically. The host is not really
 * rebooted: its guests are killed with Cloudlet, and the new one sees another boot.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { cannotRunGuests, guestPids, NEW_VM, sshBanner } from '../acceptance/vms-kit.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const isAble = process.getuid?.() === 0 && spawnSync('unshare', ['--mount', 'true']).status === 0;
const skip = cannotRunGuests() || (isAble ? false : 'showing another boot needs root and mount namespaces');

/** Runs the given command where the kernel seems to have booted a moment ago. */
function asAfterBoot(directory: string): string[] {
  const [bootId, stat] = [join(directory, 'boot_id'), join(directory, 'stat')];
  writeFileSync(bootId, `${randomUUID()}\n`);
  // In whole seconds, and after everything before.
  const now = Math.ceil(Date.now() / 1000);
  writeFileSync(stat, readFileSync('/proc/stat', 'utf8').replace(/^btime \d+$/m, `btime ${now}`));
  const show =
    'mount --bind "$0" /proc/sys/kernel/random/boot_id && mount --bind "$1" /proc/stat && shift && exec "$@"';
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', show, bootId, stat];
}

test('after a reboot of the host machines that were running run again, others do not', {
  skip,
}, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-reboot-'));
  const dataDir = join(directory, 'data');
  const before = await CloudProcess.start({ dataDir });
  t.after(() => before.crash());
  const { key } = await new Client(before.api).newUser();
  const client = new Client(before.api, key);
  const post = (vmId: string, what: string) => client.call(`/api/vms/${vmId}/${what}`, { method: 'POST' });
  const made = await Promise.all([0, 1, 2].map(() => client.call('/api/vms', { json: NEW_VM })));
  const [running, stopped, created] = made.map(({ body }) => String(body.vm_id));
  assert.ok(running && stopped && created);
  const first = (await post(running, 'start')).body;
  await post(stopped, 'start');
  await post(stopped, 'stop?force=true');
  await before.crash();
  for (const pid of guestPids(running)) process.kill(pid, 'SIGKILL');

  const after = await CloudProcess.start({ dataDir, wrapper: asAfterBoot(directory) });
  t.after(() => after.crash());
  const again = new Client(after.api, key);
  const row = async (vmId: string) => (await again.call(`/api/vms/${vmId}`)).body;
  await eventually('it runs again', async () => {
    const now = await row(running);
    return now.state === 'running' && guestPids(running).length === 1;
  });
  const second = await row(running);
  assert.equal(second.ip_address, first.ip_address);
  assert.ok(second.started_at >= first.started_at);
  assert.equal(guestPids(running).length, 1);
  assert.match(await sshBanner(second.ip_address), /^SSH-2\.0-/);
  assert.deepEqual([(await row(stopped)).state, (await row(created)).state], ['stopped', 'created']);
  assert.deepEqual([...guestPids(stopped), ...guestPids(created)], []);
  for (const vmId of [running, stopped, created]) {
    await again.call(`/api/vms/${vmId}/stop?force=true`, { method: 'POST' });
    assert.equal((await again.call(`/api/vms/${vmId}`, { method: 'DELETE' })).status, 200);
  }
  assert.equal(await after.stop(), 0);
  rmSync(directory, { recursive: true });
});
