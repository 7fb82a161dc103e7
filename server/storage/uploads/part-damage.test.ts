import assert from 'node:assert/strict';
import { readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { by } from '../../testing/account-fixture.ts';
import { partUploadsOf, type TestPartUploads } from '../../testing/part-uploads-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { PartBlobRow } from './part-upload-sql.ts';
import { INLINE_MAX_BYTES } from './upload.ts';

const FAST = { bytesPerSecond: 2 ** 40, fresh: true };
const SIZES = [INLINE_MAX_BYTES + 1, 20, 100_000, 30];
let fixture: StorageFixture;
let owner: Principal;
let uploads: TestPartUploads;
let marking: Promise<void>[];
beforeEach(async () => {
  marking = [];
  fixture = await openStorageFixture({
    onDamaged: (blob) => void marking.push(fixture.openScrubber().noteDamaged(blob)),
  });
  owner = await fixture.newPrincipal('owner');
  uploads = partUploadsOf(fixture, owner);
});
afterEach(() => fixture.close());

/** An object in a new bucket, in parts of SIZES, and its parts. */
async function assemble(encryption: boolean) {
  await fixture.buckets.create(by(owner), { name: 'kept', encryption });
  const upload = await uploads.begin('kept', 'in-parts');
  for (const [at, size] of SIZES.entries()) await uploads.put(upload, at + 1, randomSecret(size));
  const { version_id: versionId } = await uploads.complete(upload);
  const content = await uploads.find('kept', 'in-parts');
  return { versionId, content, parts: await fixture.partUploadSql.partBlobs(content.row.upload ?? 0) };
}

function pathOf({ blob_name: name }: PartBlobRow): string {
  const root = join(fixture.directory, 'blobs');
  const found = readdirSync(root, { recursive: true, encoding: 'utf8' }).find((path) =>
    path.endsWith(name ?? assert.fail('inline')),
  );
  return join(root, found ?? assert.fail('no file'));
}

/** Changes the stored data of the part; the result undoes the change. */
async function damage(part: PartBlobRow): Promise<() => void | Promise<void>> {
  if (part.blob_name === null) {
    const sql = 'UPDATE blobs SET checksum = checksum + ? WHERE id = ?';
    const shift = async (by: number) =>
      void (await fixture.metadata.commit([{ sql, params: [by, part.blob] }]));
    await shift(1);
    return () => shift(-1);
  }
  const path = pathOf(part);
  const sound = readFileSync(path);
  const bytes = Buffer.from(sound);
  bytes[5] = (bytes[5] as number) ^ 1;
  writeFileSync(path, bytes);
  return () => writeFileSync(path, sound);
}

async function damaged() {
  await Promise.all(marking);
  const scrubber = fixture.openScrubber();
  const versions = (await scrubber.damage()).map(({ version_id }) => version_id);
  return { versions, blobs: (await scrubber.status()).damaged_blobs, alarms: fixture.alarms.list().length };
}
const SOUND = { versions: [], blobs: 0, alarms: 0 };

for (const encryption of [false, true]) {
  for (const [at, size] of SIZES.entries()) {
    test(`damage in part ${at + 1} of ${size} bytes is found, named once and healed: encryption ${encryption}`, async () => {
      const { versionId, content, parts } = await assemble(encryption);
      const part = parts[at] ?? assert.fail();
      const [start, end] = [SIZES, SIZES.slice(0, at)]
        .map((sizes) => sizes.reduce((sum, one) => sum + one, 0))
        .toReversed() as [number, number];
      const heal = await damage(part);
      const found = { versions: [versionId], blobs: 1, alarms: 1 };
      await assert.rejects(uploads.read(content, { start, end }), (error) =>
        isAppError(error, 'data_corrupted'),
      );
      assert.deepEqual(await damaged(), found, 'by a download');
      if (start > 0) {
        assert.equal(
          (await uploads.read(content, { start: 0, end: start })).length,
          start,
          'the rest is sound',
        );
      }
      await fixture.openScrubber().run(FAST);
      assert.deepEqual(await damaged(), found, 'by a scrub');
      await heal();
      await fixture.openScrubber().run(FAST);
      assert.deepEqual(await damaged(), SOUND);
      assert.equal((await uploads.read(content)).length, content.sizeBytes);
    });
  }
}

test('a version with several damaged parts, and what shares them, are each named once', async () => {
  const { versionId, content, parts } = await assemble(false);
  const bucket = await fixture.buckets.find(owner, 'kept');
  const naming = { name: 'copy', mimeType: 'x/y', metadata: null };
  const shared = fixture.objects.shared({ ...content.row, blob: content.row.blob ?? assert.fail() });
  const copy = await fixture.objects.publish(
    by(owner),
    { bucket, content: shared, naming },
    (made) => made.versionId,
  );
  for (const part of parts) await damage(part);
  await fixture.openScrubber().run(FAST);
  assert.deepEqual(await damaged(), { versions: [versionId, copy], blobs: SIZES.length, alarms: 1 });
  await fixture.bucketEmptier.empty(owner, 'kept');
  await uploads.sweep();
  await fixture.openScrubber().run(FAST);
  assert.deepEqual(await damaged(), SOUND);
});

test('a part whose file or row is missing is never sent as fewer bytes', async () => {
  const { versionId, content, parts } = await assemble(false);
  const part = parts[2] ?? assert.fail();
  unlinkSync(pathOf(part));
  const found = { versions: [versionId], blobs: 1, alarms: 1 };
  await assert.rejects(uploads.read(content), (error) => isAppError(error, 'data_corrupted'));
  assert.deepEqual(await damaged(), found);
  await fixture.metadata.commit([{ sql: 'DELETE FROM upload_parts WHERE blob = ?', params: [part.blob] }]);
  await assert.rejects(uploads.read(content), (error) => isAppError(error, 'data_corrupted'));
  assert.deepEqual((await damaged()).versions, [versionId]);
});
