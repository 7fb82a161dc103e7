import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { AppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { LockMode } from './object-lock.ts';

const DAY_MS = 86_400_000;
const BYTES = Buffer.from('kept bytes');

let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('keeper');
});
after(() => fixture.close());

let buckets = 0;

/** A version that is locked for a day, in its own bucket. */
async function newKept(mode: LockMode = 'COMPLIANCE') {
  const bucket = `kept-${++buckets}`;
  const settings = { lock: {} };
  await fixture.buckets.create(by(owner), { name: bucket, versioning: true, settings });
  const retention = { mode, until: fixture.clock.now() + DAY_MS };
  const object = { name: 'a', bytes: BYTES, lock: { retention } };
  const { object_id, version_id: versionId } = await fixture.put(owner, bucket, object);
  const remove = (bypass = false) =>
    fixture.removals.removeNamed(by(owner), bucket, { name: 'a', versionId, bypass });
  const force = () => fixture.bucketEmptier.remove(by(owner), bucket);
  return { bucket, object_id, versionId, remove, force };
}

async function refusesLocked(work: () => Promise<unknown>): Promise<void> {
  const isLocked = (error: unknown) => error instanceof AppError && error.code === 'object_locked';
  await assert.rejects(work, isLocked);
}

test('a clock that is set forward frees nothing; time that passes does', async () => {
  const { remove, force, bucket } = await newKept();
  fixture.clock.jump(400 * DAY_MS);
  await refusesLocked(remove);
  await refusesLocked(force);
  fixture.clock.jump(-400 * DAY_MS);
  fixture.clock.advance(DAY_MS - 1000);
  await refusesLocked(remove);
  fixture.clock.advance(2000);
  assert.equal((await force()).name, bucket);
});

test('a clock that is set back does not end it before the date that is shown', async () => {
  const { remove } = await newKept();
  fixture.clock.jump(-10 * DAY_MS);
  fixture.clock.advance(5 * DAY_MS);
  await refusesLocked(remove);
  fixture.clock.jump(10 * DAY_MS);
  await remove();
});

test('setting the same date again under a clock that was set forward shortens nothing', async () => {
  const { object_id, versionId, remove } = await newKept();
  const object = await fixture.objects.findFor(owner, object_id);
  const row = await fixture.store.versionById(object.id, versionId);
  assert.ok(row?.retain_until);
  fixture.clock.jump(DAY_MS - 1000);
  const retention = { mode: 'COMPLIANCE', until: row.retain_until } as const;
  const version = { id: row.id, object_id };
  await fixture.objects.setLock(by(owner), version, { retention, bypass: false });
  fixture.clock.advance(5000);
  await refusesLocked(remove);
  fixture.clock.jump(1000 - DAY_MS);
});

test('the commit itself refuses, whatever was read before', async () => {
  const { object_id, versionId } = await newKept('GOVERNANCE');
  const object = await fixture.objects.findFor(owner, object_id);
  const row = await fixture.store.versionById(object.id, versionId);
  assert.ok(row);
  const time = { wallMs: fixture.clock.now(), steadyMs: fixture.clock.now() };
  const commit = (bypass: boolean) =>
    fixture.metadata.commit([fixture.store.deleteVersion(row, time, bypass)]);
  await assert.rejects(commit(false), /rejected|expect/i);
  await fixture.objects.setLock(by(owner), { id: row.id, object_id }, { legalHold: true });
  await assert.rejects(commit(true), /rejected|expect/i);
  assert.ok(await fixture.store.versionById(object.id, versionId));
});

test('an account that is closed keeps what is locked', async () => {
  const leaver = await fixture.newPrincipal('leaver');
  const name = 'left-behind';
  await fixture.buckets.create(by(leaver), { name, versioning: true, settings: { lock: {} } });
  const retention = { mode: 'COMPLIANCE', until: fixture.clock.now() + DAY_MS } as const;
  const put = await fixture.put(leaver, name, { name: 'a', bytes: BYTES, lock: { retention } });
  await fixture.removeAccount(leaver);
  await refusesLocked(() => fixture.bucketEmptier.remove(by(leaver), name));
  await refusesLocked(() => fixture.removals.removeOldest(leaver, put.object_id));
  await fixture.openSweeper().sweepGarbage();
  const content = await fixture.downloads.find(leaver, put.object_id);
  assert.deepEqual(Buffer.from(content.inline ?? []), BYTES);
});

test('versioning that is suspended and a lock that is enabled at once do not both succeed', async () => {
  for (let round = 0; round < 10; round++) {
    const name = `both-${round}`;
    await fixture.buckets.create(by(owner), { name, versioning: true });
    await Promise.allSettled([
      fixture.buckets.change(by(owner), name, { versioning: false }),
      fixture.buckets.configure(by(owner), name, ['lock', {}]),
    ]);
    const { versioning, object_lock } = await fixture.buckets.describe(owner, name);
    assert.ok(versioning || !object_lock);
  }
});
