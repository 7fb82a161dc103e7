/** Hosts that have their programs in other directories than Debian, or lack some of them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { helloDisk, settled, upload } from './images-kit.ts';
import { cannotRunGuests, guestPids, newVm, removeAll, sshBanner } from './vms-kit.ts';

const namespaces = process.getuid?.() === 0 && spawnSync('unshare', ['--mount', 'true']).status === 0;
const noMounts = namespaces ? notInstalled('mount', 'ip', 'nft') : 'moving programs needs mount namespaces';
const skip = cannotRunGuests() || noMounts;
const TAKEN = ['bash', 'setpriv', 'unshare', 'qemu-system-x86_64', 'qemu-img', 'ip', 'nft'];

/** For a shell as root, in its own mounts: binds each program to its new path, and hides the old one. */
const MOVE = `root=$1; shift
while [ "$1" != -- ]; do
  : >"$root/sw/bin/$2"
  mount --bind "$1" "$root/sw/bin/$2" && mount --bind "$root/nothing" "$1" || exit
  shift 2
done
shift
exec "$@"`;

interface Moved {
  readonly cloud: CloudProcess;
  readonly user: CheckedClient;
}

/** A cloud on a host that has these programs, by path and new name, only in its own folder. */
async function cloudWhereMoved(
  t: TestContext,
  programs: readonly (readonly [path: string, name: string])[],
  PATH?: string,
): Promise<Moved> {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-moved-'));
  // QEMU looks for its firmware beside its own folder.
  spawnSync('sh', ['-c', 'mkdir -p "$0/sw/bin"; ln -s /usr/share /usr/lib "$0/sw"; chmod 755 "$0"', root]);
  writeFileSync(join(root, 'nothing'), '', { mode: 0o644 });
  const wrapper = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', MOVE, 'sh'];
  const env = { PATH: PATH ?? `${process.env.PATH}:${join(root, 'sw/bin')}` };
  const cloud = await CloudProcess.start({ wrapper: [...wrapper, root, ...programs.flat(), '--'], env });
  t.after(async () => {
    await cloud.stop();
    rmSync(root, { recursive: true });
  });
  const anyone = await CheckedClient.open(cloud.api);
  return { cloud, user: anyone.as((await anyone.register()).api_key) };
}

function pathOf(program: string): string {
  return realpathSync(spawnSync('which', [program], { encoding: 'utf8' }).stdout.trim());
}

const start = (vm: string) => [`${vm}/start`, { method: 'POST' }] as [string, { method: string }];

test('programs that are on the PATH only, as on NixOS: machines start, images are taken in', {
  skip,
}, async (t) => {
  const { cloud, user } = await cloudWhereMoved(
    t,
    TAKEN.map((name) => [pathOf(name), name] as const),
  );
  const vm = await newVm(user);
  const { vm_id, ip_address } = await user.expect(200, ...start(vm));
  assert.equal(guestPids(vm_id).length, 1);
  assert.match(await sshBanner(ip_address), /^SSH-2\.0-/);
  await removeAll(user);
  const admin = (await CheckedClient.open(cloud.api)).as(ADMIN_KEY);
  const { image_id } = await upload(admin, helloDisk(), { name: 'hello' });
  assert.equal((await settled(admin, image_id)).state, 'ready');
});

test("RHEL's QEMU, under another name: machines start", { skip }, async (t) => {
  const qemu = [pathOf('qemu-system-x86_64'), 'qemu-kvm'] as const;
  const { user } = await cloudWhereMoved(t, [qemu]);
  const vm = await newVm(user);
  const { ip_address } = await user.expect(200, ...start(vm));
  assert.match(await sshBanner(ip_address), /^SSH-2\.0-/);
  await removeAll(user);
});

test('a program that is missing is named, with its package', { skip }, async (t) => {
  const { user } = await cloudWhereMoved(t, [[pathOf('bash'), 'bash']], process.env.PATH);
  const vm = await newVm(user);
  const { detail, hint } = await user.refused(503, 'engine_unavailable', start(vm));
  assert.match(detail, /^bash is not installed on this host/);
  assert.match(hint, /apt-get install bash$/);
  await removeAll(user);
});

test('a QEMU that is too old: status and the refusal of a start say so', { skip }, async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-old-'));
  const old = join(root, 'qemu');
  const script = '#!/bin/sh\necho "QEMU emulator version 5.2.0 (Debian 1:5.2+dfsg-11)"\n';
  writeFileSync(old, script, { mode: 0o755 });
  const bind = 'mount --bind "$0" "$1" && shift && exec "$@"';
  const inside = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', bind, old];
  const cloud = await CloudProcess.start({ wrapper: [...inside, pathOf('qemu-system-x86_64')] });
  t.after(async () => {
    await cloud.stop();
    rmSync(root, { recursive: true });
  });
  const anyone = await CheckedClient.open(cloud.api);
  const user = anyone.as((await anyone.register()).api_key);
  const vm = await newVm(user);
  const { detail, hint } = await user.refused(503, 'engine_unavailable', start(vm));
  assert.match(detail, /^QEMU 5\.2\.0 of this host is too old: .* 6\.1 or newer$/);
  assert.match(hint, /newer QEMU/);
  const { components } = await user.expect(200, '/api/system/status');
  assert.deepEqual([components.compute.status, components.compute.problem], ['unavailable', detail]);
  await removeAll(user);
});
