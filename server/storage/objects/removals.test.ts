import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { AppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { assertStoredRows } from '../../testing/part-uploads-fixture.ts';
import { rejects, sharedStorage } from '../../testing/shared-storage.ts';
import type { StorageFixture } from '../../testing/storage-fixture.ts';

type Versioning = 'off' | 'on' | 'suspended';

let fixture: StorageFixture;
let owner: Principal;
let buckets = 0;
sharedStorage((shared) => {
  ({ fixture, owner } = shared);
});

async function turn(bucket: string, versioning: 'on' | 'suspended'): Promise<void> {
  await fixture.buckets.change(by(owner), bucket, { versioning: versioning === 'on' });
}

async function newBucket(versioning: Versioning): Promise<string> {
  const name = `bucket-${buckets++}`;
  await fixture.buckets.create(by(owner), { name, versioning: versioning !== 'off' });
  if (versioning === 'suspended') await turn(name, 'suspended');
  return name;
}

async function put(bucket: string, text: string, name = 'a'): Promise<string> {
  return (await fixture.put(owner, bucket, { name, bytes: Buffer.from(text) })).version_id;
}

const remove = (bucket: string, versionId?: string) =>
  fixture.removals
    .removeNamed(by(owner), bucket, { name: 'a', versionId })
    .then((removed) => removed?.answer ?? null);

/** Versions of `a`, oldest first, as `id`, `null id`, `marker id` or `null marker id`. */
async function stack(bucket: string): Promise<string[]> {
  const { id } = await fixture.buckets.find(owner, bucket);
  const object = await fixture.store.named(id, 'a');
  if (object === undefined) return [];
  const versions = await fixture.store.oldestVersions(object.id, 100);
  const top = versions.at(-1);
  assert.equal(object.current, top?.blob === null ? null : top?.id, 'the newest is current, unless a marker');
  return versions.map(({ is_null, blob, version_id }) =>
    [...(is_null === 1 ? ['null'] : []), ...(blob === null ? ['marker'] : []), version_id].join(' '),
  );
}

/** Version id of the marker that the removal created. */
async function mark(bucket: string): Promise<string> {
  const deleted = await remove(bucket);
  assert.deepEqual([deleted?.deleted, deleted?.is_delete_marker], [true, true]);
  return deleted?.version_id ?? assert.fail('no version id');
}

async function counters(bucket: string) {
  const { object_count, size, version_count, total_size } = await fixture.buckets.describe(owner, bucket);
  return [object_count, size, version_count, total_size];
}

describe('never versioned', () => {
  test('the object is gone, and a name that is missing is no error', async () => {
    const bucket = await newBucket('off');
    assert.equal(await remove(bucket), null);
    await put(bucket, 'one');
    const deleted = await remove(bucket);
    assert.deepEqual([deleted?.version_id, deleted?.is_delete_marker], [null, false]);
    assert.deepEqual(await stack(bucket), []);
    assert.equal(await remove(bucket), null);
    assert.deepEqual(await counters(bucket), [0, 0, 0, 0]);
  });

  test('its one version is the null version, by that name and by its own', async () => {
    const bucket = await newBucket('off');
    await put(bucket, 'one');
    const version = await put(bucket, 'two');
    assert.deepEqual(await stack(bucket), [`null ${version}`]);
    assert.equal((await remove(bucket, 'null'))?.version_id, version);
    const again = await put(bucket, 'three');
    assert.equal((await remove(bucket, again))?.version_id, again);
    assert.deepEqual(await stack(bucket), []);
    assert.equal(await remove(bucket, 'null'), null);
  });
});

describe('versioned', () => {
  test('each deletion adds a marker, also on a marker and on a name that is missing', async () => {
    const bucket = await newBucket('on');
    const first = await mark(bucket);
    const second = await mark(bucket);
    assert.deepEqual(await stack(bucket), [`marker ${first}`, `marker ${second}`]);
    assert.deepEqual(await counters(bucket), [0, 0, 0, 0]);
    const version = await put(bucket, 'four');
    const third = await mark(bucket);
    const all = [`marker ${first}`, `marker ${second}`, version, `marker ${third}`];
    assert.deepEqual(await stack(bucket), all);
    assert.deepEqual(await counters(bucket), [0, 0, 1, 4]);
  });

  test('a version or marker that is removed by its id uncovers the one before', async () => {
    const bucket = await newBucket('on');
    const [one, two] = [await put(bucket, 'one'), await put(bucket, 'second')];
    const [first, second] = [await mark(bucket), await mark(bucket)];
    await remove(bucket, second);
    assert.deepEqual(await stack(bucket), [one, two, `marker ${first}`]);
    assert.deepEqual(await counters(bucket), [0, 0, 2, 9]);
    await remove(bucket, first);
    assert.deepEqual(await counters(bucket), [1, 6, 2, 9]);
    await remove(bucket, two);
    assert.deepEqual(await counters(bucket), [1, 3, 1, 3]);
    await rejects(remove(bucket, two), 'version_not_found');
    await rejects(remove(bucket, 'null'), 'version_not_found');
    await remove(bucket, one);
    assert.deepEqual([await stack(bucket), await counters(bucket)], [[], [0, 0, 0, 0]]);
    assert.equal(await remove(bucket, one), null);
  });

  test('the null version of before stays below, and goes by its name', async () => {
    const bucket = await newBucket('off');
    const old = await put(bucket, 'old');
    await turn(bucket, 'on');
    const newer = await put(bucket, 'newer');
    const marker = await mark(bucket);
    assert.deepEqual(await stack(bucket), [`null ${old}`, newer, `marker ${marker}`]);
    assert.equal((await remove(bucket, 'null'))?.version_id, old);
    assert.deepEqual(await stack(bucket), [newer, `marker ${marker}`]);
    await rejects(remove(bucket, 'null'), 'version_not_found');
  });
});

describe('suspended', () => {
  test('a null marker takes the place of the null version, and other versions stay', async () => {
    const bucket = await newBucket('on');
    const kept = await put(bucket, 'kept');
    await turn(bucket, 'suspended');
    await put(bucket, 'null one');
    const replaced = await put(bucket, 'null two');
    assert.deepEqual(await stack(bucket), [kept, `null ${replaced}`]);
    assert.deepEqual(await counters(bucket), [1, 8, 2, 12]);
    await mark(bucket);
    const second = await mark(bucket);
    assert.deepEqual(await stack(bucket), [kept, `null marker ${second}`]);
    assert.deepEqual(await counters(bucket), [0, 0, 1, 4]);
    const back = await put(bucket, 'back');
    assert.deepEqual(await stack(bucket), [kept, `null ${back}`]);
    assert.equal((await remove(bucket, 'null'))?.version_id, back);
    assert.deepEqual(await counters(bucket), [1, 4, 1, 4]);
  });

  test('a version with its own id is covered, not removed, wherever the null version is', async () => {
    const bucket = await newBucket('off');
    await put(bucket, 'old');
    await turn(bucket, 'on');
    const kept = await put(bucket, 'kept');
    await turn(bucket, 'suspended');
    const marker = await mark(bucket);
    assert.deepEqual(await stack(bucket), [kept, `null marker ${marker}`]);
    assert.deepEqual(await counters(bucket), [0, 0, 1, 4]);
    await remove(bucket, 'null');
    assert.deepEqual(await stack(bucket), [kept]);
    assert.deepEqual(await counters(bucket), [1, 4, 1, 4]);
  });

  test('a name that is missing or was the null version only gets a null marker, and one only', async () => {
    const bucket = await newBucket('suspended');
    const first = await mark(bucket);
    assert.deepEqual(await stack(bucket), [`null marker ${first}`]);
    const second = await mark(bucket);
    assert.deepEqual(await stack(bucket), [`null marker ${second}`]);
    await put(bucket, 'one');
    const third = await mark(bucket);
    assert.deepEqual(await stack(bucket), [`null marker ${third}`]);
    await remove(bucket, 'null');
    assert.deepEqual(await stack(bucket), []);
  });

  test('versioned again, the null marker stays where it is', async () => {
    const bucket = await newBucket('suspended');
    const marker = await mark(bucket);
    await turn(bucket, 'on');
    const version = await put(bucket, 'one');
    const over = await mark(bucket);
    assert.deepEqual(await stack(bucket), [`null marker ${marker}`, version, `marker ${over}`]);
    await turn(bucket, 'suspended');
    const back = await put(bucket, 'back');
    assert.deepEqual(await stack(bucket), [version, `marker ${over}`, `null ${back}`]);
  });
});

test('deletions and uploads of one name at once are one after the other', async () => {
  for (const versioning of ['off', 'on', 'suspended'] as const) {
    const bucket = await newBucket(versioning);
    const work = Array.from({ length: 24 }, (_, at) =>
      at % 2 === 0 ? put(bucket, `${at}`) : remove(bucket),
    );
    await Promise.all(work);
    const versions = await stack(bucket);
    if (versioning === 'on') assert.equal(versions.length, 24);
    else assert.ok(versions.length <= 1);
    await assertStoredRows(fixture);
  }
});

test('a condition sees what is live, or that nothing is', async () => {
  const bucket = await newBucket('on');
  const seen: (string | undefined)[] = [];
  const condition = (live: { readonly version_id: string } | undefined) => {
    seen.push(live?.version_id);
    throw new AppError('precondition_failed', 'no');
  };
  const attempt = (versionId?: string) =>
    rejects(
      fixture.removals.removeNamed(by(owner), bucket, { name: 'a', versionId, condition }),
      'precondition_failed',
    );
  await attempt();
  const one = await put(bucket, 'one');
  await attempt();
  const marker = await mark(bucket);
  await attempt();
  await attempt(one);
  await attempt(marker);
  assert.deepEqual(seen, [undefined, one, undefined, one, undefined]);
  assert.equal((await stack(bucket)).length, 2);
});

test("beyond a key's limits nothing is removed, and a bucket of someone else is not found", async () => {
  const bucket = await newBucket('on');
  const version = await put(bucket, 'one');
  const limited = { ...owner, bucketLimits: [{ bucket, prefix: 'docs/' }] };
  for (const versionId of [undefined, version]) {
    const named = { name: 'a', versionId };
    await rejects(fixture.removals.removeNamed(by(limited), bucket, named), 'scope_required');
    const stranger = { ...owner, accountId: owner.accountId + 1000 };
    await rejects(fixture.removals.removeNamed(by(stranger), bucket, named), 'bucket_not_found');
  }
  assert.deepEqual(await stack(bucket), [version]);
});

test('a bucket that is being deleted gets no marker', async () => {
  const bucket = await newBucket('on');
  const row = await fixture.buckets.find(owner, bucket);
  await fixture.buckets.whileLeaving(row, () => rejects(remove(bucket), 'bucket_not_found'));
  assert.deepEqual(await stack(bucket), []);
});
