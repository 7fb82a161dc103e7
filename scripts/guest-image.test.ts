import assert from 'node:assert/strict';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { whyNoTinyImage } from '../server/drivers/qemu/images/tiny-image.ts';
import { NO_GUEST_IMAGE } from './installed.ts';
import { noApt, useArchive } from './test-archive.ts';

// With a name that tsc cannot follow: it is JavaScript, because an old Node runs it.
const { buildGuestImage, noteNoGuestImage } = await import(new URL('./guest-image.js', import.meta.url).href);
const ROOT = dirname(import.meta.dirname);
const DIRECTORY = mkdtempSync(join(tmpdir(), 'guest-image-'));
const isBuilt = existsSync(join(ROOT, 'build/guest/stamp'));

after(() => rmSync(DIRECTORY, { recursive: true, force: true }));

/** The inputs of the image, and these folders. */
function repository(name: string, ...folders: string[]): string {
  const root = join(DIRECTORY, name);
  mkdirSync(join(root, 'scripts'), { recursive: true });
  for (const folder of folders) cpSync(join(ROOT, folder), join(root, folder), { recursive: true });
  for (const file of ['guest-image.js', 'guest-packages.js', 'cpio-archive.js'])
    copyFileSync(join(ROOT, 'scripts', file), join(root, 'scripts', file));
  return root;
}

// For its behaviour at boot, see test/acceptance/vms-guest.test.ts.
const skip = isBuilt ? false : NO_GUEST_IMAGE;
test('the image is not built again until an input changes', { skip }, () => {
  const root = repository('repository', 'guest', 'build/guest');
  const outsidePath = join(DIRECTORY, 'nowhere');
  assert.equal(buildGuestImage({ root, outsidePath }), false);
  writeFileSync(join(root, 'guest/etc/motd'), 'changed\n');
  assert.throws(() => buildGuestImage({ root, outsidePath }), { message: /was not found/ });
});

const RELEASE = '6.8.0-31-generic';
const KERNEL_MODULES = `lib/modules/${RELEASE}/kernel/drivers`;
/** As in Ubuntu: names, dependencies, and the ones that the image uses. */
const UBUNTU = [
  { name: 'linux-image-virtual', depends: `linux-image-${RELEASE}`, files: {} },
  {
    name: `linux-image-${RELEASE}`,
    depends: `linux-modules-${RELEASE}`,
    files: { [`boot/vmlinuz-${RELEASE}`]: 'a kernel' },
  },
  {
    name: `linux-modules-${RELEASE}`,
    files: {
      [`${KERNEL_MODULES}/net/virtio_net.ko.zst`]: zstdCompressSync('of net\0depends=failover\0'),
      [`${KERNEL_MODULES}/net/failover.ko.zst`]: zstdCompressSync('of failover\0depends=\0'),
    },
  },
  { name: 'busybox-static', files: { 'usr/bin/busybox': '#!/bin/sh\necho bin/ls\n' } },
  { name: 'dropbear-bin', files: { 'usr/sbin/dropbear': 'dropbear', 'usr/bin/dropbearkey': 'key' } },
  { name: 'openssh-sftp-server', files: { 'usr/lib/openssh/sftp-server': 'sftp' } },
  {
    name: 'e2fsprogs',
    files: { 'usr/sbin/mke2fs': 'mke2fs', 'usr/sbin/e2fsck': 'e2fsck', 'usr/sbin/resize2fs': 'resize2fs' },
  },
];

test("the image is made of Ubuntu's kernel, whose modules are packed with zstd", { skip: noApt }, (t) => {
  const root = repository('ubuntu', 'guest');
  useArchive(t, DIRECTORY, UBUNTU);
  assert.equal(buildGuestImage({ root, outsidePath: '/usr/sbin:/usr/bin:/sbin:/bin' }), true);
  const output = join(root, 'build/guest');
  assert.deepEqual(readdirSync(output).sort(), ['stamp', 'tiny-initrd', 'tiny-kernel']);
  assert.equal(readFileSync(join(output, 'tiny-kernel'), 'utf8'), 'a kernel');
  const initrd = readFileSync(join(output, 'tiny-initrd'), 'latin1');
  assert.match(initrd, /lib\/modules\/00-failover\.ko\0+of failover\0/);
  assert.match(initrd, /lib\/modules\/01-virtio_net\.ko\0+of net\0/);
});

test('why there is no image is written down for the server, with the fix and no address of a mirror', () => {
  const root = repository('fedora', 'guest');
  const output = join(root, 'build/guest');
  const tiny = { kernel: join(output, 'tiny-kernel'), initrd: join(output, 'tiny-initrd') };
  assert.match(whyNoTinyImage(tiny)?.fix ?? '', /set-up again/);
  const fail = () => buildGuestImage({ root, outsidePath: DIRECTORY });
  assert.throws(fail, (error) => {
    noteNoGuestImage(root, error);
    return true;
  });
  const why = whyNoTinyImage(tiny);
  assert.match(why?.problem ?? '', /has not been built: apt-cache was not found; .*Debian or Ubuntu$/);
  assert.match(why?.fix ?? '', /^copy the folder build\/guest/);
  noteNoGuestImage(root, { message: 'it failed (Failed to fetch http://mirror.example/x)', fix: 'wait' });
  assert.match(whyNoTinyImage(tiny)?.problem ?? '', /it failed \(Failed to fetch …$/);
  for (const path of Object.values(tiny)) writeFileSync(path, '');
  assert.equal(whyNoTinyImage(tiny), null);
});
