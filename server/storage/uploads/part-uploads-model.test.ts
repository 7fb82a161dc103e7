import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { by } from '../../testing/account-fixture.ts';
import { cases } from '../../testing/cases.ts';
import {
  assertStoredRows,
  partUploadsOf,
  type TestPartUploads,
  type TestUpload,
} from '../../testing/part-uploads-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { INLINE_MAX_BYTES } from './upload.ts';

let fixture: StorageFixture;
let owner: Principal;
let uploads: TestPartUploads;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  uploads = partUploadsOf(fixture, owner);
});
after(() => fixture.close());

interface ModelVersion {
  readonly id: string;
  /** null: a delete marker. */
  readonly bytes: Buffer | null;
  readonly isNull: boolean;
}
interface ModelUpload extends TestUpload {
  readonly parts: Map<number, Buffer>;
  /** Set once it is completed. */
  bytes?: Buffer;
  state: 'open' | 'aborted' | string;
}
interface Model {
  readonly bucket: string;
  versioning: 'off' | 'on' | 'suspended';
  /** Oldest version first. */
  readonly objects: Map<string, ModelVersion[]>;
  readonly uploads: ModelUpload[];
}

const SIZES = [0, 10, INLINE_MAX_BYTES, INLINE_MAX_BYTES + 1, 50_000];
const name = fc.constantFrom('a', 'b/c');
const pick = fc.nat({ max: 3 });
const number = fc.integer({ min: 1, max: 3 });
const size = fc.constantFrom(...SIZES);
const kind = <K extends string>(of: K) => fc.constant(of);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: kind('begin'), name }) },
  { weight: 8, arbitrary: fc.record({ kind: kind('putPart'), pick, number, size }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('complete'), pick, number }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('abort'), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('put'), name, size }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('remove'), name }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('removeVersion'), name, pick }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('restore'), name, pick }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('toggle') }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('sweep') }) },
);
interface Step {
  readonly kind: string;
  readonly name?: string;
  readonly pick?: number;
  readonly number?: number;
  readonly size?: number;
}

const versionsOf = (model: Model, named: string) => model.objects.get(named) ?? [];

/** The new version or marker; without versioning it replaces the null version. */
function place(model: Model, named: string, made: Omit<ModelVersion, 'isNull'>): void {
  const isNull = model.versioning !== 'on';
  const rest = versionsOf(model, named).filter((version) => !(isNull && version.isNull));
  model.objects.set(named, [...rest, { ...made, isNull }]);
}

async function objectId(model: Model, named: string): Promise<string> {
  const { id } = await fixture.buckets.find(owner, model.bucket);
  return (await fixture.store.named(id, named))?.object_id ?? assert.fail(`no ${named}`);
}

async function assertEnded(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => isAppError(error, 'upload_not_found'));
}

async function begin(model: Model, { name = '' }: Step): Promise<void> {
  const upload = await uploads.begin(model.bucket, name);
  model.uploads.push({ ...upload, parts: new Map(), state: 'open' });
}

async function putPart(model: Model, { pick = 0, number = 1, size = 0 }: Step): Promise<void> {
  const upload = model.uploads.at(-1 - pick);
  if (!upload) return;
  const bytes = randomSecret(size);
  const putting = uploads.put(upload, number, bytes);
  if (upload.state !== 'open') return assertEnded(putting);
  await putting;
  upload.parts.set(number, bytes);
}

/** Omits the part with this number. */
async function complete(model: Model, { pick = 0, number = 0 }: Step): Promise<void> {
  const upload = model.uploads.at(-1 - pick);
  if (!upload) return;
  const numbers = [...upload.parts.keys()].sort().filter((each) => each !== number);
  if (upload.state === 'open' && numbers.length === 0) return;
  const completing = uploads.complete(upload, numbers);
  if (upload.state === 'aborted') return assertEnded(completing);
  const { version_id: id } = await completing;
  if (upload.state !== 'open') {
    assert.equal(id, upload.state, 'completed before');
    return;
  }
  upload.state = id;
  const bytes = Buffer.concat(numbers.map((each) => upload.parts.get(each) ?? assert.fail()));
  upload.bytes = bytes;
  place(model, upload.name, { id, bytes });
}

async function abort(model: Model, { pick = 0 }: Step): Promise<void> {
  const upload = model.uploads.at(-1 - pick);
  if (!upload) return;
  if (upload.state !== 'open') return assertEnded(uploads.abort(upload));
  await uploads.abort(upload);
  upload.state = 'aborted';
}

async function put(model: Model, { name = '', size = 0 }: Step): Promise<void> {
  const bytes = randomSecret(size);
  const { version_id: id } = await fixture.put(owner, model.bucket, { name, bytes });
  place(model, name, { id, bytes });
}

async function remove(model: Model, { name = '' }: Step): Promise<void> {
  const deleted = (await fixture.removals.removeNamed(by(owner), model.bucket, { name }))?.answer ?? null;
  if (model.versioning === 'off') model.objects.delete(name);
  else place(model, name, { id: deleted?.version_id ?? assert.fail(), bytes: null });
}

async function removeVersion(model: Model, { name = '', pick = 0 }: Step): Promise<void> {
  const versions = versionsOf(model, name);
  const version = versions[pick];
  if (!version) return;
  const versionId = version.isNull ? 'null' : version.id;
  await fixture.removals.removeNamed(by(owner), model.bucket, { name, versionId });
  versions.splice(pick, 1);
  if (versions.length === 0) model.objects.delete(name);
}

async function restore(model: Model, { name = '', pick = 0 }: Step): Promise<void> {
  const versions = versionsOf(model, name);
  const version = versions[pick];
  if (!version?.bytes || version === versions.at(-1)) return;
  const restored = { objectId: await objectId(model, name), versionId: version.id };
  const { version_id: id } = await fixture.objects.restore(by(owner), restored);
  place(model, name, { id, bytes: version.bytes });
}

/** A completed upload is forgotten with the last version of its bytes. */
async function sweep(model: Model): Promise<void> {
  await uploads.sweep();
  const kept = new Set([...model.objects.values()].flat().map(({ bytes }) => bytes));
  for (const upload of model.uploads) if (upload.bytes && !kept.has(upload.bytes)) upload.state = 'aborted';
}

async function toggle(model: Model): Promise<void> {
  model.versioning = model.versioning === 'on' ? 'suspended' : 'on';
  await fixture.buckets.change(by(owner), model.bucket, { versioning: model.versioning === 'on' });
}

const STEPS: Readonly<Record<string, (model: Model, step: Step) => Promise<void>>> = {
  begin,
  putPart,
  complete,
  abort,
  put,
  remove,
  removeVersion,
  restore,
  toggle,
  sweep,
};

async function assertVersions(model: Model): Promise<void> {
  const { id } = await fixture.buckets.find(owner, model.bucket);
  assert.equal((await fixture.store.objectIds(id, 10)).length, model.objects.size);
  for (const [named, versions] of model.objects) {
    const object = (await fixture.store.named(id, named)) ?? assert.fail(`no ${named}`);
    const stored = await fixture.store.oldestVersions(object.id, 100);
    assert.deepEqual(
      stored.map((row) => [row.version_id, row.size_bytes, row.blob === null, row.is_null === 1]),
      versions.map((version) => [
        ...[version.id, version.bytes?.length ?? 0],
        ...[version.bytes === null, version.isNull],
      ]),
    );
    for (const { id: versionId, bytes } of versions) {
      if (bytes === null) continue;
      const content = await fixture.downloads.find(owner, object.object_id, versionId);
      assert.ok((await uploads.read(content)).equals(bytes), `${named} ${versionId}`);
    }
  }
}

async function assertNothingLeft(): Promise<void> {
  for (const table of ['blobs', 'blob_garbage', 'uploads', 'upload_parts', 'versions']) {
    assert.deepEqual(await fixture.metadata.all(`SELECT * FROM ${table} LIMIT 1`), [], table);
  }
  assert.deepEqual(await Array.fromAsync(fixture.blobs.list()), []);
}

test('whatever is begun, put, completed and deleted, the bytes are those of the parts and nothing is left over', async () => {
  let runs = 0;
  const settings = fc.record({ isVersioned: fc.boolean(), encryption: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 40, size: 'max' }),
      settings,
      async (steps, { isVersioned, encryption }) => {
        const bucket = `bucket-${runs++}`;
        const model: Model = {
          bucket,
          versioning: isVersioned ? 'on' : 'off',
          objects: new Map(),
          uploads: [],
        };
        await fixture.buckets.create(by(owner), { name: bucket, versioning: isVersioned, encryption });
        for (const each of steps) {
          await STEPS[each.kind]?.(model, each);
          await assertStoredRows(fixture);
        }
        await assertVersions(model);
        await uploads.sweep();
        await assertStoredRows(fixture);
        await assertVersions(model);
        await fixture.bucketEmptier.remove(by(owner), bucket);
        await assertStoredRows(fixture);
        await uploads.sweep();
        await assertNothingLeft();
      },
    ),
    { numRuns: cases(60) },
  );
});
