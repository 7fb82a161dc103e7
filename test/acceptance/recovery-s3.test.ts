/** Recovery points in a bucket of another local Cloudlet, so that no engine but ours is trusted. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { runCloudlet } from '../harness/command.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';
import {
  type KeyPair,
  newKeyPair,
  newS3Bucket,
  policy,
  setPolicy,
  setVersioning,
  startS3,
  statement,
} from './s3-kit.ts';

let other: Awaited<ReturnType<typeof startS3>>;
before(async () => {
  other = await startS3();
});
after(() => other.cloud.stop());

/** The URL of a bucket of the other cloud; without credentials if no key is given. */
function urlOf(bucket: string, keys?: KeyPair): string {
  const { hostname, port } = new URL(other.cloud.data);
  const credentials = keys === undefined ? '' : `${keys.access_key_id}:${keys.secret_access_key}@`;
  return `s3://${credentials}${hostname}:${port}/${bucket}/points/of-a?tls=off`;
}

test('a cloud is lost, and had back from a bucket of another cloud', async () => {
  const bucket = await newS3Bucket(other.s3);
  const keys = await newKeyPair(other.user);
  const lost = await LosableCloud.start({ CLOUDLET_RECOVERY_TARGET: urlOf(bucket, keys) });
  try {
    const bytes = randomBytes(9 * 2 ** 20);
    await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
    const { body: object } = await lost.user.upload('files', 'large', bytes);
    await lost.user.upload('files', 'text', 'to be had back');
    const point = await lost.point();
    assert.equal(point.state, 'complete');
    assert.ok(point.stored_bytes > bytes.length);
    assert.ok(!JSON.stringify(point).includes(keys.secret_access_key));
    const again = await lost.point();
    assert.ok(again.stored_bytes < 2 ** 20, 'the bytes were stored once');
    await lost.keepKey();
    assert.equal(
      (await lost.admin.expect(200, `${POINTS}/${again.point_id}/verify?wait=100`, POST)).state,
      'verified',
    );
    const { drill } = await lost.admin.expect(200, `${POINTS}/latest/drill?wait=200`, POST);
    assert.equal(drill.result, 'passed', JSON.stringify(drill));
    const credentials = join(lost.root, 'credentials');
    writeFileSync(credentials, `${keys.access_key_id}:${keys.secret_access_key}\n`);
    await lost.cloud.crash();
    rmSync(lost.dataDir, { recursive: true });
    const to = join(lost.root, 'again');
    const args = ['--from', urlOf(bucket), '--key-file', lost.keyFile];
    const env = { CLOUDLET_RECOVERY_CREDENTIALS_FILE: credentials };
    const verified = await runCloudlet(['recovery', 'verify', ...args], { env });
    assert.equal(verified.code, 0, verified.stderr);
    const restored = await runCloudlet(['recovery', 'restore', ...args, '--to', to], { env });
    assert.equal(restored.code, 0, restored.stderr);
    await lost.goOn(to);
    assert.ok((await lost.user.download(object.object_id)).equals(bytes));
    assert.equal((await lost.point()).state, 'complete');
  } finally {
    await lost.end();
  }
});

const PREFIX = 'points/of-a/';

async function keysIn(bucket: string): Promise<string[]> {
  const { text } = await other.s3.ok('GET', `/${bucket}`, { query: 'list-type=2' });
  return [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => key.slice(PREFIX.length));
}

async function alarmsOf({ admin }: LosableCloud): Promise<{ code: string; detail: string; fix: string }[]> {
  return (await admin.expect(200, '/api/system/status')).alarms;
}

test('a key without the right to delete: the operator of the bucket removes, and is told what', async () => {
  const bucket = await newS3Bucket(other.s3);
  const guest = await new Client(other.cloud.api).newUser();
  const { canonical_id: id } = (await guest.call('/api/account')).body;
  const rights = { Principal: { AWS: id }, Action: ['s3:GetObject', 's3:PutObject', 's3:ListBucket'] };
  const resources = [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`];
  await setPolicy(other.s3, bucket, policy(statement(bucket, { ...rights, Resource: resources })));
  const target = urlOf(bucket, await newKeyPair(guest));
  const lost = await LosableCloud.start({ CLOUDLET_RECOVERY_TARGET: target });
  try {
    const { admin, user } = lost;
    await user.expect(201, '/api/buckets', { json: { name: 'files' } });
    const { body: object } = await user.upload('files', 'gone later', randomBytes(3 * 2 ** 20));
    const first = await lost.point();
    await user.expect(200, `/api/storage/${object.object_id}`, { method: 'DELETE' });
    const second = await lost.point();
    assert.equal((await admin.expect(200, `${POINTS}/${first.point_id}`)).reclaim, null);
    const path = `${POINTS}/${first.point_id}`;
    const deleted = await admin.expect(200, path, { method: 'DELETE' });
    assert.deepEqual([deleted.state, deleted.reclaim], ['deleting', 'by_operator']);
    const undeleted = await admin.expect(200, `${path}/undelete`, POST);
    assert.deepEqual([undeleted.state, undeleted.reclaim], ['complete', null]);
    await lost.startAgain({ CLOUDLET_RECOVERY_UNDELETE_HOURS: '0' });
    assert.equal(
      (await lost.admin.expect(200, path)).state,
      'complete',
      'the undeletion is in the bucket too',
    );
    await lost.admin.expect(200, path, { method: 'DELETE' });
    const there = await keysIn(bucket);
    const checked = await lost.admin.expect(200, '/api/disaster-recovery/check', POST);
    assert.deepEqual([checked.removed_points, checked.removed_pieces, checked.damaged_points], [[], 0, []]);
    const left = await keysIn(bucket);
    assert.deepEqual(
      there.filter((key) => !left.includes(key)),
      [],
      'nothing is removed',
    );
    assert.equal((await lost.admin.expect(200, path)).reclaim, 'by_operator');
    assert.deepEqual(await alarmsOf(lost), []);
    const { stdout } = await runCloudlet(['recovery', 'removable', '--data-dir', lost.dataDir], { env: {} });
    const files = stdout.trim().split('\n');
    assert.equal(files[0], `points/${first.point_id}`);
    assert.ok(files.some((file) => file.startsWith('pieces/')));
    assert.ok(files.every((file) => left.includes(file) && !file.includes(second.point_id)));
    for (const file of files) await other.s3.ok('DELETE', `/${bucket}/${PREFIX}${file}`);
    const again = await lost.admin.expect(200, '/api/disaster-recovery/check', POST);
    assert.deepEqual([again.removed_points, again.damaged_points], [[first.point_id], []]);
    const verified = await lost.admin.expect(200, `${POINTS}/${second.point_id}/verify?wait=100`, POST);
    assert.equal(verified.state, 'verified');
    assert.deepEqual(
      (await lost.admin.expect(200, '/api/disaster-recovery/removable')).files.filter(isData),
      [],
    );
  } finally {
    await lost.end();
  }
});

const isData = (file: string) => !file.startsWith('writers/');

test('a key that may only append needs a bucket with versions, and keeps every version there', async () => {
  const bucket = await newS3Bucket(other.s3);
  const keys = await newKeyPair(other.user, { scopes: ['storage:append', 'storage:read'] });
  const lost = await LosableCloud.start({
    CLOUDLET_RECOVERY_TARGET: urlOf(bucket, keys),
    CLOUDLET_RECOVERY_UNDELETE_HOURS: '0',
  });
  try {
    const refused = await lost.admin.refused(503, 'target_unavailable', [POINTS, POST]);
    assert.match(refused.detail, /may not replace objects: if the key may only append, enable versioning/);
    const alarm = await eventually('the alarm', async () =>
      (await alarmsOf(lost)).find(({ code }) => code === 'recovery_target_unavailable'),
    );
    assert.match(alarm.detail, /enable versioning/);
    assert.ok(!JSON.stringify([refused, alarm]).includes(keys.secret_access_key));
    await setVersioning(other.s3, bucket, 'Enabled');
    const point = await lost.point();
    assert.equal(point.state, 'complete');
    const { reclaim } = await lost.admin.expect(200, `${POINTS}/${point.point_id}`, { method: 'DELETE' });
    assert.equal(reclaim, 'by_operator');
    const { freed_bytes: freed } = await lost.admin.expect(200, '/api/disaster-recovery/check', POST);
    assert.equal(freed, 0);
    const { text } = await other.s3.ok('GET', `/${bucket}`, { query: 'versions' });
    assert.ok(text.includes(`${PREFIX}points/${point.point_id}`), 'its manifest is an old version');
  } finally {
    await lost.end();
  }
});

test('a bucket of the cloud itself is refused', async () => {
  const port = await freePort();
  const lost = await LosableCloud.start({ CLOUDLET_DATA_PORT: String(port) });
  try {
    const keys = await newKeyPair(lost.user);
    await lost.user.expect(201, '/api/buckets', { json: { name: 'own-points' } });
    const url = `s3://${keys.access_key_id}:${keys.secret_access_key}@127.0.0.1:${port}/own-points?tls=off`;
    await lost.startAgain({ CLOUDLET_RECOVERY_TARGET: url });
    const { detail } = await lost.admin.refused(503, 'target_unavailable', [POINTS, POST]);
    assert.match(detail, /the bucket belongs to this cloud, and would be lost with it/);
  } finally {
    await lost.end();
  }
});

const DAY_MS = 86_400_000;

/** Days until the locks of the files in a folder of the target end, by their names. */
async function locksIn(bucket: string, folder: string): Promise<Map<string, number>> {
  const days = new Map<string, number>();
  for (const key of (await keysIn(bucket)).filter((each) => each.startsWith(folder))) {
    const { headers } = await other.s3.ok('HEAD', `/${bucket}/${PREFIX}${key}`);
    const until = Date.parse(String(headers['x-amz-object-lock-retain-until-date']));
    days.set(key, (until - Date.now()) / DAY_MS);
  }
  return days;
}

test('object lock: nobody removes a point for some days, and shared pieces are locked anew', async () => {
  const bucket = await newS3Bucket(other.s3);
  const keys = await newKeyPair(other.user);
  const lockFor = (days: number) => ({ CLOUDLET_RECOVERY_LOCK_DAYS: String(days) });
  const lost = await LosableCloud.start({ CLOUDLET_RECOVERY_TARGET: urlOf(bucket, keys), ...lockFor(10) });
  try {
    const { detail } = await lost.admin.refused(503, 'target_unavailable', [POINTS, POST]);
    assert.match(detail, /CLOUDLET_RECOVERY_LOCK_DAYS needs object lock in the bucket/);
    await setVersioning(other.s3, bucket, 'Enabled');
    const body =
      '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>';
    await other.s3.ok('PUT', `/${bucket}`, { query: 'object-lock', body });
    await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
    await lost.user.upload('files', 'shared', randomBytes(2 ** 20));
    const { point_id: first } = await lost.point();
    for (const [folder, least] of [
      ['pieces/', 15],
      ['repository.json', 15],
      ['points/', 9.9],
    ] as const) {
      const locks = [...(await locksIn(bucket, folder)).values()];
      assert.ok(locks.length > 0 && locks.every((days) => days >= least), `${folder} ${locks}`);
    }
    const before = await locksIn(bucket, 'pieces/');
    await lost.point();
    const after = await locksIn(bucket, 'pieces/');
    assert.ok(after.size > before.size);
    assert.ok(
      [...after.values()].every((days) => days < 16.1),
      'each piece is locked once in a while only',
    );
    await lost.startAgain(lockFor(30));
    assert.equal((await lost.point()).state, 'complete');
    const renewed = [...(await locksIn(bucket, 'pieces/'))].filter(([, days]) => days >= 45);
    assert.ok(
      renewed.some(([key]) => before.has(key)),
      'a piece of the first point is locked for longer',
    );
    assert.ok(Number((await locksIn(bucket, 'repository.json')).get('repository.json')) >= 45);
    const { text } = await other.s3.ok('GET', `/${bucket}`, { query: 'versions' });
    const manifest = new RegExp(`points/${first}</Key><VersionId>([^<]+)<`).exec(text)?.[1];
    const path = `/${bucket}/${PREFIX}points/${first}`;
    await other.s3.refused(403, 'AccessDenied', ['DELETE', path, { query: `versionId=${manifest}` }]);
    const { stdout } = await runCloudlet(['doctor', '--data-dir', lost.dataDir], {
      env: { CLOUDLET_RECOVERY_TARGET: urlOf(bucket, keys), ...lockFor(30) },
    });
    assert.match(stdout, /ok +recovery points .*; points are locked for 30 days/);
  } finally {
    await lost.end();
  }
});
