import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';

let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
});
after(() => fixture.close());

/** A bucket with `names`, three versions each, and a delete marker on every second one. */
async function fill(bucket: string, names: readonly string[]): Promise<void> {
  await fixture.buckets.create(by(owner), { name: bucket, versioning: true });
  for (const [at, name] of names.entries()) {
    let id = '';
    for (let i = 0; i < 3; i++) {
      ({ object_id: id } = await fixture.put(owner, bucket, { name, bytes: Buffer.alloc(20_000 * i) }));
    }
    if (at % 2 === 1) await fixture.removals.remove(by(owner), id);
  }
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `f/${i}`);

test('all versions and markers go, the counters are zero, and other buckets are not touched', async () => {
  await fill('emptied', names(40));
  await fill('other', ['x']);
  await fixture.bucketEmptier.empty(owner, 'emptied');
  const { object_count, size, version_count, total_size } = await fixture.buckets.describe(owner, 'emptied');
  assert.deepEqual([object_count, size, version_count, total_size], [0, 0, 0, 0]);
  await fixture.buckets.removeEmpty(by(owner), 'emptied');
  assert.equal((await fixture.buckets.describe(owner, 'other')).version_count, 3);
});

test('the versions of one name go many in one commit', async () => {
  const bucket = 'deep';
  await fixture.buckets.create(by(owner), { name: bucket, versioning: true });
  let id = '';
  for (let i = 0; i < 300; i++) {
    ({ object_id: id } = await fixture.put(owner, bucket, { name: 'one', bytes: Buffer.from(`${i}`) }));
    if (i === 100) await fixture.removals.remove(by(owner), id);
  }
  const { metadata } = fixture;
  const commit = metadata.commit.bind(metadata);
  let commits = 0;
  metadata.commit = (statements) => {
    commits++;
    return commit(statements);
  };
  try {
    await fixture.bucketEmptier.empty(owner, bucket);
  } finally {
    metadata.commit = commit;
  }
  assert.ok(commits <= 10, `${commits} commits for 301 versions`);
  const { object_count, size, version_count, total_size } = await fixture.buckets.describe(owner, bucket);
  assert.deepEqual([object_count, size, version_count, total_size], [0, 0, 0, 0]);
  await fixture.buckets.removeEmpty(by(owner), bucket);
});

test('what is left after an interruption is the newest, and the counters say so', async () => {
  const bucket = 'broken-off';
  await fixture.buckets.create(by(owner), { name: bucket, versioning: true });
  let id = '';
  for (let i = 0; i < 100; i++) {
    ({ object_id: id } = await fixture.put(owner, bucket, { name: 'one', bytes: Buffer.from('four') }));
  }
  await fixture.removals.removeOldest(owner, id);
  const counts = async () => {
    const { object_count, size, version_count, total_size } = await fixture.buckets.describe(owner, bucket);
    return [object_count, size, version_count, total_size];
  };
  assert.deepEqual(await counts(), [1, 4, 36, 144]);
  assert.equal((await fixture.downloads.find(owner, id)).sizeBytes, 4);
  await fixture.removals.remove(by(owner), id);
  assert.deepEqual(await counts(), [0, 0, 36, 144]);
  await fixture.removals.removeOldest(owner, id);
  assert.deepEqual(await counts(), [0, 0, 0, 0]);
  await assert.rejects(fixture.removals.removeOldest(owner, id), (error) =>
    isAppError(error, 'object_not_found'),
  );
});

test('two at once, and an empty bucket, are no error', async () => {
  await fill('twice', names(10));
  await Promise.all([
    fixture.bucketEmptier.empty(owner, 'twice'),
    fixture.bucketEmptier.empty(owner, 'twice'),
  ]);
  await fixture.bucketEmptier.empty(owner, 'twice');
  await fixture.buckets.removeEmpty(by(owner), 'twice');
});

test('it is removed although others store in it, and nothing of them is left', async () => {
  await fill('busy', names(10));
  let gone = false;
  const uploader = async (at: number) => {
    for (let i = 0; !gone; i++) {
      try {
        await fixture.put(owner, 'busy', { name: `up/${at}/${i}`, bytes: Buffer.from('x') });
      } catch (error) {
        assert.ok(isAppError(error, 'bucket_not_found'), String(error));
        return;
      }
    }
  };
  const uploads = [1, 2, 3, 4].map(uploader);
  assert.equal((await fixture.bucketEmptier.remove(by(owner), 'busy')).name, 'busy');
  gone = true;
  await Promise.all(uploads);
  await assert.rejects(fixture.buckets.describe(owner, 'busy'), (error) =>
    isAppError(error, 'bucket_not_found'),
  );
});

test("a limited key empties nothing, not even what it may touch, and another's bucket is not found", async () => {
  await fill('guarded', ['a/1', 'b/1']);
  for (const prefix of ['a/', '']) {
    const limited = { ...owner, bucketLimits: [{ bucket: 'guarded', prefix }] };
    const attempt = fixture.bucketEmptier.empty(limited, 'guarded');
    await assert.rejects(attempt, (error) => isAppError(error, 'scope_required'));
  }
  assert.equal((await fixture.buckets.describe(owner, 'guarded')).version_count, 6);
  const stranger = await fixture.newPrincipal('stranger');
  const attempt = fixture.bucketEmptier.empty(stranger, 'guarded');
  await assert.rejects(attempt, (error) => isAppError(error, 'bucket_not_found'));
});
