/** An image downloaded by name that is a complete Linux: it boots from its own disk and reads its seed. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { settled } from '../acceptance/images-kit.ts';
import { fetchImage, type Mirror, openMirror } from '../acceptance/images-known-kit.ts';
import { cannotRunGuests, newVm, removeAll } from '../acceptance/vms-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { bootableDisk, cannotMakeDisk } from './debian-image.ts';

const ROOT = join(import.meta.dirname, '../..');
const { cpioArchive } = (await import(join(ROOT, 'scripts/cpio-archive.js'))) as {
  readonly cpioArchive: (entries: readonly object[]) => Buffer;
};
const skip = cannotRunGuests() || cannotMakeDisk();
const GUEST = join(ROOT, 'build/guest');
const ROOT_BYTES = 2 ** 30;
const folder = fs.mkdtempSync(join(tmpdir(), 'cloudlet-by-name-'));
let cloud: CloudProcess;
let mirror: Mirror;
let admin: CheckedClient;
let user: CheckedClient;
before(async () => {
  if (skip) return;
  mirror = await openMirror();
  cloud = await CloudProcess.start({ env: { CLOUDLET_IMAGE_MIRROR: mirror.base } });
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  user = admin.as((await admin.register()).api_key);
});
after(async () => {
  if (!skip) {
    mirror.close();
    await removeAll(user);
    await cloud.stop();
  }
  fs.rmSync(folder, { recursive: true, force: true });
});

/** The built-in guest with a boot loader, as qcow2: its own disk is the second partition. */
function linuxImage(): Buffer {
  const boot = join(folder, 'root/boot');
  fs.mkdirSync(boot, { recursive: true });
  fs.copyFileSync(join(GUEST, 'tiny-kernel'), join(boot, 'vmlinuz-tiny'));
  const init = fs.readFileSync(join(ROOT, 'guest/init'), 'utf8');
  const moved = init.replaceAll('/sys/block/vda', '/sys/class/block/vda').replaceAll(/\bvda\b/g, 'vda2');
  const initrd = fs.readFileSync(join(GUEST, 'tiny-initrd'));
  // A second archive after the first one replaces its files; it starts at a multiple of four.
  const pad = Buffer.alloc((4 - (initrd.length % 4)) % 4);
  const more = cpioArchive([{ path: 'init', type: 'file', mode: 0o755, content: moved }]);
  fs.writeFileSync(join(boot, 'initrd.img-tiny'), Buffer.concat([initrd, pad, more]));
  fs.writeFileSync(join(folder, 'root.img'), '');
  fs.truncateSync(join(folder, 'root.img'), ROOT_BYTES);
  const disk = bootableDisk(folder);
  execFileSync('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', disk, join(folder, 'disk.qcow2')]);
  return fs.readFileSync(join(folder, 'disk.qcow2'));
}

test('a Linux of that name boots, has the name of its machine, and runs its user data', {
  skip,
}, async () => {
  mirror.offer(linuxImage());
  const image = await settled(admin, (await fetchImage(admin)).image_id);
  assert.deepEqual(
    [image.state, image.source_format],
    ['ready', 'qcow2'],
    JSON.stringify(image.state_reason),
  );
  const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)} me`;
  const user_data =
    '#!/bin/sh\necho "user data of $(hostname), $(grep -c vda2 /proc/mounts) disk" >/dev/console\n';
  const vm = await newVm(user, { name: 'trixie', image: 'debian-13', ssh_keys: [key], user_data });
  assert.equal((await user.expect(200, vm)).image, image.image_id);
  await user.expect(200, `${vm}/start`, { method: 'POST' });
  for (const words of ['user data of trixie, 1 disk', 'SSH HOST KEY'])
    await eventually(words, async () => String((await user.call(`${vm}/log`)).body).includes(words));
});
