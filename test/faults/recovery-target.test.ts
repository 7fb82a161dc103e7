/** A recovery target that becomes full, read-only, or missing while a point is created. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, statfsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { holdUp, LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;
const CHECK = '/api/disaster-recovery/check';
const skip = noLoopDisk();
let disk: LoopDisk;
let lost: LosableCloud;
before(async () => {
  if (skip) return;
  disk = new LoopDisk(24 * MIB);
  lost = await LosableCloud.start({
    CLOUDLET_RECOVERY_TARGET: disk.mountPoint,
    CLOUDLET_RECOVERY_UNDELETE_HOURS: '0',
  });
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  await lost.user.upload('files', 'small', randomBytes(MIB));
});
after(async () => {
  if (skip) return;
  await lost.end();
  disk.remove();
});

const end = (id: string) =>
  eventually('it has ended', async () => {
    const point = await lost.admin.expect(200, `${POINTS}/${id}`);
    return point.state !== 'creating' && point;
  });

test('full: the point fails and says so; with space again one is made', { skip }, async () => {
  const { point_id: first } = await lost.point();
  const { body } = await lost.user.upload('files', 'large', randomBytes(40 * MIB));
  const failed = await lost.point();
  assert.equal(failed.state, 'failed');
  assert.match(failed.state_reason, /full/);
  // Its uploaded data is removed again: there is space for a smaller point.
  assert.equal((await lost.admin.expect(200, CHECK, POST)).removed_pieces, 0);
  const { bavail, bsize } = statfsSync(disk.mountPoint);
  assert.ok(bavail * bsize > 10 * MIB, `${bavail * bsize} bytes are free`);
  await lost.user.expect(200, `/api/storage/${body.object_id}`, { method: 'DELETE' });
  const made = await lost.point();
  assert.equal(made.state, 'complete', made.state_reason);
  for (const id of [first, made.point_id]) {
    const { state } = await lost.admin.expect(200, `${POINTS}/${id}/verify?wait=100`, POST);
    assert.equal(state, 'verified');
  }
});

test('read-only: points are not made, and those there are verified', { skip }, async () => {
  const [{ point_id: id }] = await lost.admin.expect(200, POINTS);
  execFileSync('mount', ['-o', 'remount,ro', disk.mountPoint]);
  try {
    await lost.admin.refused(503, 'target_unavailable', [POINTS, POST]);
    await lost.admin.refused(503, 'target_unavailable', [`${POINTS}/${id}`, { method: 'DELETE' }]);
    const { state } = await lost.admin.expect(200, `${POINTS}/${id}/verify?wait=100`, POST);
    assert.equal(state, 'verified');
  } finally {
    execFileSync('mount', ['-o', 'remount,rw', disk.mountPoint]);
  }
  assert.equal((await lost.point()).state, 'complete');
});

test('gone in the middle: the point fails, and nothing is taken for it', { skip }, async (t) => {
  await lost.user.upload('files', 'more', randomBytes(2 * MIB));
  let id = '';
  const goOn = await holdUp(lost.dataDir, async () => {
    id = (await lost.admin.expect(201, POINTS, POST)).point_id;
  });
  t.after(goOn);
  execFileSync('umount', ['-l', disk.mountPoint]);
  goOn();
  const { state } = await end(id);
  assert.equal(state, 'failed');
  assert.ok(!readdirSync(disk.mountPoint).includes('points'), 'a manifest lies where the disk was');
  await lost.admin.refused(503, 'target_unavailable', [POINTS, POST]);
  const before = await lost.admin.expect(200, POINTS);
  disk.mount();
  const made = await lost.point();
  assert.equal(made.state, 'complete');
  const checked = await lost.admin.expect(200, CHECK, POST);
  assert.deepEqual(checked.damaged_points, []);
  assert.equal(checked.points, before.length + 1);
  const sound = await lost.admin.expect(200, `${POINTS}/${made.point_id}/verify?wait=100`, POST);
  assert.equal(sound.state, 'verified');
});
