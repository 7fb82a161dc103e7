import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Principal } from '../../calls/principal.ts';
import { CommitRejected } from '../../metadata/metadata.ts';
import { MOST_RESTING, REST_MS, RestingNamesStore } from '../../metadata/resting-names-store.ts';
import { type ErrorCode, isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { columnsOf, isSoundBucket, likeOf } from './bucket-sql.ts';

let fixture: StorageFixture;
let owner: Principal;
let stranger: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  stranger = await fixture.newPrincipal('stranger');
});
after(() => fixture.close());

const refuses = (attempt: () => Promise<unknown>, code: ErrorCode) =>
  assert.rejects(attempt, (error) => isAppError(error, code));

test('the record of the answer is part of the commit: refused together, stored together', async () => {
  const sql = 'INSERT INTO settings (name, value) VALUES (?, ?)';
  await fixture.buckets.create(by(owner), { name: 'recorded' });
  const call = () => ({
    principal: owner,
    record: (answer: unknown) => [{ sql, params: ['record', JSON.stringify(answer)] }],
  });
  const changed = await fixture.buckets.change(call(), 'recorded', { versioning: true });
  const stored = await fixture.metadata.get("SELECT value FROM settings WHERE name = 'record'");
  assert.deepEqual(stored, { value: JSON.stringify(changed) });
  await assert.rejects(fixture.buckets.change(call(), 'recorded', { versioning: false }), CommitRejected);
  await assert.rejects(fixture.buckets.removeEmpty(call(), 'recorded'), CommitRejected);
  assert.deepEqual(await fixture.buckets.describe(owner, 'recorded'), changed);
});

test('a bucket has what was asked for, and defaults otherwise', async () => {
  const counters = { object_count: 0, size: 0, size_formatted: '0.00 B', version_count: 0, total_size: 0 };
  const empty = { ...counters, metadata_size: 0, object_lock: false };
  const created_at = '2026-01-01 00:00:00';
  const plain = { name: 'plain', region: 'us-east-1', versioning: false, encryption: false };
  assert.deepEqual(await fixture.buckets.create(by(owner), { name: 'plain' }), {
    ...plain,
    ...empty,
    created_at,
  });
  const special = { name: 'special', region: 'eu-1', versioning: true, encryption: true };
  const made = await fixture.buckets.create(by(owner), special);
  assert.deepEqual(made, { ...special, ...empty, created_at });
  assert.deepEqual(await fixture.buckets.describe(owner, 'special'), made);
});

test('no column of buckets is forgotten: settings are copied, and under a checksum', async () => {
  await fixture.buckets.create(by(owner), { name: 'first' });
  const [first] = await fixture.metadata.all<Record<string, unknown>>('SELECT * FROM buckets LIMIT 1');
  const known = columnsOf('identity', 'setting', 'counter', 'checksum', 'state');
  assert.deepEqual(Object.keys(first ?? {}).sort(), known.toSorted(), 'bucket-sql.ts: COLUMNS');
  const like = { region: 'eu-1', versioning: 2, encryption: 1, settings: '{"tags":{"a":"b"}}' };
  await fixture.buckets.create(by(owner), { name: 'like', like });
  const row = await fixture.buckets.find(owner, 'like');
  assert.deepEqual(likeOf(row), like);
  for (const column of columnsOf('setting')) {
    assert.ok(!isSoundBucket({ ...row, [column]: column === 'settings' ? null : 7 }), column);
  }
});

test('a name is unique per account, and refused when it breaks the rules', async () => {
  await fixture.buckets.create(by(owner), { name: 'mine' });
  await refuses(() => fixture.buckets.create(by(owner), { name: 'mine' }), 'bucket_exists');
  await fixture.buckets.create(by(stranger), { name: 'mine' });
  await refuses(() => fixture.buckets.create(by(owner), { name: 'Mine' }), 'invalid_bucket_name');
});

test('of creations at once exactly one succeeds', async () => {
  const results = await Promise.allSettled(
    Array.from({ length: 8 }, () => fixture.buckets.create(by(owner), { name: 'race' })),
  );
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const result of results) {
    if (result.status === 'rejected') assert.ok(isAppError(result.reason, 'bucket_exists'));
  }
});

test("another account's bucket is as good as none", async () => {
  await fixture.buckets.create(by(owner), { name: 'hidden' });
  await refuses(() => fixture.buckets.describe(stranger, 'hidden'), 'bucket_not_found');
  await refuses(
    () => fixture.buckets.change(by(stranger), 'hidden', { versioning: true }),
    'bucket_not_found',
  );
  await refuses(() => fixture.buckets.removeEmpty(by(stranger), 'hidden'), 'bucket_not_found');
  await refuses(() => fixture.objects.beginUpload(stranger, 'hidden'), 'bucket_not_found');
});

test('settings change one by one', async () => {
  await fixture.buckets.create(by(owner), { name: 'settings', encryption: true });
  const on = await fixture.buckets.change(by(owner), 'settings', { versioning: true });
  assert.deepEqual([on.versioning, on.encryption], [true, true]);
  const off = await fixture.buckets.change(by(owner), 'settings', { encryption: false });
  assert.deepEqual([off.versioning, off.encryption], [true, false]);
  assert.deepEqual(await fixture.buckets.change(by(owner), 'settings', {}), off);
});

test('settings changed at the same time are all kept, and of a bucket that goes it is said', async () => {
  for (let round = 0; round < 20; round++) {
    const name = `both-${round}`;
    await fixture.buckets.create(by(owner), { name });
    await Promise.all([
      fixture.buckets.change(by(owner), name, { versioning: true }),
      fixture.buckets.change(by(owner), name, { encryption: true }),
    ]);
    const { versioning, encryption } = await fixture.buckets.describe(owner, name);
    assert.deepEqual([versioning, encryption], [true, true]);
    const removal = fixture.buckets.removeEmpty(by(owner), name);
    await refuses(() => fixture.buckets.change(by(owner), name, { versioning: false }), 'bucket_not_found');
    await removal;
  }
});

test('a bucket is only removed when nothing at all is in it', async () => {
  await fixture.buckets.create(by(owner), { name: 'full', versioning: true });
  const { object_id, version_id } = await fixture.put(owner, 'full', { name: 'x', bytes: Buffer.from('x') });
  await refuses(() => fixture.buckets.removeEmpty(by(owner), 'full'), 'bucket_not_empty');
  const marker = await fixture.removals.remove(by(owner), object_id);
  await fixture.removals.remove(by(owner), object_id, { versionId: version_id });
  await refuses(() => fixture.buckets.removeEmpty(by(owner), 'full'), 'bucket_not_empty');
  await fixture.removals.remove(by(owner), object_id, { versionId: marker.version_id ?? '' });
  assert.equal((await fixture.buckets.removeEmpty(by(owner), 'full')).name, 'full');
  await refuses(() => fixture.buckets.describe(owner, 'full'), 'bucket_not_found');
});

/** As in the list. */
const nameOf = (listed: object): string => JSON.parse(JSON.stringify(listed)).name;

test('the list is oldest first, and pages of any size give the same', async () => {
  const lister = await fixture.newPrincipal('lister');
  const names = ['zz1', 'aa1', 'mm1', 'bb1', 'cc1'];
  for (const name of names) await fixture.buckets.create(by(lister), { name });
  for (let limit = 1; limit <= 6; limit++) {
    const seen: string[] = [];
    for (let after = 0; ; ) {
      const page = await Array.fromAsync(fixture.buckets.list(lister, after, limit));
      assert.ok(page.length <= limit);
      seen.push(...page.map(nameOf));
      const last = page.at(-1);
      if (!last) break;
      after = last.id;
    }
    assert.deepEqual(seen, names);
  }
});

test('a limited key sees its buckets only and changes none', async () => {
  await fixture.buckets.create(by(owner), { name: 'shown' });
  await fixture.buckets.create(by(owner), { name: 'unseen' });
  const limited = { ...owner, bucketLimits: [{ bucket: 'shown', prefix: 'a/' }] };
  const listed = await Array.fromAsync(fixture.buckets.list(limited, 0, 1000));
  assert.deepEqual(listed.map(nameOf), ['shown']);
  await refuses(() => fixture.buckets.describe(limited, 'unseen'), 'bucket_not_found');
  await refuses(() => fixture.buckets.create(by(limited), { name: 'new-one' }), 'scope_required');
  await refuses(() => fixture.buckets.change(by(limited), 'shown', {}), 'scope_required');
  await refuses(() => fixture.buckets.removeEmpty(by(limited), 'shown'), 'scope_required');
});

test('without credits nothing is created or stored, but all is read and deleted', async () => {
  const poor = await fixture.newPrincipal('poor');
  await fixture.buckets.create(by(poor), { name: 'old' });
  const { object_id } = await fixture.put(poor, 'old', { name: 'x', bytes: Buffer.from('x') });
  const sql = 'UPDATE accounts SET credits_micro = 0 WHERE id = ?';
  await fixture.metadata.commit([{ sql, params: [poor.accountId] }]);
  await refuses(() => fixture.buckets.create(by(poor), { name: 'new' }), 'insufficient_credits');
  await refuses(() => fixture.objects.beginUpload(poor, 'old'), 'insufficient_credits');
  assert.equal((await fixture.downloads.find(poor, object_id)).sizeBytes, 1);
  await fixture.removals.remove(by(poor), object_id);
  await fixture.buckets.removeEmpty(by(poor), 'old');
});

test('a name rests for 30 days, an account has so many at rest, and the oldest end first', async () => {
  const names = Array.from({ length: 3 }, (_, at) => `resting-${at}`);
  const create = (principal: Principal, name: string) =>
    fixture.buckets.create(by(principal), { name, isGlobal: true });
  for (const name of names) {
    await create(owner, name);
    await fixture.buckets.removeEmpty(by(owner), name);
    fixture.clock.advance(1000);
  }
  const [first = '', second = '', third = ''] = names;
  await refuses(() => create(stranger, first), 'bucket_name_taken');
  // As many more as may be idle, so that these three are evicted.
  const more = Array.from({ length: MOST_RESTING.bucket - 1 }, (_, at) => [
    'bucket',
    `more-${at}`,
    owner.accountId,
    fixture.clock.now() + REST_MS,
  ]);
  const sql = 'INSERT INTO resting_names (kind, name, account_id, ends_at) VALUES (?, ?, ?, ?)';
  await fixture.metadata.commit(more.map((params) => ({ sql, params })));
  await create(owner, 'one-more');
  await fixture.buckets.removeEmpty(by(owner), 'one-more');
  await create(stranger, first);
  await create(stranger, second);
  await create(stranger, third);
  await refuses(() => create(stranger, 'more-1'), 'bucket_name_taken');
  await refuses(() => create(stranger, 'one-more'), 'bucket_name_taken');
  fixture.clock.advance(REST_MS);
  await fixture.metadata.commit([new RestingNamesStore(fixture.metadata).sweep(fixture.clock.now())]);
  assert.deepEqual(await fixture.metadata.all('SELECT name FROM resting_names'), []);
  await create(stranger, 'one-more');
});

test('the settings of all buckets of an account are bounded together, and removing some is not refused', async () => {
  for (const name of ['full', 'next']) await fixture.buckets.create(by(owner), { name });
  const cors = (id: string) => [{ id, origins: ['*'], methods: ['GET'], headers: [], exposed: [] }];
  const set = (id: string | undefined) =>
    fixture.buckets.configure(by(owner), 'next', ['cors', id === undefined ? id : cors(id)]);
  await set('a'.repeat(1000));
  const sql = "UPDATE buckets SET settings = ? WHERE name = 'full'";
  await fixture.metadata.commit([{ sql, params: ['x'.repeat(16 * 2 ** 20 - 1500)] }]);
  await refuses(() => set('a'.repeat(2000)), 'quota_exceeded');
  const settings = { cors: cors('a'.repeat(500)) };
  await refuses(() => fixture.buckets.create(by(owner), { name: 'third', settings }), 'quota_exceeded');
  await fixture.buckets.create(by(stranger), { name: 'third', settings });
  await set('a'.repeat(900));
  await set(undefined);
  await set('a'.repeat(1000));
});

test('many changes of one bucket at once do not begin again for each other', async () => {
  await fixture.buckets.create(by(owner), { name: 'busy' });
  let begun = 0;
  const check = () => void begun++;
  const answer = ({ tags }: { tags?: unknown }) => tags;
  const set = (_: unknown, n: number) =>
    fixture.buckets.configureAll(by(owner), 'busy', { changed: { tags: { n: `${n}` } }, check, answer });
  const answers = await Promise.all(Array.from({ length: 30 }, set));
  assert.deepEqual(answers[7], { n: '7' });
  assert.equal(begun, 30);
});
