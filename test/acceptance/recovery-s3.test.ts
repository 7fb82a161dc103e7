/** Recovery points in a bucket: of another Cloudlet here, so that no engine but ours is trusted either. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runCloudlet } from '../harness/command.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';
import { type KeyPair, newKeyPair, newS3Bucket, startS3 } from './s3-kit.ts';

let other: Awaited<ReturnType<typeof startS3>>;
before(async () => {
  other = await startS3();
});
after(() => other.cloud.stop());

/** The URL of a bucket of the other cloud; without credentials when no key is given. */
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
