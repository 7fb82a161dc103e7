import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import { type Answer, Client } from '../harness/client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';
import { bodyOf, listOf, newBucket } from './storage-kit.ts';

let cloud: CloudProcess;
let user: Client;
before(async () => {
  cloud = await sharedCloud();
  user = await new Client(cloud.api).newUser();
});

type Step =
  | { readonly kind: 'upload'; readonly name: string; readonly size: number }
  | { readonly kind: 'delete'; readonly name: string }
  | { readonly kind: 'purge'; readonly name: string; readonly at: number }
  | { readonly kind: 'toggle'; readonly versioning: boolean };

const name = fc.constantFrom('a', 'b', 'c');
const size = fc.constantFrom(0, 1, 100, 16_384, 16_385, 70_000);
const upload = fc.record({ kind: fc.constant('upload' as const), name, size });
const removal = fc.record({ kind: fc.constant('delete' as const), name });
const purge = fc.record({ kind: fc.constant('purge' as const), name, at: fc.nat(5) });
const toggle = fc.record({ kind: fc.constant('toggle' as const), versioning: fc.boolean() });

interface Version {
  readonly id: string;
  /** null: a delete marker. */
  readonly size: number | null;
}

interface Known {
  readonly id: string;
  /** Newest first. */
  readonly versions: Version[];
}

/** The expected content of the bucket, according to the contract. */
class Model {
  readonly versioning: boolean;
  readonly objects = new Map<string, Known>();

  constructor(versioning: boolean) {
    this.versioning = versioning;
  }

  upload(name: string, { object_id, version_id, size }: Answer['body']): void {
    const known = this.objects.get(name);
    if (known) assert.equal(object_id, known.id, 'the id stands for bucket and name');
    const older = this.versioning ? (known?.versions ?? []) : [];
    this.objects.set(name, { id: object_id, versions: [{ id: version_id, size }, ...older] });
  }

  delete(name: string, { version_id }: Answer['body']): void {
    const known = this.objects.get(name) ?? assert.fail();
    if (this.versioning) known.versions.unshift({ id: version_id, size: null });
    else this.objects.delete(name);
  }

  purge(name: string, at: number): void {
    const known = this.objects.get(name) ?? assert.fail();
    known.versions.splice(at, 1);
    if (known.versions.length === 0) this.objects.delete(name);
  }

  get entries(): unknown[] {
    return [...this.objects]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, { id, versions }]) =>
        versions.map((version, at) => [
          name,
          id,
          version.id,
          version.size ?? 0,
          version.size === null,
          at === 0,
        ]),
      );
  }
}

/** The four counters, computed from a listing. */
function sums(entries: Answer['body'][]): unknown {
  const live = entries.filter((entry) => entry.is_latest && !entry.is_delete_marker);
  const all = entries.filter((entry) => !entry.is_delete_marker);
  const bytes = (some: Answer['body'][]) => some.reduce((sum, entry) => sum + entry.size, 0);
  return { objects: live.length, size: bytes(live), versions: all.length, total: bytes(all) };
}

async function counters(bucket: string): Promise<unknown> {
  const body = bodyOf(await user.call(`/api/buckets/${bucket}`));
  return {
    objects: body.object_count,
    size: body.size,
    versions: body.version_count,
    total: body.total_size,
  };
}

async function play(bucket: string, model: Model, step: Step): Promise<void> {
  if (step.kind === 'toggle') return;
  const known = model.objects.get(step.name);
  if (step.kind === 'upload') {
    model.upload(step.name, bodyOf(await user.upload(bucket, step.name, Buffer.alloc(step.size, 'x'))));
    return;
  }
  const query = step.kind === 'purge' ? `?version_id=${known?.versions[step.at]?.id ?? 'ver-none'}` : '';
  const path = `/api/storage/${known?.id ?? 'obj-none'}${query}`;
  const answer = await user.call(path, { method: 'DELETE' });
  const there = step.kind === 'purge' ? known?.versions[step.at] : known && known.versions[0]?.size !== null;
  assert.equal(answer.status, there ? 200 : 404, JSON.stringify(answer.body));
  if (!there) return;
  if (step.kind === 'purge') model.purge(step.name, step.at);
  else model.delete(step.name, answer.body);
}

for (const versioning of [false, true]) {
  test(`${versioning ? 'with' : 'without'} versioning, bucket and counters are what the model says`, async () => {
    const steps = fc.array(fc.oneof({ arbitrary: upload, weight: 3 }, removal, purge), {
      minLength: 10,
      maxLength: 40,
    });
    const property = fc.asyncProperty(steps, async (played) => {
      const bucket = await newBucket(user, { versioning });
      const model = new Model(versioning);
      for (const step of played) {
        await play(bucket, model, step);
        const entries = await listOf(user, bucket, '?include_versions=true');
        const shown = entries.map((entry) => [
          entry.name,
          entry.id,
          entry.version_id,
          entry.size,
          entry.is_delete_marker,
          entry.is_latest,
        ]);
        assert.deepEqual(shown, model.entries);
        assert.deepEqual(await counters(bucket), sums(entries));
      }
    });
    await fc.assert(property, { numRuns: 8 });
  });
}

/** Any step on any bucket; refusals are expected. */
async function tryStep(bucket: string, step: Step): Promise<void> {
  if (step.kind === 'toggle') {
    const json = { versioning: step.versioning };
    bodyOf(await user.call(`/api/buckets/${bucket}`, { method: 'PATCH', json }));
    return;
  }
  if (step.kind === 'upload') {
    bodyOf(await user.upload(bucket, step.name, Buffer.alloc(step.size, 'y')));
    return;
  }
  const entries = await listOf(user, bucket, `?include_versions=true&prefix=${step.name}`);
  const entry = entries[step.kind === 'purge' ? step.at : 0];
  if (!entry) return;
  const query = step.kind === 'purge' ? `?version_id=${entry.version_id}` : '';
  const { status } = await user.call(`/api/storage/${entry.id}${query}`, { method: 'DELETE' });
  assert.ok(status === 200 || status === 404, `${status}`);
}

async function assertConsistent(bucket: string): Promise<void> {
  const entries = await listOf(user, bucket, '?include_versions=true');
  assert.deepEqual(await counters(bucket), sums(entries));
  const live = await listOf(user, bucket);
  assert.deepEqual(
    live.map(({ id }) => id),
    entries.filter((entry) => entry.is_latest && !entry.is_delete_marker).map(({ id }) => id),
  );
  const latest = entries.filter(({ is_latest }) => is_latest);
  assert.equal(latest.length, new Set(entries.map(({ id }) => id)).size, 'each object has one latest entry');
}

const mixed = fc.array(fc.oneof({ arbitrary: upload, weight: 3 }, removal, purge, toggle), {
  minLength: 20,
  maxLength: 60,
});

test('while versioning is turned on and off, the counters agree with the listing', async () => {
  const property = fc.asyncProperty(mixed, async (steps) => {
    const bucket = await newBucket(user);
    for (const step of steps) {
      await tryStep(bucket, step);
      await assertConsistent(bucket);
    }
  });
  await fc.assert(property, { numRuns: 8 });
});

test('when everything happens at once, the counters agree with the listing', async () => {
  const property = fc.asyncProperty(mixed, async (steps) => {
    const bucket = await newBucket(user, { versioning: true });
    await Promise.all(steps.map((step) => tryStep(bucket, step)));
    await assertConsistent(bucket);
    bodyOf(await user.call(`/api/buckets/${bucket}?force=true`, { method: 'DELETE' }));
  });
  await fc.assert(property, { numRuns: 8 });
});
