/** Disks on an added image, disks copied while their machine ends, and disks that no machine uses. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fdatasyncSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { settled, upload } from './images-kit.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';
import { cannotRunGuests, guestPids, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
let lost: LosableCloud;
before(async () => {
  if (!skip) lost = await LosableCloud.start();
});
after(async () => {
  if (skip) return;
  await removeAll(lost.user);
  await lost.end();
});

/** A disk that counts its boots in its second sector, and prints the count on the serial port. */
function countingDisk(): Buffer {
  const disk = Buffer.alloc(1024 * 1024);
  const sector = (work: number) => [0xb8, 0x01, work, 0xb9, 0x02, 0x00, 0xba, 0x80, 0x00, 0xcd, 0x13];
  Buffer.from([
    // xor ax, ax; mov ds, ax; mov es, ax; mov bx, 0x7e00
    ...[0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xc0, 0xbb, 0x00, 0x7e],
    // int 0x13: read; inc byte [0x7e00]; int 0x13: write
    ...[...sector(0x02), 0xfe, 0x06, 0x00, 0x7e, ...sector(0x03)],
    // mov dx, 0x3f8; '#' to al, and out; [0x7e00] + '0' to al, and out; '\n' to al, and out
    ...[0xba, 0xf8, 0x03, 0xb0, 0x23, 0xee, 0xa0, 0x00, 0x7e, 0x04, 0x30, 0xee, 0xb0, 0x0a, 0xee],
    // hlt; jmp to the hlt
    ...[0xf4, 0xeb, 0xfd],
  ]).copy(disk);
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}

async function started(vm: string, count: number): Promise<void> {
  await lost.user.expect(200, `${vm}/start`, POST);
  await eventually(`it says that it started ${count} times`, async () => {
    return (await (await lost.user.fetch(`${vm}/log`)).text()).includes(`#${count}`);
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function powerOff(vm: string): Promise<unknown> {
  return lost.user.expect(200, `${vm}/stop?force=true`, POST);
}

test('what was written over an image comes back, with the image', { skip }, async () => {
  const { image_id: image } = await upload(lost.admin, countingDisk(), { name: 'counts' });
  assert.equal((await settled(lost.admin, image)).state, 'ready');
  const running = await newVm(lost.user, { name: 'running', image });
  const stopped = await newVm(lost.user, { name: 'stopped', image });
  await Promise.all([running, stopped].map((vm) => started(vm, 1)));
  await powerOff(stopped);
  const point = await lost.point();
  assert.deepEqual([point.state, point.gaps], ['complete', []]);
  assert.equal(point.verified_at, null);
  const verified = await lost.admin.expect(200, `${POINTS}/${point.point_id}/verify?wait=100`, POST);
  assert.equal(verified.state, 'verified');
  assert.ok(
    Date.parse(`${verified.verified_at}Z`) >= Date.parse(`${point.completed_at}Z`),
    verified.verified_at,
  );
  const from = { vm_id: running.split('/').at(-1), point_id: point.point_id };
  const copied = await newVm(lost.user, { name: 'copied', from });
  await started(copied, 2);
  await powerOff(copied);
  await lost.user.expect(200, copied, { method: 'DELETE' });
  await lost.keepKey();
  await powerOff(running);
  await lost.lose();
  const goesOn = async (vm: string) => {
    await eventually('it is stopped', async () => (await lost.user.expect(200, vm)).state === 'stopped');
    await started(vm, 2);
    await powerOff(vm);
  };
  await Promise.all([running, stopped].map(goesOn));
});

test('machines that end while they are copied do not end the point', { skip }, async () => {
  const image = (await lost.admin.expect(200, '/api/images')).find(
    ({ name }: { name: string }) => name === 'counts',
  ).image_id;
  const idOf = (vm: string) => vm.split('/').at(-1) ?? '';
  const ends: ((vm: string) => Promise<unknown>)[] = [
    powerOff,
    async (vm) => {
      await powerOff(vm);
      await lost.user.expect(200, vm, { method: 'DELETE' });
    },
    async (vm) => {
      for (const pid of guestPids(idOf(vm))) process.kill(pid, 'SIGKILL');
    },
  ];
  for (let round = 0; round < 3; round++) {
    const vms = await Promise.all(ends.map(() => newVm(lost.user, { name: 'ends', image })));
    await Promise.all(vms.map((vm) => started(vm, 1)));
    const { point_id: id } = await lost.admin.expect(201, POINTS, POST);
    const endOne = async (vm: string, end: (vm: string) => Promise<unknown>) => {
      // While the keys, the metadata and the objects are read, or while its disk is.
      const folder = join(lost.dataDir, 'vms', idOf(vm), 'guest');
      if (round > 0) {
        await eventually('its disk is copied, or was', async () => {
          const { state } = await lost.admin.expect(200, `${POINTS}/${id}`);
          return namesIn(folder).includes('point.img') || state !== 'creating';
        });
      }
      await end(vm);
    };
    await Promise.all(vms.map((vm, i) => endOne(vm, ends[i] ?? assert.fail())));
    const point = await eventually('the point has ended', async () => {
      const found = await lost.admin.expect(200, `${POINTS}/${id}`);
      return found.state !== 'creating' && found;
    });
    assert.equal(point.state, point.gaps.length === 0 ? 'complete' : 'partial');
    for (const { component } of point.gaps) assert.match(component, /^machine ends /);
    const { state } = await lost.admin.expect(200, `${POINTS}/${id}/verify?wait=100`, POST);
    assert.equal(state, point.gaps.length === 0 ? 'verified' : 'partial');
    await removeAll(lost.user);
  }
});

/** Bytes read by the cloud's process so far, from any source. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${lost.cloud.pid}/io`, 'utf8'))?.[1]);
}

function write(file: string, bytes: Uint8Array, at: number): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, bytes, 0, bytes.length, at);
  fdatasyncSync(fd);
  closeSync(fd);
}

const LONG_AGO = 1_000_000_000;

function beginningOf(file: string, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const fd = openSync(file, 'r');
  assert.equal(readSync(fd, bytes), length);
  closeSync(fd);
  return bytes;
}

test('a disk that nobody wrote to is not read again; one whose old time was set is', { skip }, async () => {
  const [vm, other] = [await newVm(lost.user, { name: 'rests' }), await newVm(lost.user, { name: 'too' })];
  const diskIn = (dataDir: string, path: string) => {
    const folder = join(dataDir, 'vms', path.split('/').at(-1) ?? '', 'guest');
    return join(folder, namesIn(folder).find((name) => name.startsWith('disk')) ?? assert.fail());
  };
  const [disk, otherDisk] = [diskIn(lost.dataDir, vm), diskIn(lost.dataDir, other)];
  const length = 64 * 2 ** 20;
  for (const each of [disk, otherDisk]) write(each, randomBytes(length), 0);
  utimesSync(disk, LONG_AGO, LONG_AGO);
  const readByPoint = async () => {
    const before = bytesRead();
    assert.deepEqual((await lost.point()).gaps, []);
    return bytesRead() - before;
  };
  assert.ok((await readByPoint()) > 2 * length);
  // Not immediately: two changes in one tick of the clock look like one.
  await eventually('they are not read', async () => (await readByPoint()) < length / 2);
  write(disk, Buffer.from('changed'), 12345);
  utimesSync(disk, LONG_AGO, LONG_AGO);
  await eventually('its change is no news', () => Date.now() - statSync(disk).ctimeMs > 3000);
  const read = await readByPoint();
  assert.ok(read > length && read < 1.5 * length, `${read} bytes of one disk`);
  const wanted = [disk, otherDisk].map((file) => beginningOf(file, length));
  await lost.lose();
  const found = [vm, other].map((path) => beginningOf(diskIn(lost.dataDir, path), length));
  assert.ok(found.every((bytes, at) => bytes.equals(wanted[at] ?? Buffer.alloc(0))));
});
