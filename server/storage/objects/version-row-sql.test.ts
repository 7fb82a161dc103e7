/** Names, metadata, tags, headers and ACLs count as stored bytes, and the count returns to zero with them. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { assertStoredRows, partUploadsOf } from '../../testing/part-uploads-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { Naming } from './objects.ts';
import { ROW_BYTES } from './version-row-sql.ts';

let fixture: StorageFixture;
let owner: Principal;
beforeEach(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  await fixture.buckets.create(by(owner), { name: 'plain', versioning: false });
  await fixture.buckets.create(by(owner), { name: 'history', versioning: true });
});
afterEach(async () => {
  await assertStoredRows(fixture).finally(() => fixture.close());
});

const empty = (bucket: string, name: string, naming: Partial<Naming> = {}) =>
  fixture.put(owner, bucket, { name, bytes: Buffer.alloc(0), mimeType: 'a/b', ...naming });

async function stored(): Promise<number> {
  const row = await fixture.metadata.get<{ bytes: number }>('SELECT storage_bytes AS bytes FROM accounts');
  return row?.bytes ?? assert.fail('no account');
}

const limitTo = (bytes: number) =>
  fixture.metadata.commit([
    { sql: 'UPDATE billing_accounts SET quotas = ?', params: [JSON.stringify({ storage_bytes: bytes })] },
  ]);

const isOverQuota = (error: unknown) => isAppError(error, 'quota_exceeded');

/** Replaces tags like the S3 endpoint. */
async function changeTags(name: string, tags: string | null, bucketName = 'plain'): Promise<void> {
  const bucket = await fixture.buckets.find(owner, bucketName);
  const object = await named(bucketName, name);
  assert.ok(object.current);
  await fixture.objects.setFact(by(owner), { ...object, id: object.current }, { bucket, fact: { tags } });
}

async function named(bucketName: string, name: string) {
  const bucket = await fixture.buckets.find(owner, bucketName);
  return (await fixture.store.named(bucket.id, name)) ?? assert.fail(`no ${name}`);
}

test('each text of an object counts in UTF-8, in its bucket beside the contents, and goes with it', async () => {
  const texts = { metadata: '{"k":"ä"}', headers: '{"x":"y"}', tags: '{"t":"1"}', acl: '{"owner":"o"}' };
  const { object_id: id } = await empty('plain', 'näme', texts);
  const bytes = ROW_BYTES + 5 + 3 + 10 + 9 + 9 + 13;
  assert.equal(await stored(), bytes);
  const { size, total_size, metadata_size } = await fixture.buckets.describe(owner, 'plain');
  assert.deepEqual([size, total_size, metadata_size], [0, 0, bytes]);
  await empty('plain', 'näme');
  assert.equal(await stored(), ROW_BYTES + 8, 'a new version in the place of another');
  await fixture.removals.remove(by(owner), id);
  assert.equal(await stored(), 0);
});

test('changed tags count as they are now, also when they change at once', async () => {
  await empty('plain', 'a');
  const before = await stored();
  await changeTags('a', '{"a":"1234"}');
  assert.equal(await stored(), before + 12);
  await Promise.all(['{"a":"1"}', '{}', '{"b":"12345678"}', null].map((tags) => changeTags('a', tags)));
  await assertStoredRows(fixture);
  await changeTags('a', null);
  assert.equal(await stored(), before);
  const { object_id } = await named('plain', 'a');
  const changes = ['{"a":"1"}', '{"a":"12"}'].map((tags) => changeTags('a', tags).catch(() => {}));
  await Promise.all([...changes, fixture.removals.remove(by(owner), object_id)]);
  assert.equal(await stored(), 0, 'and what is removed meanwhile takes along what it counted last');
});

test('empty objects are refused beyond the quota, and removals are not', async () => {
  await limitTo(30_000);
  const metadata = JSON.stringify({ k: 'v'.repeat(2000) });
  const puts = Array.from({ length: 40 }, (_, at) => empty('history', `empty-${at}`, { metadata }));
  const ended = await Promise.allSettled(puts);
  const refused = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  assert.ok(refused.length >= 25 && refused.every(isOverQuota), `${refused.length} refused`);
  assert.ok((await stored()) <= 30_000);
  await limitTo(10);
  const at = ended.findIndex(({ status }) => status === 'fulfilled');
  await assert.rejects(changeTags(`empty-${at}`, '{"a":"b"}', 'history'), isOverQuota);
  const { object_id } = await named('history', `empty-${at}`);
  const removed = await fixture.removals.remove(by(owner), object_id);
  assert.equal(removed.is_delete_marker, true, 'over the quota, an object is deleted as ever');
  const again = fixture.removals.removeNamed(by(owner), 'history', { name: 'never there' });
  await assert.rejects(again, isOverQuota, 'a marker that hides nothing is bounded');
  await fixture.bucketEmptier.empty(owner, 'history');
  assert.equal(await stored(), 0);
});

test('a delete marker counts its name, and a multipart upload its own texts while it is open', async () => {
  await limitTo(2 * ROW_BYTES + 40);
  await fixture.removals.removeNamed(by(owner), 'history', { name: 'gone' });
  await fixture.removals.removeNamed(by(owner), 'history', { name: 'gone' });
  assert.equal(await stored(), 2 * ROW_BYTES + 8);
  await fixture.removals.removeOldest(owner, (await named('history', 'gone')).object_id);
  assert.equal(await stored(), 0);
  const bucket = await fixture.buckets.find(owner, 'plain');
  const begin = (name: string) =>
    fixture.partUploads.begin(by(owner), bucket, {
      name,
      mimeType: 'a/b',
      metadata: '{"k":"v"}',
      checksum: null,
    });
  const uploads = [await begin('one'), await begin('two')];
  assert.equal(await stored(), 2 * ROW_BYTES + 30);
  await fixture.partUploads.abort(by(owner), bucket, { name: 'one', uploadId: uploads[0] ?? '' });
  assert.equal(await stored(), ROW_BYTES + 15);
  await begin('six');
  await assert.rejects(begin('three'), isOverQuota);
});

test('each part of an open multipart upload counts its row once, also an empty one, until the upload ends', async () => {
  await limitTo(4 * ROW_BYTES);
  const uploads = partUploadsOf(fixture, owner);
  const upload = await uploads.begin('plain', 'of-parts');
  const begun = await stored();
  for (const number of [1, 2, 2]) await uploads.put(upload, number, Buffer.alloc(0));
  assert.equal(await stored(), begun + 2 * ROW_BYTES);
  await assert.rejects(uploads.put(upload, 3, Buffer.alloc(0)), isOverQuota);
  await assertStoredRows(fixture);
  const bucket = await fixture.buckets.find(owner, 'plain');
  await fixture.partUploads.abort(by(owner), bucket, upload);
  assert.equal(await stored(), 0);
});
