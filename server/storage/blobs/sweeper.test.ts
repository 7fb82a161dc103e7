import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { systemClock } from '../../platform/clock.ts';
import { randomSecret } from '../../platform/ids.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture, TEST_GRACE_MS } from '../../testing/storage-fixture.ts';
import { INLINE_MAX_BYTES } from '../uploads/upload.ts';

const BUCKET = 'swept';
const LARGE = INLINE_MAX_BYTES + 1;
let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  await fixture.buckets.create(by(owner), { name: BUCKET });
});
beforeEach(() => {
  // Files have the real time, so the clock starts there.
  const { clock } = fixture;
  clock.jump(systemClock.now() - clock.now());
});
after(() => fixture.close());

async function files(): Promise<Set<string>> {
  return new Set((await Array.fromAsync(fixture.blobs.list())).map(({ name }) => name));
}

const put = (name: string) => fixture.put(owner, BUCKET, { name, bytes: randomSecret(LARGE) });

/** The file of the current bytes of an object. */
async function fileOf(objectId: string): Promise<string> {
  return (await fixture.store.currentContent(objectId))?.blob_name ?? assert.fail('inline');
}

test('a deleted blob keeps its file through the grace, and no longer', async () => {
  const sweeper = fixture.openSweeper();
  const { object_id } = await put('a');
  const file = await fileOf(object_id);
  await fixture.removals.remove(by(owner), object_id);
  fixture.clock.advance(TEST_GRACE_MS - 1);
  assert.equal(await sweeper.sweepGarbage(), 0);
  assert.ok((await files()).has(file));
  fixture.clock.advance(1);
  assert.equal(await sweeper.sweepGarbage(), 1);
  assert.ok(!(await files()).has(file));
  assert.deepEqual(await fixture.metadata.all('SELECT blob FROM blob_garbage'), []);
  assert.equal(await fixture.blobSql.isKnown(file), false);
  assert.equal(await sweeper.sweepGarbage(), 0);
});

test('more than one page of garbage goes in one sweep', async () => {
  const uploads = await Promise.all(Array.from({ length: 210 }, (_, i) => put(`many/${i}`)));
  await Promise.all(uploads.map(({ object_id }) => fixture.removals.remove(by(owner), object_id)));
  fixture.clock.advance(TEST_GRACE_MS);
  assert.equal(await fixture.openSweeper().sweepGarbage(), 210);
});

test('garbage that is named again stays, and does not hold up the rest', async () => {
  const [kept, dropped] = [await put('kept'), await put('dropped')];
  const file = await fileOf(kept.object_id);
  for (const { object_id } of [kept, dropped]) await fixture.removals.remove(by(owner), object_id);
  await fixture.metadata.commit([
    { sql: 'UPDATE blobs SET refs = 1 WHERE name = ?', params: [file], expectChanges: 1 },
  ]);
  fixture.clock.advance(TEST_GRACE_MS);
  assert.equal(await fixture.openSweeper().sweepGarbage(), 1);
  assert.ok((await files()).has(file));
  assert.ok(await fixture.blobSql.isKnown(file));
});

test('an orphan goes when it is older than the grace; what a row names or a writer holds stays', async () => {
  const sweeper = fixture.openSweeper();
  const { object_id } = await put('named');
  const named = await fileOf(object_id);
  const orphan = await fixture.blobs.create({ dataKey: null });
  await orphan.write(randomSecret(100_000));
  await orphan.finish();
  orphan.release();
  // Finished, but its commit takes long.
  const late = await fixture.blobs.create({ dataKey: null });
  await late.write(randomSecret(100_000));
  await late.finish();
  const open = await fixture.blobs.create({ dataKey: null });
  await open.write(randomSecret(300_000));
  assert.equal(await sweeper.sweepOrphans(), 0);
  fixture.clock.advance(TEST_GRACE_MS + 60_000);
  assert.equal(await fixture.openSweeper(() => false).sweepOrphans(), 0, 'after a disk error');
  assert.equal(await sweeper.sweepOrphans(), 1);
  const left = await files();
  assert.deepEqual(
    [orphan.name, named, late.name].map((name) => left.has(name)),
    [false, true, true],
  );
  late.release();
  assert.equal(await sweeper.sweepOrphans(), 1);
  assert.equal((await open.finish()).sizeBytes, 300_000);
  await open.abort();
});

test('deleted but not yet swept: the walk for orphans leaves the file to its own time', async () => {
  const { object_id } = await put('waiting');
  const file = await fileOf(object_id);
  fixture.clock.advance(TEST_GRACE_MS + 60_000);
  await fixture.removals.remove(by(owner), object_id);
  await fixture.openSweeper().sweepOrphans();
  assert.ok((await files()).has(file));
});

test('a stopped sweeper removes nothing more', async () => {
  const { object_id } = await put('late');
  await fixture.removals.remove(by(owner), object_id);
  fixture.clock.advance(TEST_GRACE_MS);
  const sweeper = fixture.openSweeper();
  sweeper.stop();
  assert.deepEqual([await sweeper.sweepGarbage(), await sweeper.sweepOrphans()], [0, 0]);
});
