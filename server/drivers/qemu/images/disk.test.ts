import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../../../scripts/installed.ts';
import { isAppError } from '../../../platform/errors.ts';
import { noGuestUsers } from '../../../testing/own-ground.ts';
import { buildQemuFixture, noQemu, testSpec } from '../../../testing/qemu-fixture.ts';
import { FILES } from '../arguments.ts';
import { GuestFolders, guestAddress, SLOTS } from '../guests/guest-folders.ts';
import { lendFile, virtualBytes } from './disk.ts';

let root: string;
before(() => {
  root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-disk-'));
});
after(() => fs.rmSync(root, { recursive: true, force: true }));

test('a new disk has the size that was bought, takes no space and reads all zero', async () => {
  const fixture = buildQemuFixture();
  const hypervisor = fixture.open();
  const spec = testSpec('tiny');
  await hypervisor.prepare(spec);
  const path = join(fixture.deps.vmsDirectory, spec.vmId, 'guest', FILES.rawDisk);
  const { size, blocks } = fs.statSync(path);
  assert.deepEqual([size, blocks], [30 * 1024 ** 3, 0]);
  const fd = fs.openSync(path, 'r');
  for (const at of [0, 1024 ** 3, size - 4096]) {
    const bytes = Buffer.alloc(4096, 1);
    fs.readSync(fd, bytes, 0, bytes.length, at);
    assert.ok(bytes.every((byte) => byte === 0));
  }
  fs.closeSync(fd);
  await hypervisor.discard(spec.vmId);
  assert.deepEqual(fs.readdirSync(fixture.deps.vmsDirectory), []);
  await hypervisor.close();
  await fixture.remove();
});

test('a machine goes as a whole, whatever its guest made in its folder', async () => {
  const fixture = buildQemuFixture();
  const hypervisor = fixture.open();
  const spec = testSpec('tiny');
  await hypervisor.prepare(spec);
  const guest = join(fixture.deps.vmsDirectory, spec.vmId, 'guest');
  const script = `for (1 .. 1500) { mkdir 'folder'; chdir 'folder' or die }`;
  const { uid, gid } = fs.statSync(guest);
  execFileSync('/usr/bin/perl', ['-e', script], { cwd: guest, uid, gid });
  await hypervisor.discard(spec.vmId);
  assert.deepEqual(fs.readdirSync(fixture.deps.vmsDirectory), []);
  await hypervisor.close();
  await fixture.remove();
});

test('a full disk is out_of_space, with nothing left behind', async (t) => {
  const fixture = buildQemuFixture();
  const { vmsDirectory } = fixture.deps;
  fs.mkdirSync(vmsDirectory);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'none', vmsDirectory], { stdio: 'pipe' });
  } catch {
    return t.skip(notInstalled('mount') || 'needs root to mount');
  }
  try {
    const hypervisor = fixture.open();
    const spec = testSpec('tiny');
    await assert.rejects(hypervisor.prepare(spec), (error) => isAppError(error, 'out_of_space'));
    assert.deepEqual(fs.readdirSync(vmsDirectory), []);
    assert.deepEqual(await hypervisor.list(), []);
    await hypervisor.close();
  } finally {
    execFileSync('umount', [vmsDirectory]);
    await fixture.remove();
  }
});

test('an image is read only, never written, and refused when the disk is smaller', {
  skip: noQemu,
}, async () => {
  const fixture = buildQemuFixture();
  const hypervisor = fixture.open();
  const image = join(fixture.deps.imagesDirectory, 'img-test.raw');
  const before = fs.readFileSync(image);
  const spec = fixture.newSpec();
  await hypervisor.prepare(spec);
  const folder = join(fixture.deps.vmsDirectory, spec.vmId, 'guest');
  assert.equal(virtualBytesOf(folder), 30 * 1024 ** 3);
  assert.ok(fs.readFileSync(image).equals(before));
  fs.truncateSync(image, 31 * 1024 ** 3);
  const second = fixture.newSpec();
  await assert.rejects(hypervisor.prepare(second), (error) => isAppError(error, 'invalid_request'));
  assert.ok(!fs.existsSync(join(fixture.deps.vmsDirectory, second.vmId)));
  await hypervisor.close();
  await fixture.remove();
});

function virtualBytesOf(folder: string): number {
  const info = execFileSync('qemu-img', ['info', '-f', 'qcow2', '--output=json', FILES.qcow2Disk], {
    cwd: folder,
  });
  return JSON.parse(info.toString())['virtual-size'];
}

test('an image that needs other files is refused', { skip: noQemu }, () => {
  const make = (name: string, ...more: string[]) => {
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', ...more, name, '1G'], { cwd: root });
    return join(root, name);
  };
  const plain = make('plain.qcow2');
  assert.equal(virtualBytes(plain, 'qcow2'), 1024 ** 3);
  const backed = make('backed.qcow2', '-b', 'plain.qcow2', '-F', 'qcow2');
  const outside = make('outside.qcow2', '-o', 'data_file=data.raw');
  fs.writeFileSync(join(root, 'text.qcow2'), 'no image');
  for (const path of [backed, outside, join(root, 'text.qcow2')]) {
    assert.throws(() => virtualBytes(path, 'qcow2'), /needs other files|damaged/, path);
  }
});

test('a lent file replaces a link in its place and is never written through it', () => {
  const [source, victim, target] = ['source', 'victim', 'target'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  fs.writeFileSync(source, 'kernel', { mode: 0o644 });
  fs.writeFileSync(victim, 'secret');
  fs.symlinkSync(victim, target);
  lendFile(source, target, null);
  assert.ok(fs.lstatSync(target).isFile());
  assert.equal(fs.readFileSync(target, 'utf8'), 'kernel');
  assert.equal(fs.readFileSync(victim, 'utf8'), 'secret');
});

test('a lent file that its guest could not read is its own copy, under its user', (t) => {
  if (noGuestUsers) return t.skip(noGuestUsers);
  const [source, victim, target] = ['own', 'other', 'copy'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  fs.writeFileSync(source, 'kernel', { mode: 0o600 });
  fs.writeFileSync(victim, 'secret');
  fs.symlinkSync(victim, target);
  lendFile(source, target, 600_000_001);
  const stat = fs.lstatSync(target);
  assert.deepEqual([stat.isFile(), stat.uid, stat.gid], [true, 600_000_001, 600_000_001]);
  assert.equal(stat.mode & 0o777, 0o600);
  assert.equal(fs.readFileSync(target, 'utf8'), 'kernel');
  assert.deepEqual([fs.statSync(source).uid, fs.statSync(victim).uid], [0, 0]);
  assert.equal(fs.readFileSync(victim, 'utf8'), 'secret');
});

test('folders: slots differ, are remembered, and what was left unfinished is removed', async () => {
  const vms = join(root, 'vms');
  const folders = new GuestFolders(vms, null);
  const ids = ['1', '2', '3'].map((digit) => `vm-${digit.repeat(26)}`);
  const uuid = '00000000-0000-4000-8000-000000000000';
  for (const vmId of ids) {
    await folders.create({ vmId, uuid, boot: 'disk', diskFormat: 'raw' }, async () => {});
  }
  for (const name of ['.new-', '.gone-'].map((prefix) => `${prefix}vm-${'4'.repeat(26)}`)) {
    fs.mkdirSync(join(vms, name, 'guest'), { recursive: true });
    fs.mkdirSync(join(vms, `${name}.0`));
  }
  const again = new GuestFolders(vms, null);
  await again.swept;
  assert.deepEqual(
    again
      .records()
      .map(({ vmId }) => vmId)
      .sort(),
    ids,
  );
  for (const vmId of ids) assert.deepEqual(again.find(vmId), folders.find(vmId));
  assert.equal(new Set(again.records().map(({ slot }) => slot)).size, 3);
  assert.deepEqual(fs.readdirSync(vms).sort(), ids);
  assert.throws(() => again.path('../etc'));
});

test('folders: a guest is replaced whole, and killed in between it is the old one or the new', async () => {
  const vms = join(root, 'replaced');
  const vmId = `vm-${'7'.repeat(26)}`;
  const uuid = '00000000-0000-4000-8000-000000000000';
  const folders = new GuestFolders(vms, null);
  const put = (text: string) => async (folder: string) => fs.writeFileSync(join(folder, 'disk'), text);
  const old = await folders.create({ vmId, uuid, boot: 'disk', diskFormat: 'raw' }, put('old'));
  const next = { ...old, diskFormat: 'qcow2' as const, rebuilds: 1 };
  const failing = folders.replace(next, () => Promise.reject(new Error('no space')));
  await assert.rejects(failing, /no space/);
  const read = () => fs.readFileSync(join(vms, vmId, 'guest', 'disk'), 'utf8');
  assert.deepEqual([read(), folders.find(vmId), fs.readdirSync(vms)], ['old', old, [vmId]]);
  await folders.replace(next, put('new'));
  assert.deepEqual([read(), folders.find(vmId), fs.readdirSync(vms)], ['new', next, [vmId]]);
  // Killed while the next one was filled: it has no record yet.
  const unfinished = join(vms, `.new-${vmId}`);
  fs.mkdirSync(join(unfinished, 'guest'), { recursive: true });
  fs.writeFileSync(join(unfinished, 'guest', 'disk'), 'half');
  const early = new GuestFolders(vms, null);
  await early.swept;
  assert.deepEqual([read(), early.find(vmId), fs.readdirSync(vms)], ['new', next, [vmId]]);
  // Killed between the two renames.
  fs.mkdirSync(join(unfinished, 'guest'), { recursive: true });
  fs.writeFileSync(join(unfinished, 'guest', 'disk'), 'third');
  const third = { ...next, rebuilds: 2 };
  fs.writeFileSync(join(unfinished, 'spec.json'), JSON.stringify(third));
  fs.renameSync(join(vms, vmId), join(vms, `.gone-${vmId}`));
  const late = new GuestFolders(vms, null);
  await late.swept;
  assert.deepEqual([read(), late.find(vmId), fs.readdirSync(vms)], ['third', third, [vmId]]);
});

test('no two guests share an address of this host', () => {
  const slots = [0, 1, 255, 256, 65_535, 65_536, SLOTS - 1];
  const addresses = new Set(slots.map(guestAddress));
  for (const address of addresses) assert.match(address, /^127\.(?:9[6-9]|10\d|11[01])\.\d+\.\d+$/);
  assert.equal(addresses.size, slots.length);
});
