/** Copies of disks where the file system of the copies is full. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { notInstalled } from '../../../../scripts/installed.ts';
import { systemClock } from '../../../platform/clock.ts';
import { newId } from '../../../platform/ids.ts';
import { FILES } from '../arguments.ts';
import { GuestFolders } from '../guests/guest-folders.ts';
import { DiskSnapshots } from './disk-snapshots.ts';

const isRoot = process.getuid?.() === 0;
const needsRoot = { skip: isRoot ? notInstalled('mount', 'qemu-img') : 'mounting a file system needs root' };
const MIB = 2 ** 20;

test(
  'a copy that finds the disk full says so, leaves no file, and closes no file of others',
  needsRoot,
  async () => {
    const root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-snapshots-'));
    const folders = new GuestFolders(root, null);
    const vmId = newId('vm', systemClock);
    const content = randomBytes(9 * MIB);
    await folders.create({ vmId, uuid: 'x', boot: 'disk', diskFormat: 'raw' }, async (folder) => {
      fs.writeFileSync(join(folder, FILES.rawDisk), content);
    });
    const copies = folders.path(vmId, 'snapshots');
    fs.mkdirSync(copies);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', copies]);
    const snapshots = new DiskSnapshots({
      folders,
      inTurn: (_, work) => work(),
      runs: { find: () => null },
      qemuImg: async () => 'qemu-img',
      // The file system fills while the copy is written.
      assertSpace: () => {},
    });
    try {
      const snapshotId = newId('snp', systemClock);
      await assert.rejects(snapshots.take(vmId, snapshotId), { code: 'out_of_space' });
      // They have the numbers of the files that were just closed.
      const others = [0, 1, 2, 3].map(() => fs.openSync(import.meta.filename, 'r'));
      await sleep(100);
      for (const fd of others) assert.equal(fs.fstatSync(fd).ino, fs.statSync(import.meta.filename).ino);
      for (const fd of others) fs.closeSync(fd);
      const links = fs.readdirSync('/proc/self/fd').map((name) => {
        const path = `/proc/self/fd/${name}`;
        return fs.existsSync(path) ? fs.readlinkSync(path) : '';
      });
      assert.deepEqual(
        links.filter((path) => path.includes(vmId)),
        [],
      );
      assert.deepEqual(fs.readdirSync(copies), []);
      execFileSync('mount', ['-o', 'remount,size=12m', copies]);
      await snapshots.take(vmId, snapshotId);
      assert.ok(fs.readFileSync(join(copies, snapshotId)).equals(content));
    } finally {
      execFileSync('umount', ['-l', copies]);
      fs.rmSync(root, { recursive: true, force: true });
    }
  },
);
