/** Objects of a recovery point, restored by their owner beside the live ones. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { CheckedClient } from '../harness/checked-client.ts';
import { LosableCloud } from './recovery-kit.ts';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

const small = 'a note';
const large = randomBytes(300_000);

/** A bucket with a small and a large object in folders. */
async function filled(user: CheckedClient, name: string, settings: object = {}) {
  await user.expect(201, '/api/buckets', { json: { name, ...settings } });
  await user.upload(name, 'docs/note.txt', small, { metadata: '{"by":"ada"}' });
  const { body } = await user.upload(name, 'docs/large.bin', large);
  await user.upload(name, 'other.txt', 'other');
  return body as { object_id: string; version_id: string; etag: string };
}

const restore = (user: CheckedClient, bucket: string, json: object) =>
  user.expect(200, `/api/buckets/${bucket}/restore`, { json });
/** Live objects by name. */
async function objects(user: CheckedClient, bucket: string) {
  const list = await user.expect(200, `/api/buckets/${bucket}/files`);
  return new Map<string, { id: string; etag: string; metadata: object; size: number }>(
    list.map((entry: { name: string }) => [entry.name, entry]),
  );
}
async function bytes(user: CheckedClient, bucket: string, name: string): Promise<Buffer> {
  const id = (await objects(user, bucket)).get(name)?.id;
  return user.download(String(id));
}

for (const encryption of [false, true]) {
  test(`deleted objects are back, whole, with ${encryption ? '' : 'no '}encryption`, async () => {
    const { user } = lost;
    const bucket = `lost-${encryption}`;
    await filled(user, bucket, { encryption });
    const before = await objects(user, bucket);
    const { point_id } = await lost.point();
    for (const { id } of before.values()) await user.expect(200, `/api/storage/${id}`, { method: 'DELETE' });
    const listed = await user.expect(200, `/api/buckets/${bucket}/points`);
    assert.equal(listed[0].point_id, point_id);
    const preview = await restore(user, bucket, { point_id, prefix: 'docs/', preview: true });
    const counts = {
      objects: 2,
      size: large.length + small.length,
      same: 0,
      kept: 0,
      replaced: 0,
      refused: 0,
    };
    for (const [member, count] of Object.entries(counts)) assert.equal(preview[member], count, member);
    assert.equal(preview.refusal, null);
    assert.equal((await objects(user, bucket)).size, 0);
    const {
      size_formatted,
      preview: _,
      ...done
    } = await restore(user, bucket, { point_id, prefix: 'docs/' });
    assert.deepEqual({ ...done, preview: true, size_formatted }, preview);
    const after = await objects(user, bucket);
    assert.deepEqual([...after.keys()], ['docs/large.bin', 'docs/note.txt']);
    for (const [name, { etag, metadata, size }] of after) {
      const then = before.get(name);
      assert.deepEqual(
        { etag, metadata, size },
        { etag: then?.etag, metadata: then?.metadata, size: then?.size },
      );
    }
    assert.ok((await bytes(user, bucket, 'docs/large.bin')).equals(large));
    assert.equal(String(await bytes(user, bucket, 'docs/note.txt')), small);
    const again = await restore(user, bucket, { point_id });
    assert.deepEqual([again.objects, again.same], [1, 2]);
    assert.equal((await user.expect(200, `/api/buckets/${bucket}`)).version_count, 3);
  });
}

test('a live object of another content is kept, or replaced on demand', async () => {
  const { user } = lost;
  for (const versioning of [true, false]) {
    const bucket = `changed-${versioning}`;
    await filled(user, bucket, { versioning });
    const { point_id } = await lost.point();
    await user.upload(bucket, 'other.txt', 'overwritten');
    const kept = await restore(user, bucket, { point_id, name: 'other.txt' });
    assert.deepEqual([kept.objects, kept.kept], [0, 1]);
    assert.equal(String(await bytes(user, bucket, 'other.txt')), 'overwritten');
    const back = await restore(user, bucket, { point_id, existing: 'replace' });
    assert.deepEqual([back.objects, back.replaced, back.same], [1, 1, 2]);
    assert.equal(String(await bytes(user, bucket, 'other.txt')), 'other');
    const { version_count } = await user.expect(200, `/api/buckets/${bucket}`);
    assert.equal(version_count, versioning ? 5 : 3);
  }
});

test('a bucket is back under another name, and so is one that was deleted', async () => {
  const { user } = lost;
  await filled(user, 'whole', { versioning: true, encryption: true });
  const { point_id } = await lost.point();
  const copied = await restore(user, 'whole', { point_id, to_bucket: 'whole-then' });
  assert.equal(copied.objects, 3);
  const { versioning, encryption, object_count } = await user.expect(200, '/api/buckets/whole-then');
  assert.deepEqual([versioning, encryption, object_count], [true, true, 3]);
  await user.expect(200, '/api/buckets/whole?force=true', { method: 'DELETE' });
  const preview = await restore(user, 'whole', { point_id, preview: true });
  assert.equal(preview.objects, 3);
  await user.refused(404, 'bucket_not_found', ['/api/buckets/whole']);
  assert.equal((await restore(user, 'whole', { point_id })).objects, 3);
  assert.ok((await bytes(user, 'whole', 'docs/large.bin')).equals(large));
});

test('an earlier version is back, and names that are not there are refused', async () => {
  const { user } = lost;
  await user.expect(201, '/api/buckets', { json: { name: 'versions', versioning: true } });
  const { body: first } = await user.upload('versions', 'a', 'first');
  const { body: second } = await user.upload('versions', 'a', 'second');
  await user.expect(200, `/api/storage/${second.object_id}`, { method: 'DELETE' });
  const { point_id } = await lost.point();
  const at = '/api/buckets/versions/restore';
  await user.refused(404, 'object_not_found', [at, { json: { point_id, name: 'a' } }]);
  await user.refused(404, 'object_not_found', [at, { json: { point_id, name: 'b' } }]);
  const none = { point_id, name: 'a', version_id: 'ver-none' };
  await user.refused(404, 'version_not_found', [at, { json: none }]);
  await user.refused(400, 'invalid_request', [at, { json: { point_id, version_id: first.version_id } }]);
  await user.refused(400, 'invalid_request', [at, { json: { point_id, name: 'a', prefix: 'a' } }]);
  await restore(user, 'versions', { point_id, name: 'a', version_id: first.version_id });
  assert.equal(String(await bytes(user, 'versions', 'a')), 'first');
  const [now] = await user.expect(200, '/api/buckets/versions/files?include_versions=true');
  assert.notEqual(now.version_id, first.version_id);
});

test('other accounts, other points and limited keys get nothing', async () => {
  const { user, admin } = lost;
  const early = await lost.point();
  await filled(user, 'mine');
  const { point_id } = await lost.point();
  const stranger = user.as((await user.register()).api_key);
  for (const other of [stranger, admin]) {
    for (const to_bucket of ['mine', 'theirs']) {
      const attempt = { json: { point_id, to_bucket } };
      await other.refused(404, 'point_not_found', ['/api/buckets/mine/restore', attempt]);
    }
  }
  for (const nobodys of ['mine', 'never-there']) {
    await stranger.refused(404, 'bucket_not_found', [`/api/buckets/${nobodys}/points`]);
  }
  for (const wrong of [early.point_id, 'drp-none', '../x']) {
    await user.refused(404, 'point_not_found', ['/api/buckets/mine/restore', { json: { point_id: wrong } }]);
  }
  const limits = [{ name: 'mine', prefix: 'docs/' }];
  const json = { name: 'limited', scopes: ['storage:*'], buckets: limits };
  const limited = user.as((await user.expect(201, '/api/account/access-keys', { json })).api_key);
  const all = ['/api/buckets/mine/restore', { json: { point_id } }] as const;
  await limited.refused(403, 'scope_required', [...all]);
  const elsewhere = { point_id, prefix: 'docs/', to_bucket: 'elsewhere' };
  await limited.refused(404, 'bucket_not_found', ['/api/buckets/mine/restore', { json: elsewhere }]);
  assert.equal((await restore(limited, 'mine', { point_id, prefix: 'docs/' })).same, 2);
});

test('a quota is told by the preview, and ends the restore', async () => {
  const { admin } = lost;
  const account = await lost.user.register();
  const user = lost.user.as(account.api_key);
  await filled(user, 'limited');
  const { point_id } = await lost.point();
  for (const { id } of (await objects(user, 'limited')).values()) {
    await user.expect(200, `/api/storage/${id}`, { method: 'DELETE' });
  }
  const quotas = (storage_bytes: number | null) =>
    admin.expect(200, `/api/admin/accounts/${account.id}`, {
      method: 'PATCH',
      json: { quotas: { storage_bytes } },
    });
  await quotas(1000);
  const preview = await restore(user, 'limited', { point_id, preview: true });
  assert.equal(preview.objects, 3);
  assert.match(preview.refusal, /quota of 1000 stored bytes/);
  await user.refused(403, 'quota_exceeded', ['/api/buckets/limited/restore', { json: { point_id } }]);
  await quotas(null);
  const { objects: count, same } = await restore(user, 'limited', { point_id });
  assert.equal(count + same, 3);
});

test('one restore of an account at a time, and those of others beside it', async () => {
  const { user } = lost;
  await filled(user, 'busy');
  const other = user.as((await user.register()).api_key);
  await filled(other, 'busy');
  const { point_id } = await lost.point();
  const call = (who: CheckedClient) =>
    who.call('/api/buckets/busy/restore', { json: { point_id, to_bucket: 'busy-again' } });
  const answers = await Promise.all([call(user), call(user), call(user), call(other)]);
  const statuses = answers.map(({ status, body }) => body.code ?? status);
  assert.deepEqual(statuses.toSorted(), [200, 200, 'overloaded', 'overloaded']);
  assert.equal(statuses[3], 200);
});

test('damaged pieces are named, and the rest is restored', async () => {
  const { user } = lost;
  await filled(user, 'damaged');
  const { point_id } = await lost.point();
  await user.expect(200, '/api/buckets/damaged?force=true', { method: 'DELETE' });
  // Opens the point, whose metadata is then read from its copy.
  await restore(user, 'damaged', { point_id, preview: true });
  const pieces = join(lost.target, 'pieces');
  for (const folder of readdirSync(pieces)) {
    for (const piece of readdirSync(join(pieces, folder))) {
      const path = join(pieces, folder, piece);
      if (statSync(path).size > large.length) truncateSync(path, 1000);
    }
  }
  const done = await restore(user, 'damaged', { point_id });
  assert.deepEqual([done.objects, done.refused], [2, 1]);
  assert.deepEqual([done.refusals[0].name, done.refusals[0].code], ['docs/large.bin', 'data_corrupted']);
  assert.deepEqual([...(await objects(user, 'damaged')).keys()], ['docs/note.txt', 'other.txt']);
  const one = { json: { point_id, name: 'docs/large.bin' } };
  await user.refused(500, 'data_corrupted', ['/api/buckets/damaged/restore', one]);
});
