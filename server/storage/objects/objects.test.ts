import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { openStorageFixture, type StorageFixture, TEST_GRACE_MS } from '../../testing/storage-fixture.ts';
import { presentUpload } from '../listing/entries.ts';
import type { ObjectEntry, Uploaded } from '../schema.ts';
import { INLINE_MAX_BYTES } from '../uploads/upload.ts';

let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
});
after(() => fixture.close());

/** The content of a bucket by definition: the newest version of a name is live unless it is a marker. */
interface ModelVersion {
  readonly id: string;
  /** null: a delete marker. */
  readonly size: number | null;
  /** Created while versioning was off: the next such version replaces it, wherever it is. */
  readonly isNull: boolean;
  /** The version that owns the bytes: a restored version has those of the version it was copied from. */
  readonly blob: object;
}
interface Model {
  readonly bucket: string;
  versioning: boolean;
  /** Oldest version first. */
  readonly objects: Map<string, { readonly id: string; readonly versions: ModelVersion[] }>;
  /** Files of deleted versions. */
  garbage: number;
}

const SIZES = [0, 10, INLINE_MAX_BYTES, INLINE_MAX_BYTES + 1, 70_000];
const name = fc.constantFrom('a', 'b/c', 'ü');
const pick = fc.nat({ max: 5 });
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('put'), name, size: fc.constantFrom(...SIZES) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove'), name }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('removeVersion'), name, pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restore'), name, pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('relabel'), name, pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('toggle'), name }) },
);
type Step = { kind: string; name: string; size?: number; pick?: number };

/** `version` is already removed from the model. */
function drop(model: Model, { size, blob }: ModelVersion): void {
  const isShared = [...model.objects.values()].some(({ versions }) =>
    versions.some((one) => one.blob === blob),
  );
  if (!isShared && size !== null && size > INLINE_MAX_BYTES) model.garbage++;
}

/** Removes the null version when a new one is created. */
function replaceNull(model: Model, versions: ModelVersion[]): ModelVersion | undefined {
  const at = model.versioning ? -1 : versions.findIndex(({ isNull }) => isNull);
  return at < 0 ? undefined : versions.splice(at, 1)[0];
}

const top = (versions: readonly ModelVersion[]) => versions.at(-1);
const isLive = (versions: readonly ModelVersion[]) => typeof top(versions)?.size === 'number';

async function put(model: Model, { name, size = 0 }: Step): Promise<void> {
  const answer = await fixture.put(owner, model.bucket, { name, bytes: Buffer.alloc(size, name) });
  const object = model.objects.get(name) ?? { id: answer.object_id, versions: [] };
  assert.equal(answer.object_id, object.id, 'a name keeps its id');
  assert.equal(answer.size, size);
  const replaced = replaceNull(model, object.versions);
  if (replaced) drop(model, replaced);
  object.versions.push({ id: answer.version_id, size, isNull: !model.versioning, blob: {} });
  model.objects.set(name, object);
}

async function remove(model: Model, { name }: Step): Promise<void> {
  const object = model.objects.get(name);
  const id = object?.id ?? 'obj-00000000000000000000000000';
  if (!object || !isLive(object.versions)) {
    await assert.rejects(fixture.removals.remove(by(owner), id), (error) =>
      isAppError(error, 'object_not_found'),
    );
    return;
  }
  const answer = await fixture.removals.remove(by(owner), id);
  const replaced = replaceNull(model, object.versions);
  if (replaced) drop(model, replaced);
  const marks = model.versioning || object.versions.length > 0;
  assert.equal(answer.is_delete_marker, marks);
  assert.equal(answer.version_id === null, !marks);
  if (answer.version_id !== null) {
    object.versions.push({ id: answer.version_id, size: null, isNull: !model.versioning, blob: {} });
  }
  if (object.versions.length === 0) model.objects.delete(name);
}

async function removeVersion(model: Model, { name, pick = 0 }: Step): Promise<void> {
  const object = model.objects.get(name);
  const version = object?.versions[pick];
  if (!object) return;
  const id = version?.id ?? 'ver-00000000000000000000000000';
  const removal = fixture.removals.remove(by(owner), object.id, { versionId: id });
  if (!version) {
    await assert.rejects(removal, (error) => isAppError(error, 'version_not_found'));
    return;
  }
  assert.deepEqual(await removal, { id: object.id, deleted: true, version_id: id, is_delete_marker: false });
  object.versions.splice(pick, 1);
  drop(model, version);
  if (object.versions.length === 0) model.objects.delete(name);
}

async function restore(model: Model, { name, pick = 0 }: Step): Promise<void> {
  const object = model.objects.get(name);
  const version = object?.versions[pick];
  if (!object) return;
  const versionId = version?.id ?? 'ver-00000000000000000000000000';
  const restoring = fixture.objects.restore(by(owner), { objectId: object.id, versionId });
  if (!version || version.size === null) {
    await assert.rejects(restoring, (error) => isAppError(error, 'version_not_found'));
    return;
  }
  const answer = await restoring;
  assert.deepEqual([answer.object_id, answer.size], [object.id, version.size]);
  if (version === top(object.versions)) {
    assert.equal(answer.version_id, version.id, 'it was current');
    return;
  }
  const replaced = replaceNull(model, object.versions);
  object.versions.push({ ...version, id: answer.version_id, isNull: !model.versioning });
  if (replaced) drop(model, replaced);
}

async function relabel(model: Model, { name, pick = 0 }: Step): Promise<void> {
  const object = model.objects.get(name);
  const current = object && top(object.versions);
  if (!object || !current) return;
  const versions = await fixture.objects.relabel(by(owner), object.id, { mime_type: `x/${pick}` }).then(
    (answer) => [{ ...current, id: answer.version_id }],
    (error) => {
      assert.ok(current.size === null && isAppError(error, 'object_not_found'), String(error));
      return [];
    },
  );
  // Setting the current type again creates no version.
  if (versions.length === 0 || versions[0]?.id === current.id) return;
  const replaced = replaceNull(model, object.versions);
  object.versions.push(...versions.map((each) => ({ ...each, isNull: !model.versioning })));
  if (replaced) drop(model, replaced);
}

async function toggle(model: Model): Promise<void> {
  model.versioning = !model.versioning;
  await fixture.buckets.change(by(owner), model.bucket, { versioning: model.versioning });
}

const STEPS: Readonly<Record<string, (model: Model, step: Step) => Promise<void>>> = {
  put,
  remove,
  removeVersion,
  restore,
  relabel,
  toggle,
};

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) =>
  Buffer.compare(Buffer.from(a), Buffer.from(b));

async function list(bucket: string, versions: boolean): Promise<ObjectEntry[]> {
  const entries: ObjectEntry[] = [];
  for await (const text of fixture.listing.stream(owner, bucket, { prefix: '', versions })) {
    entries.push(JSON.parse(text));
  }
  return entries;
}

async function assertListings(model: Model): Promise<void> {
  const objects = [...model.objects].sort(byName);
  const live = objects.filter(([, { versions }]) => isLive(versions));
  assert.deepEqual(
    (await list(model.bucket, false)).map((entry) => [entry.name, entry.id, entry.size]),
    live.map(([named, { id, versions }]) => [named, id, top(versions)?.size]),
  );
  assert.deepEqual(
    (await list(model.bucket, true)).map((entry) => [
      ...[entry.name, entry.version_id, entry.size],
      ...[entry.is_latest, entry.is_delete_marker],
    ]),
    objects.flatMap(([named, { versions }]) =>
      versions.toReversed().map(({ id, size }, at) => [named, id, size ?? 0, at === 0, size === null]),
    ),
  );
}

/** Folders are sorted by the live version; objects with bytes behind a marker can be restored. */
async function assertBrowsing({ bucket, objects }: Model): Promise<void> {
  const wrong = await fixture.metadata.all(
    `SELECT o.name FROM objects o LEFT JOIN versions v ON v.id = o.current
     WHERE o.size_bytes IS NOT v.size_bytes OR o.changed_at IS NULL
     OR (o.current IS NOT NULL AND o.changed_at <> v.created_at)`,
  );
  assert.deepEqual(wrong, []);
  const deleted = await fixture.browsing.page(owner, bucket, { prefix: '', limit: 100, deleted: true });
  const restorable = [...objects].filter(
    ([named, { versions }]) =>
      !named.includes('/') && !isLive(versions) && versions.some(({ size }) => size !== null),
  );
  assert.deepEqual(
    deleted.entries
      .filter(({ kind }) => kind === 'object')
      .map(({ name, object }) => [name, object?.version_id]),
    restorable
      .sort(byName)
      .map(([named, { versions }]) => [named, versions.findLast(({ size }) => size !== null)?.id]),
  );
}

async function assertCounters(model: Model): Promise<void> {
  const all = [...model.objects.values()].flatMap(({ versions }) => versions);
  const live = [...model.objects.values()].flatMap(({ versions }) =>
    isLive(versions) ? [top(versions)?.size ?? 0] : [],
  );
  const stored = all.flatMap(({ size }) => (size === null ? [] : [size]));
  const sum = (sizes: number[]) => sizes.reduce((total, size) => total + size, 0);
  const bucket = await fixture.buckets.describe(owner, model.bucket);
  const { object_count, size, version_count, total_size } = bucket;
  assert.deepEqual(
    { object_count, size, version_count, total_size },
    { object_count: live.length, size: sum(live), version_count: stored.length, total_size: sum(stored) },
  );
  const totals = await fixture.metadata.get<{ counted: number; kept: number }>(
    `SELECT sum(b.total_bytes + b.metadata_bytes) AS counted, a.storage_bytes AS kept FROM accounts a JOIN buckets b ON b.account_id = a.id`,
  );
  assert.equal(totals?.kept, totals?.counted, 'the account is charged for what its buckets hold');
}

/** Every version has its blob, and every blob its version; deleted blobs are removed or waiting for it. */
async function assertBlobs(garbageSoFar: number): Promise<void> {
  const wrong = await fixture.metadata.all(
    `SELECT b.id FROM blobs b WHERE b.refs <> (SELECT count(*) FROM versions v WHERE v.blob = b.id)
     UNION ALL SELECT v.id FROM versions v WHERE v.blob IS NOT NULL AND v.blob NOT IN (SELECT id FROM blobs)
     UNION ALL SELECT b.id FROM blobs b WHERE b.refs = 0 AND b.name IS NULL
     UNION ALL SELECT b.id FROM blobs b WHERE (b.refs = 0) <> (b.id IN (SELECT blob FROM blob_garbage))`,
  );
  assert.deepEqual(wrong, []);
  const garbage = await fixture.metadata.all<{ not_before: number }>('SELECT not_before FROM blob_garbage');
  assert.equal(garbage.length, garbageSoFar);
  for (const { not_before } of garbage) assert.equal(not_before, fixture.clock.now() + TEST_GRACE_MS);
}

test('whatever is put, deleted and switched, listings, counters and blobs are what the rules say', async () => {
  let runs = 0;
  let garbageSoFar = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, versioning) => {
      const model: Model = { bucket: `bucket-${runs++}`, versioning, objects: new Map(), garbage: 0 };
      await fixture.buckets.create(by(owner), { name: model.bucket, versioning });
      for (const each of steps) {
        await STEPS[each.kind]?.(model, each);
        await assertListings(model);
        await assertCounters(model);
        await assertBrowsing(model);
      }
      garbageSoFar += model.garbage;
      await assertBlobs(garbageSoFar);
    }),
    { numRuns: cases(40) },
  );
});

test('every acknowledged version of 32 uploads at once is there once, the last on top', async () => {
  const bucket = 'many-at-once';
  await fixture.buckets.create(by(owner), { name: bucket, versioning: true });
  const keys = ['k1', 'k2'];
  const uploads = await Promise.all(
    Array.from({ length: 32 }, (_, i) =>
      fixture.put(owner, bucket, { name: keys[i % 2] ?? '', bytes: Buffer.from(`content ${i}`) }),
    ),
  );
  const entries = await list(bucket, true);
  assert.deepEqual(
    entries.map(({ version_id }) => version_id).sort(),
    uploads.map(({ version_id }) => version_id).sort(),
  );
  for (const key of keys) {
    assert.equal(entries.filter((entry) => entry.name === key && entry.is_latest).length, 1);
    assert.equal(new Set(entries.filter((entry) => entry.name === key).map(({ id }) => id)).size, 1);
  }
});

test('an upload into a bucket that was deleted meanwhile stores nothing', async () => {
  await fixture.buckets.create(by(owner), { name: 'short-lived' });
  const { bucket, upload } = await fixture.objects.beginUpload(owner, 'short-lived');
  await upload.write(Buffer.from('x'));
  const received = await upload.finish();
  await fixture.buckets.removeEmpty(by(owner), 'short-lived');
  await fixture.buckets.create(by(owner), { name: 'short-lived' });
  const naming = { name: 'x', mimeType: 'text/plain', metadata: null };
  const content = fixture.objects.received(received);
  const publishing = fixture.objects.publish(by(owner), { bucket, content, naming }, presentUpload);
  await assert.rejects(publishing, (error) => isAppError(error, 'bucket_not_found'));
  assert.deepEqual(await list('short-lived', true), []);
});

test("another account's object is as good as none, and a key's limits hold", async () => {
  await fixture.buckets.create(by(owner), { name: 'private' });
  const { object_id: id, version_id: version }: Uploaded = await fixture.put(owner, 'private', {
    name: 'docs/a',
    bytes: Buffer.from('x'),
  });
  const stranger = await fixture.newPrincipal('stranger');
  const limited = { ...owner, bucketLimits: [{ bucket: 'private', prefix: 'pictures/' }] };
  for (const principal of [stranger, limited]) {
    for (const attempt of [
      () => fixture.removals.remove(by(principal), id),
      () => fixture.removals.remove(by(principal), id, { versionId: version }),
      () => fixture.objectInspector.describe(principal, id, { limit: 1 }),
      () => fixture.downloads.find(principal, id),
      () => fixture.downloads.find(principal, id, version),
      () => fixture.downloads.find(principal, id, 'ver-none'),
    ]) {
      await assert.rejects(attempt, (error) => isAppError(error, 'object_not_found'));
    }
  }
  const { bucket, upload } = await fixture.objects.beginUpload(limited, 'private');
  await upload.end();
  const check = (named: string) => () => fixture.objects.assertMayWrite(limited, bucket, named);
  assert.doesNotThrow(check('pictures/x'));
  assert.throws(check('docs/a'), (error) => isAppError(error, 'scope_required'));
});
