import assert from 'node:assert/strict';
import { createHash, hash } from 'node:crypto';
import { test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { by } from '../../testing/account-fixture.ts';
import {
  assertStoredRows,
  chosen,
  partUploadsOf,
  type TestPartUploads,
  type TestUpload,
} from '../../testing/part-uploads-fixture.ts';
import { rejects, sharedStorage } from '../../testing/shared-storage.ts';
import { type StorageFixture, TEST_GRACE_MS } from '../../testing/storage-fixture.ts';
import { INLINE_MAX_BYTES } from './upload.ts';

let fixture: StorageFixture;
let owner: Principal;
let uploads: TestPartUploads;
sharedStorage(async (shared) => {
  ({ fixture, owner } = shared);
  uploads = partUploadsOf(fixture, owner);
  await fixture.buckets.create(by(owner), { name: 'plain' });
  await fixture.buckets.create(by(owner), { name: 'sealed', encryption: true });
  await fixture.buckets.create(by(owner), { name: 'history', versioning: true });
});

const LARGE = INLINE_MAX_BYTES + 1;

/** Bytes of content for which the account is charged. */
async function kept(): Promise<number> {
  const sql = `SELECT storage_bytes - (SELECT sum(metadata_bytes) FROM buckets)
    - (SELECT coalesce(sum(metadata_bytes), 0) FROM uploads WHERE state = 0) AS bytes
    FROM accounts WHERE username = ?`;
  return (await fixture.metadata.get<{ bytes: number }>(sql, owner.username))?.bytes ?? assert.fail();
}

async function counters(bucket: string) {
  const { object_count, size, version_count, total_size } = await fixture.buckets.describe(owner, bucket);
  return [object_count, size, version_count, total_size];
}

async function count(table: 'blobs' | 'uploads' | 'upload_parts'): Promise<number> {
  return (await fixture.metadata.get<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`))?.rows ?? -1;
}

const files = async () => (await Array.fromAsync(fixture.blobs.list())).length;

/** Puts the parts, numbered from 1. */
async function putAll(upload: TestUpload, parts: readonly Uint8Array[]): Promise<void> {
  await Promise.all(parts.map((bytes, at) => uploads.put(upload, at + 1, bytes)));
}

function etagOf(parts: readonly Uint8Array[]): string {
  const md5s = parts.map((bytes) => hash('md5', bytes, 'buffer'));
  return `${createHash('md5').update(Buffer.concat(md5s)).digest('hex')}-${parts.length}`;
}

for (const bucket of ['plain', 'sealed']) {
  test(`parts of every size become one object, read at any range: ${bucket}`, async () => {
    const sizes = [10, LARGE, 0, INLINE_MAX_BYTES, 200_000, 1];
    const parts = sizes.map((size) => randomSecret(size));
    const whole = Buffer.concat(parts);
    const upload = await uploads.begin(bucket, 'a');
    await putAll(upload, parts);
    const { etag } = await uploads.complete(upload);
    assert.equal(etag, etagOf(parts));
    const content = await uploads.find(bucket, 'a');
    assert.deepEqual([content.sizeBytes, content.etag], [whole.length, etag]);
    assert.deepEqual(await uploads.read(content), whole);
    const edges = sizes.map((_, at) => sizes.slice(0, at + 1).reduce((sum, size) => sum + size, 0));
    const places = [...new Set(edges.flatMap((edge) => [edge - 1, edge, edge + 1]))].filter(
      (at) => at <= whole.length,
    );
    for (const start of places) {
      for (const end of places.filter((at) => at > start)) {
        const bytes = await uploads.read(content, { start, end });
        assert.ok(bytes.equals(whole.subarray(start, end)), `${start} to ${end}`);
      }
    }
  });
}

test('parts are charged when they come, the object is counted when it is whole', async () => {
  const before = await kept();
  const [objects = 0, size = 0, versions = 0, total = 0] = await counters('history');
  const upload = await uploads.begin('history', 'counted');
  await uploads.put(upload, 1, randomSecret(100));
  await uploads.put(upload, 2, randomSecret(LARGE));
  assert.equal(await kept(), before + 100 + LARGE);
  await uploads.put(upload, 1, randomSecret(40));
  assert.equal(await kept(), before + 40 + LARGE, 'in the place of the earlier one');
  assert.deepEqual(await counters('history'), [objects, size, versions, total]);
  const bytes = 40 + LARGE;
  await uploads.complete(upload);
  assert.equal(await kept(), before + bytes);
  assert.deepEqual(await counters('history'), [objects + 1, size + bytes, versions + 1, total + bytes]);
});

test('what replaces an object in an unversioned bucket gives its bytes back', async () => {
  const before = await kept();
  await fixture.put(owner, 'plain', { name: 'replaced', bytes: randomSecret(50_000) });
  const upload = await uploads.begin('plain', 'replaced');
  await uploads.put(upload, 1, randomSecret(70_000));
  assert.equal(await kept(), before + 120_000);
  await uploads.complete(upload);
  assert.equal(await kept(), before + 70_000);
});

test('a part that is replaced is read as it was last', async () => {
  const upload = await uploads.begin('plain', 'again');
  const last = Buffer.from('last');
  for (const bytes of [randomSecret(LARGE), randomSecret(10), last]) await uploads.put(upload, 7, bytes);
  const { etag } = await uploads.complete(upload);
  assert.equal(etag, etagOf([last]));
  assert.deepEqual(await uploads.read(await uploads.find('plain', 'again')), last);
});

test('one number put many times at once leaves one part', async () => {
  const upload = await uploads.begin('plain', 'at-once');
  const parts = Array.from({ length: 12 }, (_, at) => randomSecret(at % 2 === 0 ? 100 : LARGE));
  await Promise.all(parts.map((bytes) => uploads.put(upload, 1, bytes)));
  await uploads.complete(upload);
  const bytes = await uploads.read(await uploads.find('plain', 'at-once'));
  assert.ok(parts.some((part) => part.equals(bytes)));
});

test('completing twice, one after the other and at once, gives the same and makes one version', async () => {
  const upload = await uploads.begin('history', 'twice');
  await putAll(upload, [randomSecret(LARGE), randomSecret(5)]);
  const [first, second] = await Promise.all([uploads.complete(upload), uploads.complete(upload)]);
  assert.deepEqual(second, first);
  assert.deepEqual(await uploads.complete(upload), first);
  const { id } = await fixture.buckets.find(owner, 'history');
  const object = (await fixture.store.named(id, 'twice')) ?? assert.fail();
  assert.equal((await fixture.store.versionsOf(object, Number.MAX_SAFE_INTEGER, 10)).length, 1);
  await rejects(uploads.put(upload, 3, randomSecret(5)), 'upload_not_found');
  await rejects(uploads.abort(upload), 'upload_not_found');
});

test('a part that comes while the upload is completed is in it as a whole, or refused', async () => {
  for (let round = 0; round < 20; round++) {
    const upload = await uploads.begin('plain', 'racing');
    await putAll(upload, [Buffer.from('a'), Buffer.from('b')]);
    const late = uploads.put(upload, 2, Buffer.from('c')).then(
      () => true,
      (error) => (isAppError(error, 'upload_not_found') ? false : assert.fail(String(error))),
    );
    await Promise.all([late, uploads.complete(upload)]);
    const text = (await uploads.read(await uploads.find('plain', 'racing'))).toString();
    assert.equal(text, (await late) ? 'ac' : 'ab');
  }
});

test('parts that are left out are given back at once, and their files go', async () => {
  await uploads.sweep();
  const [before, stored] = [await kept(), await files()];
  const upload = await uploads.begin('plain', 'picked');
  const parts = [randomSecret(LARGE), randomSecret(30_000), randomSecret(7), randomSecret(9)];
  await putAll(upload, parts);
  await uploads.complete(upload, [1, 3]);
  assert.equal(await kept(), before + LARGE + 7);
  const whole = Buffer.concat([parts[0] ?? '', parts[2] ?? ''].map((bytes) => Buffer.from(bytes)));
  assert.deepEqual(await uploads.read(await uploads.find('plain', 'picked')), whole);
  assert.equal(await files(), stored + 2);
  await uploads.sweep();
  assert.equal(await files(), stored + 1);
  assert.deepEqual(await uploads.read(await uploads.find('plain', 'picked')), whole);
});

test('what the choice or a condition refuses leaves the upload as it was', async () => {
  const upload = await uploads.begin('plain', 'refused');
  await uploads.put(upload, 1, Buffer.from('x'));
  const refuse = () => {
    throw new Error('no');
  };
  await assert.rejects(uploads.complete(upload, [1], { choose: refuse }), /no/);
  await assert.rejects(uploads.complete(upload, [1], { condition: refuse }), /no/);
  await uploads.put(upload, 2, Buffer.from('y'));
  await uploads.complete(upload, [1, 2]);
  assert.equal((await uploads.read(await uploads.find('plain', 'refused'))).toString(), 'xy');
});

test('an aborted upload is not charged from then on, and its files go after the grace', async () => {
  await uploads.sweep();
  const [bytes, blobs, stored, rows] = [
    await kept(),
    await count('blobs'),
    await files(),
    await count('uploads'),
  ];
  const upload = await uploads.begin('plain', 'aborted');
  await putAll(
    upload,
    Array.from({ length: 40 }, (_, at) => randomSecret(at % 2 === 0 ? LARGE : 10)),
  );
  assert.equal(await files(), stored + 20);
  await uploads.abort(upload);
  assert.equal(await kept(), bytes);
  await assertStoredRows(fixture);
  for (const work of [
    () => uploads.abort(upload),
    () => uploads.complete(upload),
    () => uploads.put(upload, 1, randomSecret(1)),
  ]) {
    await rejects(work(), 'upload_not_found');
  }
  assert.equal(await fixture.partUploads.sweep(), 1);
  assert.deepEqual([await count('uploads'), await fixture.partUploads.sweep()], [rows, 0]);
  const sweeper = fixture.openSweeper();
  fixture.clock.advance(TEST_GRACE_MS - 1);
  assert.deepEqual([await sweeper.sweepGarbage(), await files()], [0, stored + 20]);
  fixture.clock.advance(1);
  assert.deepEqual([await sweeper.sweepGarbage(), await files()], [20, stored]);
  assert.equal(await count('blobs'), blobs);
});

test('a part that arrives after its upload has ended and is swept is refused, and leaves no file', async () => {
  const upload = await uploads.begin('plain', 'late');
  const row = await fixture.partUploads.find(await fixture.buckets.find(owner, 'plain'), upload);
  const arriving = await fixture.partUploads.receive(row);
  await arriving.write(randomSecret(LARGE));
  const stored = await files();
  await uploads.abort(upload);
  await fixture.partUploads.sweep();
  const received = await arriving.finish();
  const putting = fixture.partUploads.putPart(by(owner), row, { number: 1, received, checksum: null });
  await rejects(putting, 'upload_not_found');
  await arriving.end();
  assert.ok((await files()) <= stored);
});

test('rows that are not as they should be do not keep the sweep busy', async () => {
  const [broken, sound] = [await uploads.begin('plain', 'broken'), await uploads.begin('plain', 'sound')];
  for (const upload of [broken, sound]) {
    await uploads.put(upload, 1, randomSecret(LARGE));
    await uploads.abort(upload);
  }
  const [row] = await fixture.partUploadSql.aborted(1);
  const [part] = await fixture.partUploadSql.parts(row?.id ?? 0, 0, 1);
  const setBlob = (from: number, to: number) =>
    fixture.metadata.commit([{ sql: 'UPDATE upload_parts SET blob = ? WHERE blob = ?', params: [to, from] }]);
  const blob = part?.blob ?? assert.fail();
  await setBlob(blob, 1e9);
  assert.equal(await fixture.partUploads.sweep(), 1);
  await setBlob(1e9, blob);
  assert.equal(await fixture.partUploads.sweep(), 1);
});

test('a bucket goes with its open uploads, also while more are begun', async () => {
  const before = await kept();
  for (const remove of ['removeEmpty', 'remove'] as const) {
    await fixture.buckets.create(by(owner), { name: 'leaving' });
    const upload = await uploads.begin('leaving', 'open');
    await uploads.put(upload, 1, randomSecret(LARGE));
    if (remove === 'remove') await fixture.put(owner, 'leaving', { name: 'x', bytes: randomSecret(9) });
    else await rejects(fixture.buckets.removeEmpty(by(owner), 'leaving'), 'bucket_not_empty');
    const bucket = await fixture.buckets.find(owner, 'leaving');
    const labels = { name: 'y', mimeType: 'x/y', metadata: null, checksum: null };
    const begin = () => fixture.partUploads.begin(by(owner), bucket, labels);
    const beginning = Array.from({ length: 20 }, () => begin().catch((error) => error));
    await fixture.bucketEmptier[remove](by(owner), 'leaving');
    for (const result of await Promise.all(beginning)) {
      assert.ok(typeof result === 'string' || isAppError(result, 'bucket_not_found'), String(result));
    }
    await rejects(begin(), 'bucket_not_found');
    await assertStoredRows(fixture);
    assert.equal(await kept(), before);
    await fixture.buckets.create(by(owner), { name: 'leaving' });
    await rejects(uploads.put(upload, 1, randomSecret(1)), 'upload_not_found');
    await fixture.bucketEmptier.removeEmpty(by(owner), 'leaving');
  }
});

test('a bucket that is deleted while a client ends its uploads goes all the same', async () => {
  await fixture.buckets.create(by(owner), { name: 'shared-end' });
  const open = await Promise.all(Array.from({ length: 20 }, (_, at) => uploads.begin('shared-end', `${at}`)));
  const ending = open.map((upload) =>
    uploads.abort(upload).catch((error) => {
      assert.ok(
        isAppError(error, 'upload_not_found') || isAppError(error, 'bucket_not_found'),
        String(error),
      );
    }),
  );
  await Promise.all([fixture.bucketEmptier.removeEmpty(by(owner), 'shared-end'), ...ending]);
});

test('an assembled object that is overwritten or deleted takes all its parts along', async () => {
  await uploads.sweep();
  const [bytes, blobs, stored] = [await kept(), await count('blobs'), await files()];
  const parts = Array.from({ length: 35 }, (_, at) => randomSecret(at % 3 === 0 ? LARGE : 20));
  for (const name of ['overwritten', 'deleted']) {
    const upload = await uploads.begin('plain', name);
    await putAll(upload, parts);
    await uploads.complete(upload);
  }
  await fixture.put(owner, 'plain', { name: 'overwritten', bytes: Buffer.from('new') });
  const content = await uploads.find('plain', 'deleted');
  await fixture.removals.remove(by(owner), content.row.object_id);
  assert.equal(await kept(), bytes + 3);
  await assertStoredRows(fixture);
  fixture.clock.advance(TEST_GRACE_MS - 1);
  await fixture.openSweeper().sweepGarbage();
  await fixture.partUploads.sweep();
  assert.deepEqual(await uploads.read(content), Buffer.concat(parts), 'of a running download');
  await uploads.sweep();
  assert.deepEqual([await count('blobs'), await files()], [blobs + 1, stored]);
  await rejects(uploads.read(content), 'data_corrupted');
});

test('a restored, relabelled or copied version shares the parts until the last of them goes', async () => {
  await fixture.bucketEmptier.empty(owner, 'plain');
  await fixture.bucketEmptier.empty(owner, 'history');
  await uploads.sweep();
  const before = [await count('blobs'), await count('upload_parts'), await files()];
  const parts = [randomSecret(LARGE), randomSecret(30)];
  const whole = Buffer.concat(parts);
  const upload = await uploads.begin('history', 'shared');
  await putAll(upload, parts);
  const { version_id: versionId } = await uploads.complete(upload);
  const { object_id: objectId } = (await uploads.find('history', 'shared')).row;
  await fixture.objects.relabel(by(owner), objectId, { mime_type: 'image/png' });
  await fixture.put(owner, 'history', { name: 'shared', bytes: Buffer.from('between') });
  const restored = await fixture.objects.restore(by(owner), { objectId, versionId });
  const { row } = await uploads.find('history', 'shared');
  const content = fixture.objects.shared({ ...row, blob: row.blob ?? assert.fail() });
  const bucket = await fixture.buckets.find(owner, 'plain');
  const naming = { name: 'copy', mimeType: 'x/y', metadata: null };
  const copied = await fixture.objects.publish(by(owner), { bucket, content, naming }, ({ etag }) => etag);
  assert.equal(copied, etagOf(parts));
  await assertStoredRows(fixture);
  for (const gone of [versionId, restored.version_id]) {
    await fixture.removals.remove(by(owner), objectId, { versionId: gone });
  }
  await fixture.bucketEmptier.empty(owner, 'history');
  await uploads.sweep();
  assert.deepEqual(await uploads.read(await uploads.find('plain', 'copy')), whole);
  await fixture.bucketEmptier.empty(owner, 'plain');
  await uploads.sweep();
  assert.deepEqual([await count('blobs'), await count('upload_parts'), await files()], before);
});

test('an upload is found by its own bucket, name and account only', async () => {
  const upload = await uploads.begin('plain', 'mine');
  await uploads.put(upload, 1, randomSecret(10));
  const stranger = await fixture.newPrincipal('stranger');
  await fixture.buckets.create(by(stranger), { name: 'plain' });
  const theirs = partUploadsOf(fixture, stranger);
  const unknown = { ...upload, uploadId: 'upl-00000000000000000000000000' };
  for (const [who, wrong] of [
    [uploads, { ...upload, bucket: 'sealed' }],
    [uploads, { ...upload, name: 'other' }],
    [uploads, unknown],
    [theirs, upload],
  ] as const) {
    await rejects(who.put(wrong, 1, randomSecret(10)), 'upload_not_found');
    await rejects(who.complete(wrong, [1]), 'upload_not_found');
    await rejects(who.abort(wrong), 'upload_not_found');
  }
  const limited = { ...owner, bucketLimits: [{ bucket: 'plain', prefix: 'docs/' }] };
  const limitedUploads = partUploadsOf(fixture, limited);
  await rejects(limitedUploads.begin('plain', 'mine'), 'scope_required');
  await rejects(limitedUploads.complete(upload), 'scope_required');
  await rejects(limitedUploads.abort(upload), 'scope_required');
  await uploads.complete(upload, undefined, { choose: chosen([1]) });
});

test('open uploads are listed by name and age, a page at a time', async () => {
  await fixture.buckets.create(by(owner), { name: 'listed' });
  const begun: string[] = [];
  for (const name of ['b', 'a', 'b', 'c']) begun.push((await uploads.begin('listed', name)).uploadId);
  const [{ id }, seen] = [await fixture.buckets.find(owner, 'listed'), [] as string[]];
  for (let from = { name: '', id: 0 }; ; ) {
    const [row] = await fixture.partUploadSql.openPage(id, from, 1);
    if (!row) break;
    seen.push(row.upload_id);
    from = row;
  }
  assert.deepEqual(seen, [begun[1], begun[0], begun[2], begun[3]]);
  await fixture.bucketEmptier.removeEmpty(by(owner), 'listed');
});

test('an upload that was begun a week ago ends by itself, and its bytes are not charged any more', async () => {
  const old = await uploads.begin('plain', 'old');
  await uploads.put(old, 1, randomSecret(30_000));
  const before = await kept();
  fixture.clock.advance(7 * 24 * 3_600_000 - 1000);
  const young = await uploads.begin('plain', 'young');
  assert.equal(await fixture.partUploads.abortForgotten(), 0);
  fixture.clock.advance(2000);
  assert.equal(await fixture.partUploads.abortForgotten(), 1);
  assert.equal(await kept(), before - 30_000);
  await rejects(uploads.put(old, 2, randomSecret(10)), 'upload_not_found');
  await uploads.abort(young);
});
