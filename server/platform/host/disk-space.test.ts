import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../../scripts/installed.ts';
import { Alarms } from '../alarms.ts';
import { FakeClock } from '../clock.ts';
import { type AppError, isAppError } from '../errors.ts';
import { DiskSpace } from './disk-space.ts';

const MIB = 2 ** 20;
const DISK_BYTES = 64 * MIB;

const isFull = (error: unknown) => isAppError(error, 'out_of_space');

/** Writes until the disk has no free block. */
function fillUp(path: string): void {
  for (const size of [MIB, 4096]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
  }
}

interface Disk {
  readonly name: string;
  mount(directory: string): void;
}

const DISKS: readonly Disk[] = [
  {
    name: 'tmpfs',
    mount: (directory) =>
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', directory], {
        stdio: 'pipe',
      }),
  },
  {
    name: 'ext4',
    mount: (directory) => {
      const image = `${directory}.img`;
      writeFileSync(image, '');
      truncateSync(image, DISK_BYTES);
      execFileSync('mkfs.ext4', ['-q', '-m', '0', image], { stdio: 'pipe' });
      const device = execFileSync('losetup', ['--find', '--show', image], { encoding: 'utf8' }).trim();
      try {
        // An earlier user of the device may have left it read-only: the flag outlives its file.
        execFileSync('blockdev', ['--setrw', device], { stdio: 'pipe' });
        execFileSync('mount', [device, directory], { stdio: 'pipe' });
      } finally {
        // Detaches it now, or when it is unmounted.
        execFileSync('losetup', ['--detach', device], { stdio: 'pipe' });
      }
    },
  },
];

for (const disk of DISKS) {
  describe(`disk space on ${disk.name} of 64 MiB`, () => {
    const parent = mkdtempSync(join(tmpdir(), 'disk-space-'));
    const mountPoint = join(parent, 'disk');
    let mounted = false;
    let count = 0;

    before(() => {
      mkdirSync(mountPoint);
      try {
        disk.mount(mountPoint);
        mounted = true;
      } catch {
        // Not root, or a container without mounts: each test reports it.
      }
    });
    after(() => {
      if (mounted) execFileSync('umount', [mountPoint]);
      rmSync(parent, { recursive: true });
    });

    /** The disk space of its own directory; its contents are removed at the end of the test. */
    function diskTest(
      name: string,
      work: (
        diskSpace: DiskSpace,
        at: { directory: string; clock: FakeClock; alarms: Alarms },
      ) => Promise<void>,
    ): void {
      test(name, async (t) => {
        if (!mounted)
          return t.skip(notInstalled('mount', 'mkfs.ext4') || `cannot mount ${disk.name} here (needs root)`);
        const directory = join(mountPoint, `space-${count++}`);
        mkdirSync(directory);
        const clock = new FakeClock();
        const alarms = new Alarms(clock);
        const diskSpace = new DiskSpace({ clock, alarms, directory });
        try {
          await diskSpace.start();
          await work(diskSpace, { directory, clock, alarms });
        } finally {
          await diskSpace.stop();
          rmSync(directory, { recursive: true });
        }
      });
    }

    diskTest('what is available is what statfs says, less the headroom', async (diskSpace, { directory }) => {
      await diskSpace.refresh();
      const { bavail, blocks, bsize } = statfsSync(directory);
      assert.equal(diskSpace.headroomBytes(), Math.floor((blocks * bsize) / 16));
      assert.equal(diskSpace.availableBytes(), bavail * bsize - diskSpace.headroomBytes());
      assert.equal(diskSpace.ageMs(), 0);
    });

    diskTest(
      'admits what fits, counts it before the disk shows it, refuses the rest with a hint',
      async (diskSpace) => {
        const available = diskSpace.availableBytes();
        diskSpace.assertSpace(available - MIB);
        assert.throws(
          () => diskSpace.assertSpace(2 * MIB),
          (error: AppError) => isFull(error) && error.hint !== undefined && !/\d/.test(error.message),
        );
        diskSpace.assertSpace(MIB);
        assert.throws(() => diskSpace.assertSpace(1), isFull);
        await diskSpace.refresh(); // nothing was written after all
        await diskSpace.refresh();
        assert.equal(diskSpace.availableBytes(), available);
      },
    );

    diskTest('machines leave twice the headroom for everything else', async (diskSpace, at) => {
      const kept = 2 * diskSpace.headroomBytes();
      const most = diskSpace.availableBytes() + diskSpace.headroomBytes() - kept;
      assert.equal(diskSpace.machineRoom(), 'ample');
      assert.throws(() => diskSpace.assertMachineMayGrow(most + MIB), isFull);
      diskSpace.assertMachineMayGrow(most - kept / 4);
      assert.equal(diskSpace.machineRoom(), 'tight');
      diskSpace.assertMachineMayGrow(kept / 4 - 4096);
      assert.throws(
        () => diskSpace.assertMachineMayGrow(MIB),
        (error: AppError) =>
          isFull(error) && /may not use the remaining space/.test(error.message) && !/\d/.test(error.message),
      );
      // Everything else continues, and then machines have less than their part.
      diskSpace.assertSpace(MIB);
      assert.equal(diskSpace.machineRoom(), 'scarce');
      at.alarms.raise('metadata_write_failed', 'as scripted', '');
      assert.throws(() => diskSpace.assertMachineMayGrow(0), isFull);
      await diskSpace.refresh();
      await diskSpace.refresh();
      assert.equal(diskSpace.machineRoom(), 'ample');
    });

    diskTest(
      'an alarm says that uploads are refused, and for a while after the last one',
      async (diskSpace, at) => {
        const codes = () => at.alarms.list().map(({ code }) => code);
        assert.deepEqual(codes(), []);
        assert.throws(() => diskSpace.assertSpace(diskSpace.availableBytes() + 1), isFull);
        assert.deepEqual(codes(), ['out_of_space']);
        await diskSpace.refresh();
        assert.deepEqual(codes(), ['out_of_space'], 'the next upload of that size is refused as well');
        at.clock.advance(60_000);
        await diskSpace.refresh();
        assert.deepEqual(codes(), []);
        fillUp(join(at.directory, 'filler'));
        await diskSpace.refresh();
        assert.deepEqual(codes(), ['out_of_space'], 'before anyone was refused');
        at.clock.advance(60_000);
        await diskSpace.refresh();
        assert.deepEqual(codes(), ['out_of_space']);
        rmSync(join(at.directory, 'filler'));
        await diskSpace.refresh();
        assert.deepEqual(codes(), []);
      },
    );

    diskTest('what others write is seen at the next refresh', async (diskSpace, { directory }) => {
      const before = diskSpace.availableBytes();
      writeFileSync(join(directory, 'other'), Buffer.alloc(10 * MIB));
      await diskSpace.refresh();
      await diskSpace.refresh();
      assert.ok(Math.abs(before - diskSpace.availableBytes() - 10 * MIB) < MIB / 4);
    });

    diskTest('refreshes by itself at least once a second', async (diskSpace, { directory }) => {
      const before = diskSpace.availableBytes();
      writeFileSync(join(directory, 'other'), Buffer.alloc(10 * MIB));
      await new Promise((resolve) => setTimeout(resolve, 1000));
      assert.ok(before - diskSpace.availableBytes() > 9 * MIB);
    });

    diskTest(
      'a hold keeps its diskSpace through every refresh until it is taken or released',
      async (diskSpace) => {
        const available = diskSpace.availableBytes();
        const hold = diskSpace.hold(20 * MIB);
        await diskSpace.refresh();
        assert.equal(diskSpace.availableBytes(), available - 20 * MIB);
        assert.throws(() => diskSpace.hold(available), isFull);
        hold.take(5 * MIB);
        assert.equal(diskSpace.availableBytes(), available - 20 * MIB);
        hold.release();
        hold.release();
        assert.equal(diskSpace.availableBytes(), available - 5 * MIB);
        hold.take(MIB); // above the promise: admitted like any other
        assert.equal(diskSpace.availableBytes(), available - 6 * MIB);
      },
    );

    diskTest(
      'the reserve is real blocks: at 0 free bytes releasing it makes writing possible',
      async (diskSpace, { directory, clock }) => {
        const reserve = join(directory, 'reserve');
        assert.ok(diskSpace.hasReserve());
        assert.ok(statSync(reserve).blocks * 512 >= 3 * MIB);
        fillUp(join(directory, 'filler'));
        assert.throws(() => writeFileSync(join(directory, 'commit'), Buffer.alloc(64 * 1024)), /ENOSPC/);
        assert.equal(await diskSpace.releaseReserve(), true);
        assert.equal(await diskSpace.releaseReserve(), false);
        writeFileSync(join(directory, 'commit'), Buffer.alloc(64 * 1024));
        await diskSpace.refresh();
        assert.throws(() => diskSpace.assertSpace(1), isFull, 'the freed blocks are not for uploads');

        clock.advance(60_000);
        await diskSpace.refresh();
        assert.ok(!diskSpace.hasReserve(), 'there is no space for it yet');
        rmSync(join(directory, 'filler'));
        await diskSpace.refresh();
        await diskSpace.refresh();
        assert.ok(diskSpace.hasReserve() && existsSync(reserve));
        diskSpace.assertSpace(MIB);
      },
    );

    diskTest(
      'who writes without asking is stopped below the headroom, and before the reserve goes',
      async (diskSpace, { directory }) => {
        assert.ok(!diskSpace.isLow());
        fillUp(join(directory, 'filler'));
        await diskSpace.refresh();
        assert.deepEqual([diskSpace.isLow(), diskSpace.isOut()], [true, false]);
        const seen: boolean[] = [];
        diskSpace.beforeRelease(async () => void seen.push(existsSync(join(directory, 'reserve'))));
        // Two commits that find a full disk at the same time: both may be retried.
        assert.deepEqual(await Promise.all([diskSpace.releaseReserve(), diskSpace.releaseReserve()]), [
          true,
          true,
        ]);
        assert.deepEqual(seen, [true]);
        await diskSpace.refresh();
        assert.deepEqual([diskSpace.isLow(), diskSpace.isOut()], [true, true]);
        rmSync(join(directory, 'filler'));
        await diskSpace.refresh();
        assert.deepEqual([diskSpace.isLow(), diskSpace.isOut()], [false, false]);
        // Promised bytes that are not written yet remain available.
        const hold = diskSpace.hold(diskSpace.availableBytes());
        assert.ok(!diskSpace.isLow());
        hold.release();
      },
    );

    diskTest('the reserve is not made again the moment it was released', async (diskSpace, { clock }) => {
      await diskSpace.releaseReserve();
      await diskSpace.refresh();
      await diskSpace.refresh();
      assert.ok(!diskSpace.hasReserve());
      clock.advance(6000);
      await diskSpace.refresh();
      assert.ok(diskSpace.hasReserve());
    });

    diskTest('a hollow reserve left by a crash is made anew', async (diskSpace, { directory, clock }) => {
      await diskSpace.stop();
      const reserve = join(directory, 'reserve');
      rmSync(reserve);
      writeFileSync(reserve, '');
      truncateSync(reserve, 8 * MIB);
      const next = new DiskSpace({ clock, alarms: new Alarms(clock), directory });
      await next.start();
      await next.stop();
      assert.ok(statSync(reserve).blocks * 512 >= 3 * MIB);
    });
  });
}

test('on a disk of usual size the headroom is 64 MiB and the reserve 32 MiB', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'disk-space-'));
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize < 2 ** 30) return t.skip('less than 1 GiB free here');
  const clock = new FakeClock();
  const diskSpace = new DiskSpace({ clock, alarms: new Alarms(clock), directory });
  await diskSpace.start();
  assert.equal(diskSpace.headroomBytes(), 64 * MIB);
  assert.equal(statSync(join(directory, 'reserve')).size, 32 * MIB);
  await diskSpace.stop();
  rmSync(directory, { recursive: true });
});

test('a directory that is not there fails the start', async () => {
  const clock = new FakeClock();
  const diskSpace = new DiskSpace({ clock, alarms: new Alarms(clock), directory: '/nonexistent/directory' });
  await assert.rejects(diskSpace.start(), /ENOENT/);
});
