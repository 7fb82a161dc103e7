/** Scheduled recovery points in the data directory leave space for the data. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { POINTS } from '../acceptance/recovery-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { LoopDisk, noLoopDisk } from './loop-disk.ts';

const MIB = 2 ** 20;
const SCHEDULE = '/api/disaster-recovery/schedule';
const skip = noLoopDisk();
let disk: LoopDisk;
let cloud: CloudProcess;
let admin: CheckedClient;
let user: CheckedClient;
before(async () => {
  if (skip) return;
  disk = new LoopDisk(320 * MIB);
  cloud = await CloudProcess.start({ dataDir: join(disk.mountPoint, 'data') });
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  user = admin.as((await admin.register()).api_key);
  await user.expect(201, '/api/buckets', { json: { name: 'files' } });
});
after(async () => {
  if (skip) return;
  await cloud.end();
  disk.remove();
});

const set = (json: object) => admin.expect(200, SCHEDULE, { method: 'PATCH', json });
const freeBytes = () => {
  const { bavail, bsize } = statfsSync(disk.mountPoint);
  return bavail * bsize;
};

test('one that needs more than half of the free space fails, and takes nothing', { skip }, async () => {
  const { body } = await user.upload('files', 'large', randomBytes(120 * MIB));
  const free = freeBytes();
  const schedule = await set({ every: 'daily' });
  assert.equal(schedule.is_default_target, true);
  const failed = await eventually('the point has failed', async () => {
    const found = await admin.expect(200, SCHEDULE);
    return found.failures > 0 && found;
  });
  assert.match(failed.failed_reason, /^The point has more new data than half of the free space, .* MB/);
  assert.ok(failed.next_at > failed.failed_at);
  await eventually('its pieces are removed', () => freeBytes() > free - 8 * MIB);
  const { alarms } = await eventually('the alarm', async () => {
    const status = await admin.expect(200, '/api/system/status');
    return status.alarms.length > 0 && status;
  });
  assert.deepEqual(
    alarms.map(({ code }: { code: string }) => code),
    ['recovery_schedule_failed'],
  );
  assert.equal((await user.upload('files', 'next', randomBytes(20 * MIB))).status, 200);

  await user.expect(200, `/api/storage/${body.object_id}`, { method: 'DELETE' });
  await set({ every: 'daily' });
  await eventually('a smaller one is made', async () => {
    const points = await admin.expect(200, POINTS);
    return points.some(({ state }: { state: string }) => state === 'complete');
  });
  await eventually('the alarm is over', async () => {
    return (await admin.expect(200, '/api/system/status')).alarms.length === 0;
  });
});
