import assert from 'node:assert/strict';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { INLINE_MAX_BYTES } from '../uploads/upload.ts';

const FAST = { bytesPerSecond: 2 ** 40, fresh: false };
let fixture: StorageFixture;
let owner: Principal;
beforeEach(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  await fixture.buckets.create(by(owner), { name: 'plain' });
  await fixture.buckets.create(by(owner), { name: 'sealed', encryption: true });
});
afterEach(() => fixture.close());

const put = (bucket: string, name: string, size: number) =>
  fixture.put(owner, bucket, { name, bytes: randomSecret(size) });

async function pathOf(objectId: string): Promise<string> {
  const name = (await fixture.store.currentContent(objectId))?.blob_name ?? assert.fail('inline');
  const root = join(fixture.directory, 'blobs');
  const found = readdirSync(root, { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith(name));
  return join(root, found ?? assert.fail('no file'));
}

/** Flips one bit; calling it twice restores the bit. */
function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(path, bytes);
}

test('sound bytes are all read and counted, and no alarm is raised', async () => {
  const sizes = [0, 10, INLINE_MAX_BYTES, INLINE_MAX_BYTES + 1, 200_000];
  for (const bucket of ['plain', 'sealed']) {
    for (const size of sizes) await put(bucket, `f${size}`, size);
  }
  const scrubber = fixture.openScrubber();
  assert.equal(await scrubber.lastFinishedAt(), null);
  await scrubber.run(FAST);
  const { checked_blobs, checked_bytes, damaged_blobs, running, finished_at } = await scrubber.status();
  const bytes = 2 * sizes.reduce((sum, size) => sum + size, 0);
  assert.deepEqual([checked_blobs, checked_bytes, damaged_blobs], [2 * sizes.length, bytes, 0]);
  assert.deepEqual([running, finished_at], [false, '2026-01-01 00:00:00']);
  assert.deepEqual([await scrubber.damage(), fixture.alarms.list()], [[], []]);
});

test('a flipped bit, a shorter file, a missing one and a damaged row are named, and healed ones cleared', async () => {
  const flipped = await put('plain', 'flipped', 200_000);
  const sealed = await put('sealed', 'sealed', 200_000);
  const short = await put('plain', 'short', 100_000);
  const inline = await put('sealed', 'inline', 100);
  const sound = await put('plain', 'sound', 100_000);
  for (const { object_id } of [flipped, sealed]) flip(await pathOf(object_id), 70_000);
  truncateSync(await pathOf(short.object_id), 50_000);
  const sql = 'UPDATE blobs SET checksum = checksum + ? WHERE id = ?';
  const blob = (await fixture.store.findById(inline.object_id))?.current ?? 0;
  const version = await fixture.store.version(blob);
  const shift = (by: number) => fixture.metadata.commit([{ sql, params: [by, version?.blob ?? 0] }]);
  await shift(1);
  const scrubber = fixture.openScrubber();
  await scrubber.run(FAST);
  const named = (await scrubber.damage()).map(({ version_id }) => version_id).sort();
  assert.deepEqual(named, [flipped, sealed, short, inline].map(({ version_id }) => version_id).sort());
  assert.ok(!named.includes(sound.version_id));
  assert.equal((await scrubber.status()).damaged_blobs, 4);
  assert.equal(fixture.alarms.list()[0]?.code, 'damaged_objects');
  for (const { object_id } of [flipped, sealed]) flip(await pathOf(object_id), 70_000);
  await shift(-1);
  await fixture.removals.remove(by(owner), short.object_id);
  await scrubber.run(FAST);
  assert.deepEqual(await scrubber.damage(), []);
  assert.deepEqual(fixture.alarms.list(), []);
});

test('known damage raises its alarm again after a restart', async () => {
  const { object_id, version_id, name } = await put('plain', 'x', 100_000);
  flip(await pathOf(object_id), 5);
  await fixture.openScrubber().run(FAST);
  fixture.alarms.clear('damaged_objects');
  const scrubber = fixture.openScrubber();
  await scrubber.start();
  assert.match(fixture.alarms.list()[0]?.detail ?? '', /^1 stored/);
  const account_id = owner.accountId;
  assert.deepEqual(await scrubber.damage(), [{ object_id, version_id, bucket: 'plain', name, account_id }]);
});

test('stopped in the middle, the next run goes on and counts everything once', async () => {
  const sizes = Array.from({ length: 250 }, (_, i) => i);
  await Promise.all(sizes.map((size) => put('plain', `f${size}`, size)));
  const first = fixture.openScrubber();
  const stopsAfter = 120;
  const { blobSql } = fixture;
  const page = blobSql.page.bind(blobSql);
  blobSql.page = (after, limit) => {
    if (after >= stopsAfter - 100 && after > 0) first.stop();
    return page(after, limit);
  };
  await assert.rejects(first.run(FAST), (error) => isAppError(error, 'shutting_down'));
  blobSql.page = page;
  const status = await first.status();
  assert.ok(status.finished_at === null && status.started_at !== null && !status.running);
  assert.ok(status.checked_blobs > 0 && status.checked_blobs < sizes.length);
  fixture.clock.advance(5000);
  const second = fixture.openScrubber();
  await second.run(FAST);
  const done = await second.status();
  assert.equal(done.checked_blobs, sizes.length);
  assert.equal(
    done.checked_bytes,
    sizes.reduce((sum, size) => sum + size, 0),
  );
  assert.deepEqual([done.started_at, done.finished_at], ['2026-01-01 00:00:00', '2026-01-01 00:00:05']);
  fixture.clock.advance(1000);
  await second.run({ ...FAST, fresh: true });
  assert.equal((await second.status()).checked_blobs, sizes.length);
});

test('only one runs at a time', async () => {
  await put('plain', 'x', 100_000);
  const scrubber = fixture.openScrubber();
  const running = scrubber.run(FAST);
  assert.equal((await scrubber.status()).running, true);
  await assert.rejects(scrubber.run(FAST), (error) => isAppError(error, 'job_running'));
  await running;
});
