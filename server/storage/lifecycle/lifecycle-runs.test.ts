import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { Changes } from '../../metadata/change.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { DAY_MS, type LifecycleRule } from './lifecycle-rules.ts';
import { type LifecycleEvent, LifecycleRuns } from './lifecycle-runs.ts';
import { LifecycleSql } from './lifecycle-sql.ts';

const BYTES = Buffer.from('bytes');
let fixture: StorageFixture;
let owner: Principal;
let runs: LifecycleRuns;
const events: LifecycleEvent[] = [];

function newRuns(): LifecycleRuns {
  return new LifecycleRuns({
    ...fixture,
    changes: new Changes({ metadata: fixture.metadata }),
    store: new LifecycleSql(fixture.metadata),
    uploadStore: fixture.partUploadSql,
    dayMs: DAY_MS,
    announce: (event) => {
      events.push(event);
      return [];
    },
  });
}

before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('ager');
  runs = newRuns();
});
after(() => fixture.close());

let buckets = 0;
const rule = (fields: Partial<LifecycleRule>): LifecycleRule => {
  return { id: 'r', isEnabled: true, form: 'filter', ...fields };
};

async function newBucket(versioning: boolean, rules: readonly LifecycleRule[], principal = owner) {
  const name = `aging-${++buckets}`;
  await fixture.buckets.create(by(principal), { name, versioning });
  await fixture.buckets.configure(by(principal), name, ['lifecycle', { rules }]);
  return name;
}

async function listed(name: string, principal = owner) {
  const bucket = await fixture.buckets.find(principal, name);
  const all = { prefix: '', delimiter: '', after: null, before: null, limit: 10_000 };
  const { rows } = await fixture.names.versions(bucket, all);
  return rows.map((row) => `${row.name}${row.blob === null ? '!' : ''}`);
}

/** As in its events. */
function removedFrom(name: string): number {
  const told = events.filter(({ data }) => data.bucket === name);
  return told.reduce((sum, { data }) => sum + Number(data.removed), 0);
}

async function counters(name: string) {
  const { object_count, size, version_count, total_size } = await fixture.buckets.describe(owner, name);
  return [object_count, size, version_count, total_size];
}

test('a run goes over more versions than a slice has, at whatever version one ends', async () => {
  const name = await newBucket(true, [
    rule({ prefix: 'b/', noncurrentDays: 1, newerNoncurrent: 2 }),
    rule({ prefix: 'd/', days: 1 }),
    rule({ prefix: 'e', expiresMarkers: true }),
  ]);
  const put = (key: string) => fixture.put(owner, name, { name: key, bytes: BYTES });
  for (let i = 0; i < 3; i++) {
    for (const key of ['a', 'b/kept', 'c']) await put(key);
  }
  for (let i = 0; i < 700; i++) await put('b/many');
  for (let i = 0; i < 520; i++) await put(`d/${i}`);
  await fixture.removals.removeNamed(by(owner), name, { name: 'e' });
  fixture.clock.advance(3 * DAY_MS);
  await runs.run();
  const left = await listed(name);
  assert.deepEqual(
    left.filter((each) => each.startsWith('b/many')),
    ['b/many', 'b/many', 'b/many'],
  );
  assert.equal(left.filter((each) => each.startsWith('b/kept')).length, 3);
  assert.equal(left.filter((each) => /^d\/.*!$/.test(each)).length, 520);
  assert.deepEqual(
    left.filter((each) => /^[ace]/.test(each)),
    ['a', 'a', 'a', 'c', 'c', 'c'],
  );
  assert.deepEqual(await counters(name), [4, 20, 12 + 520, 5 * (12 + 520)]);
  assert.equal(removedFrom(name), 697 + 520 + 1);
});

test('a rule is run again at the next midnight only, and at once when it is changed', async () => {
  // Not at midnight itself.
  fixture.clock.advance(1000);
  const name = await newBucket(false, [rule({ days: 1 })]);
  await runs.run();
  await fixture.put(owner, name, { name: 'a', bytes: BYTES });
  for (const passed of [0, DAY_MS, DAY_MS - 2000]) {
    fixture.clock.advance(passed);
    await runs.run();
    assert.deepEqual(await listed(name), ['a'], `${passed}`);
  }
  await fixture.buckets.configure(by(owner), name, ['lifecycle', { rules: [rule({ date: 0 })] }]);
  await runs.run();
  assert.deepEqual(await listed(name), []);
  assert.deepEqual(await counters(name), [0, 0, 0, 0]);
});

test('an object of one account does not wait for a million of another', async () => {
  const other = await fixture.newPrincipal('neighbour');
  const large = await newBucket(false, [rule({ days: 1 })]);
  for (let i = 0; i < 1100; i++) await fixture.put(owner, large, { name: `k-${i}`, bytes: BYTES });
  const small = await newBucket(false, [rule({ days: 1 })], other);
  await fixture.put(other, small, { name: 'one', bytes: BYTES });
  fixture.clock.advance(3 * DAY_MS);
  const own = newRuns();
  const running = own.run();
  while ((await listed(small, other)).length > 0) await new Promise(setImmediate);
  assert.ok((await listed(large)).length >= 100, 'the larger bucket has not ended yet');
  own.stop();
  await running;
  assert.ok((await listed(large)).length > 0, 'it was stopped on the way');
  await newRuns().run();
  assert.deepEqual(await listed(large), []);
});

test('what is locked stays, and goes once it is free', async () => {
  const name = await newBucket(true, [rule({ noncurrentDays: 1 })]);
  await fixture.buckets.configure(by(owner), name, ['lock', {}]);
  const until = fixture.clock.now() + 4 * DAY_MS;
  const lock = { retention: { mode: 'COMPLIANCE', until } as const };
  await fixture.put(owner, name, { name: 'a', bytes: BYTES, lock });
  await fixture.put(owner, name, { name: 'a', bytes: BYTES });
  fixture.clock.advance(3 * DAY_MS);
  await runs.run();
  assert.equal((await listed(name)).length, 2);
  fixture.clock.jump(40 * DAY_MS);
  await runs.run();
  assert.equal((await listed(name)).length, 2, 'a clock that is set forward frees nothing');
  fixture.clock.jump(-40 * DAY_MS);
  fixture.clock.advance(2 * DAY_MS);
  await fixture.buckets.configure(by(owner), name, ['lifecycle', { rules: [rule({ noncurrentDays: 1 })] }]);
  await runs.run();
  assert.equal((await listed(name)).length, 1);
});

test('rules that are removed while they run remove no more', async () => {
  const name = await newBucket(false, [rule({ days: 1 })]);
  for (let i = 0; i < 600; i++) await fixture.put(owner, name, { name: `k-${i}`, bytes: BYTES });
  fixture.clock.advance(3 * DAY_MS);
  const running = newRuns().run();
  while ((await listed(name)).length === 600) await new Promise(setImmediate);
  await fixture.buckets.configure(by(owner), name, ['lifecycle', undefined]);
  const { length } = await listed(name);
  await running;
  assert.ok(length > 0 && (await listed(name)).length === length, `${length}`);
  assert.equal(removedFrom(name), 600 - length, 'what went is told');
});

test('rules of a bucket whose row is damaged remove nothing, and keep its account from nothing', async () => {
  const damaged = await newBucket(true, [rule({ days: 1 })]);
  const name = await newBucket(false, [rule({ days: 1 })]);
  for (const bucket of [damaged, name]) await fixture.put(owner, bucket, { name: 'a', bytes: BYTES });
  // Without versions, expired objects would be deleted permanently.
  const flip = { sql: 'UPDATE buckets SET versioning = 0 WHERE name = ?', params: [damaged] };
  await fixture.metadata.commit([flip]);
  fixture.clock.advance(3 * DAY_MS);
  await newRuns().run();
  const { entries } = await fixture.listing.page(owner, damaged, { prefix: '', limit: 9, versions: true });
  assert.deepEqual([entries.length, await listed(name)], [1, []]);
});

test('what went before a crash is told later, also when the rules are removed meanwhile', async () => {
  for (const rules of [[rule({ days: 1 })], undefined]) {
    const name = await newBucket(false, [rule({ days: 1 })]);
    await fixture.put(owner, name, { name: 'a', bytes: BYTES });
    const { id } = await fixture.buckets.find(owner, name);
    // The state after the commit of a removal.
    await fixture.metadata.commit([new LifecycleSql(fixture.metadata).noteRemoved(id, 7)]);
    await fixture.buckets.configure(by(owner), name, ['lifecycle', rules && { rules }]);
    await newRuns().run();
    assert.equal(removedFrom(name), 7);
    fixture.clock.advance(3 * DAY_MS);
    await newRuns().run();
    assert.equal(removedFrom(name), rules === undefined ? 7 : 8);
  }
});

test('a bucket that fails keeps others from nothing, and is told', async () => {
  const other = await fixture.newPrincipal('unlucky');
  const broken = await newBucket(false, [rule({ days: 1 })], other);
  const name = await newBucket(false, [rule({ days: 1 })]);
  await fixture.put(owner, name, { name: 'a', bytes: BYTES });
  const sql = "UPDATE buckets SET lifecycle_cursor = 'no JSON' WHERE name = ?";
  await fixture.metadata.commit([{ sql, params: [broken] }]);
  fixture.clock.advance(3 * DAY_MS);
  await assert.rejects(newRuns().run(), SyntaxError);
  assert.deepEqual(await listed(name), []);
});
