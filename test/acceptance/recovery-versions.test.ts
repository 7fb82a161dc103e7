/** A bucket of a recovery point, restored with all its versions, locks and settings. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud } from './recovery-kit.ts';
import {
  anonymously,
  newKeyPair,
  pathOf,
  policy,
  S3Client,
  setPolicy,
  setVersioning,
  statement,
} from './s3-kit.ts';

let lost: LosableCloud;
let user: CheckedClient;
let s3: S3Client;
before(async () => {
  lost = await LosableCloud.start();
  user = lost.user;
  s3 = await clientOf(user);
});
after(() => lost.end());

async function clientOf(who: CheckedClient): Promise<S3Client> {
  return new S3Client(lost.cloud.data, await newKeyPair(who));
}

interface Version {
  readonly name: string;
  readonly version_id: string;
  readonly etag: string;
  readonly created_at: string;
  readonly is_delete_marker: boolean;
  readonly is_latest: boolean;
  readonly size: number;
  readonly metadata: object | null;
  readonly lock?: { readonly mode: string; readonly retain_until: string; readonly legal_hold: boolean };
}

/** The whole history without the ids of its versions. */
async function history(bucket: string): Promise<Omit<Version, 'version_id'>[]> {
  const all: Version[] = await user.expect(200, `/api/buckets/${bucket}/files?include_versions=true`);
  return all.map(({ name, etag, created_at, is_delete_marker, is_latest, size, metadata, lock }) => {
    const kept = { name, etag, created_at, is_delete_marker, is_latest, size, metadata };
    return lock === undefined ? kept : { ...kept, lock };
  });
}

type Put = readonly [body: string | Buffer, headers?: Record<string, string>];

const restore = (bucket: string, json: object, who = user) =>
  who.expect(200, `/api/buckets/${bucket}/restore`, { json: { versions: true, ...json } });
const put = (bucket: string, key: string, [body, headers = {}]: Put) =>
  s3.ok('PUT', pathOf(bucket, key), { body, headers });
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const counters = async (bucket: string) => {
  const { object_count, size, version_count, total_size } = await user.expect(200, `/api/buckets/${bucket}`);
  return { object_count, size, version_count, total_size };
};

test('versions, markers and the null version are back as they were, once', async () => {
  const bucket = 'historied';
  await s3.ok('PUT', `/${bucket}`);
  await put(bucket, 'doc', ['made before versioning', { 'x-amz-tagging': 'state=draft' }]);
  await setVersioning(s3, bucket, 'Enabled');
  await put(bucket, 'doc', ['second', { 'x-amz-meta-by': 'ada' }]);
  await put(bucket, 'doc', [randomBytes(200_000)]);
  await s3.ok('DELETE', pathOf(bucket, 'doc'));
  await put(bucket, 'gone', ['was here']);
  await s3.ok('DELETE', pathOf(bucket, 'gone'));
  for (let i = 0; i < 30; i++) await put(bucket, 'often', [`edition ${i}`]);
  await setVersioning(s3, bucket, 'Suspended');
  await put(bucket, 'often', ['the null version']);
  const before = await history(bucket);
  const { point_id } = await lost.point();
  await user.expect(200, `/api/buckets/${bucket}?force=true`, { method: 'DELETE' });
  const preview = await restore(bucket, { point_id, preview: true });
  assert.deepEqual([preview.objects, preview.markers, preview.refusal], [35, 2, null]);
  await user.refused(404, 'bucket_not_found', [`/api/buckets/${bucket}`]);
  const { size_formatted, ...done } = await restore(bucket, { point_id });
  assert.deepEqual({ ...done, preview: true, size_formatted }, preview);
  assert.deepEqual(await history(bucket), before);
  const status = await s3.ok('GET', `/${bucket}`, { query: 'versioning' });
  assert.match(status.text, /Suspended/);
  const first = await s3.ok('GET', pathOf(bucket, 'doc'), { query: 'versionId=null' });
  assert.equal(first.text, 'made before versioning');
  const tags = await s3.ok('GET', pathOf(bucket, 'doc'), { query: 'tagging&versionId=null' });
  assert.match(tags.text, /<Key>state<\/Key><Value>draft</);
  const counted = await counters(bucket);
  const again = await restore(bucket, { point_id });
  assert.deepEqual([again.objects, again.markers, again.same, again.kept], [0, 0, 37, 0]);
  assert.deepEqual([await history(bucket), await counters(bucket)], [before, counted]);
});

test('what was made since is not mixed with the past', async () => {
  const bucket = 'mixed';
  await s3.ok('PUT', `/${bucket}`);
  await setVersioning(s3, bucket, 'Enabled');
  for (const name of ['deleted', 'other', 'longer', 'shorter']) {
    for (const body of ['one', 'two']) await put(bucket, name, [body]);
  }
  const { point_id } = await lost.point();
  const all: (Version & { id: string })[] = await user.expect(
    200,
    `/api/buckets/${bucket}/files?include_versions=true`,
  );
  const removed = all.filter(({ name, is_latest }) => {
    return name === 'deleted' || name === 'other' || (name === 'shorter' && is_latest);
  });
  for (const { name, version_id } of removed)
    await s3.ok('DELETE', pathOf(bucket, name), { query: `versionId=${version_id}` });
  await put(bucket, 'other', ['of today']);
  await put(bucket, 'longer', ['three']);
  const done = await restore(bucket, { point_id });
  assert.deepEqual([done.objects, done.same, done.kept], [3, 3, 2]);
  const now = await history(bucket);
  const count = (of: string) => now.filter(({ name }) => name === of).length;
  assert.deepEqual(['deleted', 'other', 'longer', 'shorter'].map(count), [2, 1, 3, 2]);
  const into = { point_id, to_bucket: 'unversioned' };
  await user.expect(201, '/api/buckets', { json: { name: 'unversioned' } });
  const at = `/api/buckets/${bucket}/restore`;
  await user.refused(400, 'invalid_request', [at, { json: { ...into, versions: true } }]);
  for (const wrong of [{ name: 'deleted' }, { existing: 'replace' }]) {
    await user.refused(400, 'invalid_request', [at, { json: { point_id, versions: true, ...wrong } }]);
  }
});

test('locks are not weaker, rules remove nothing, and nobody else gets in', async () => {
  const bucket = 'guarded';
  await s3.ok('PUT', `/${bucket}`, { headers: { 'x-amz-bucket-object-lock-enabled': 'true' } });
  const until = inDays(2);
  const lock = { 'x-amz-object-lock-mode': 'COMPLIANCE', 'x-amz-object-lock-retain-until-date': until };
  await put(bucket, 'retained', ['kept', lock]);
  await put(bucket, 'held', ['kept too', { 'x-amz-object-lock-legal-hold': 'ON' }]);
  await put(bucket, 'open', ['for all', { 'x-amz-acl': 'public-read' }]);
  await setPolicy(s3, bucket, policy(statement(bucket, {})));
  const settings = {
    cors: [{ origins: ['https://a.example'], methods: ['GET'] }],
    lifecycle: [{ id: 'all', enabled: true, days: 1 }],
  };
  await user.expect(200, `/api/buckets/${bucket}/settings`, { method: 'PATCH', json: settings });
  assert.equal((await anonymously(lost.cloud.data, 'GET', pathOf(bucket, 'open'))).status, 200);
  const before = await history(bucket);
  const { point_id } = await lost.point();
  const to_bucket = 'guarded-again';
  const done = await restore(bucket, { point_id, to_bucket });
  assert.deepEqual(
    done.left_out.map(({ what }: { what: string }) => what),
    ['lifecycle', 'policy', 'public_access'],
  );
  assert.deepEqual(await history(to_bucket), before);
  const now = await user.expect(200, `/api/buckets/${to_bucket}/settings`);
  assert.deepEqual(
    [now.lifecycle[0].enabled, now.cors[0].origins, now.policy],
    [false, ['https://a.example'], null],
  );
  assert.equal((await anonymously(lost.cloud.data, 'GET', pathOf(to_bucket, 'open'))).status, 403);
  const force = [`/api/buckets/${to_bucket}?force=true`, { method: 'DELETE' }] as const;
  await user.refused(409, 'object_locked', [...force]);
  const all: Version[] = await user.expect(200, `/api/buckets/${to_bucket}/files?include_versions=true`);
  for (const { name, version_id } of all.filter(({ name }) => name !== 'open')) {
    const query = `versionId=${version_id}`;
    const headers = { 'x-amz-bypass-governance-retention': 'true' };
    const path = pathOf(to_bucket, name);
    assert.equal((await s3.call('DELETE', path, { query, headers })).status, 403, name);
  }
  // Single objects keep their locks in a bucket with object lock, and the answer reports lost locks
  // elsewhere.
  const one = { point_id, versions: false, prefix: 'retained' };
  const elsewhere = await restore(bucket, { ...one, to_bucket: 'guarded-alone' });
  assert.deepEqual([elsewhere.objects, elsewhere.left_out], [1, []]);
  assert.equal((await history('guarded-alone'))[0]?.lock?.mode, 'COMPLIANCE');
  await user.expect(201, '/api/buckets', { json: { name: 'plain' } });
  const plain = await restore(bucket, { point_id, versions: false, to_bucket: 'plain' });
  const leftOut = plain.left_out.map(({ what, count }: { what: string; count: number }) => [what, count]);
  assert.deepEqual(leftOut.toSorted(), [
    ['acl', 1],
    ['lock', 2],
  ]);
});

test('another account and a key without the right to share get no more than theirs', async () => {
  const bucket = 'shared';
  await s3.ok('PUT', `/${bucket}`);
  await put(bucket, 'open', ['for all', { 'x-amz-acl': 'public-read' }]);
  const { point_id } = await lost.point();
  const json = { point_id, versions: true, to_bucket: 'shared-again' };
  for (const other of [lost.admin, user.as((await user.register()).api_key)]) {
    await other.refused(404, 'point_not_found', [`/api/buckets/${bucket}/restore`, { json }]);
  }
  const scopes = ['storage:read', 'storage:write'];
  const { api_key } = await user.expect(201, '/api/account/access-keys', {
    json: { name: 'writer', scopes },
  });
  const done = await restore(bucket, { point_id, to_bucket: 'shared-again' }, user.as(api_key));
  assert.equal(done.left_out.find(({ what }: { what: string }) => what === 'acl').count, 1);
  const acl = await s3.ok('GET', pathOf('shared-again', 'open'), { query: 'acl' });
  assert.doesNotMatch(acl.text, /AllUsers/);
});

test('a restore that was killed goes on without doubles', async () => {
  const bucket = 'killed';
  await s3.ok('PUT', `/${bucket}`);
  await setVersioning(s3, bucket, 'Enabled');
  for (let round = 0; round < 40; round++) {
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => put(bucket, `f-${i}`, [randomBytes(round % 2 ? 100 : 20_000)])),
    );
  }
  const before = await history(bucket);
  const { point_id } = await lost.point();
  const to_bucket = 'killed-again';
  const broken = user
    .call(`/api/buckets/${bucket}/restore`, { json: { point_id, versions: true, to_bucket } })
    .catch(() => undefined);
  const versions = async () => (await user.call(`/api/buckets/${to_bucket}`)).body.version_count;
  await eventually('some are there', async () => ((await versions()) > 50 ? true : undefined));
  await lost.cloud.crash();
  await broken;
  await lost.startAgain();
  user = lost.user;
  s3 = new S3Client(lost.cloud.data, s3.pair);
  const there = await versions();
  assert.ok(there > 50 && there < 800, `${there} were there`);
  const done = await restore(bucket, { point_id, to_bucket });
  assert.deepEqual([done.objects, done.same, done.kept], [800 - there, there, 0]);
  assert.deepEqual(await history(to_bucket), before);
  assert.deepEqual(await counters(to_bucket), await counters(bucket));
});
