/** Images downloaded by name on a full disk: refused or ended with the reason, without remains. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { helloDisk, IMAGES, settled } from '../acceptance/images-kit.ts';
import {
  DEBIAN_PATH,
  DEBIAN_SUMS,
  fetched,
  fetchImage,
  type Mirror,
  openMirror,
  sendPart,
  sumOf,
} from '../acceptance/images-known-kit.ts';
import { cannotRunGuests } from '../acceptance/vms-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;
const skip = noLoopDisk() || cannotRunGuests();
const DISK = Buffer.concat([helloDisk(), Buffer.alloc(63 * MIB)]);

let disk: LoopDisk;
let cloud: CloudProcess;
let admin: CheckedClient;
let mirror: Mirror;
before(async () => {
  if (skip) return;
  mirror = await openMirror();
  disk = new LoopDisk(640 * MIB);
  const env = { CLOUDLET_IMAGE_MIRROR: mirror.base, CLOUDLET_IMAGE_MAX_GB: '4' };
  cloud = await CloudProcess.start({ dataDir: join(disk.mountPoint, 'data'), env });
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
});
after(async () => {
  if (skip) return;
  mirror.close();
  await cloud.stop();
  await eventually('nobody holds the disk', () => {
    try {
      disk.remove();
      return true;
    } catch {
      return false;
    }
  });
});

const kept = () => readdirSync(join(cloud.dataDir, 'images')).filter((name) => name !== '.cloud');
const free = () => {
  const { bavail, bsize } = statfsSync(disk.mountPoint);
  return bavail * bsize;
};

async function assertOutOfSpace(imageId: string): Promise<void> {
  const { state, state_reason: reason } = await settled(admin, imageId);
  assert.deepEqual([state, reason?.code], ['failed', 'out_of_space'], JSON.stringify(reason));
  await eventually('nothing is left of it', () => kept().length === 0);
}

test('one that does not fit is refused before its first byte is stored', { skip }, async () => {
  mirror.offer(DISK);
  const { length } = DISK;
  mirror.set(DEBIAN_PATH, (response) => {
    response.writeHead(200, { 'content-length': 400 * MIB });
    response.write(DISK.subarray(0, length));
  });
  const before = free();
  await assertOutOfSpace((await fetchImage(admin)).image_id);
  assert.ok(before - free() < MIB);
});

test('a disk that fills while one is fetched ends it; the cloud goes on, and so does a fetch afterwards', {
  skip,
}, async () => {
  mirror.set(DEBIAN_SUMS, (response) =>
    response.end(`${sumOf('sha512', DISK)}  debian-13-genericcloud-amd64.qcow2\n`),
  );
  let goOn = () => {};
  mirror.set(DEBIAN_PATH, (response) => {
    let sent = DISK.length / 2;
    sendPart(response, DISK, sent);
    // Progress is reported with a piece that arrives a second later.
    const drip = setInterval(() => response.write(DISK.subarray(sent, ++sent)), 200);
    goOn = () => {
      clearInterval(drip);
      response.end(DISK.subarray(sent));
    };
  });
  const { image_id: id } = await fetchImage(admin);
  await fetched(admin, id, 1);
  const filler = join(disk.mountPoint, 'filler');
  execFileSync('fallocate', ['--length', String(free() - 16 * MIB), filler], { stdio: 'pipe' });
  goOn();
  await assertOutOfSpace(id);
  rmSync(filler);
  await eventually('the cloud sees the space', async () => (await admin.call('/api/buckets')).status === 200);
  await admin.expect(201, '/api/buckets', { json: { name: 'goes-on' } });
  mirror.offer(DISK);
  const again = await eventually('a fetch that has space', async () => {
    const image = await settled(admin, (await fetchImage(admin)).image_id);
    return image.state === 'ready' ? image : null;
  });
  assert.equal(again.sha256, sumOf('sha256', DISK));
  assert.deepEqual(
    (await admin.expect(200, IMAGES)).map(({ state }: { state: string }) => state),
    ['ready'],
  );
});
