import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../calls/principal.ts';
import { type ErrorCode, isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { ObjectEntry } from '../schema.ts';
import type { ListingQuery } from './listing.ts';

/** U+FF61 sorts before U+1F600 in bytes and after it in UTF-16, the order of JavaScript. */
const NAMES = ['a', 'a/', 'a/b', 'a/c', 'ab', 'b', 'A', '~', 'é', '｡', '😀', '%', '_', 'a%', 'a_'];
const BUCKET = 'listed';
const NOT_VERSIONED = { prefix: '', versions: false };

let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  await fixture.buckets.create(by(owner), { name: BUCKET, versioning: true });
  for (const [at, name] of NAMES.entries()) {
    for (let i = 0; i <= at % 3; i++) await fixture.put(owner, BUCKET, { name, bytes: Buffer.alloc(at + i) });
  }
  // Hidden by a marker: listed with versions only.
  const { object_id } = await fixture.put(owner, BUCKET, { name: 'gone', bytes: Buffer.alloc(1) });
  await fixture.removals.remove(by(owner), object_id);
});
after(() => fixture.close());

async function all(query: ListingQuery, principal = owner): Promise<ObjectEntry[]> {
  const texts = await Array.fromAsync(fixture.listing.stream(principal, BUCKET, query));
  return texts.map((text) => JSON.parse(text));
}

async function paged(query: ListingQuery, limits: readonly number[]): Promise<ObjectEntry[]> {
  const seen: ObjectEntry[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 1000; page++) {
    const limit = limits[page % limits.length] ?? 1;
    const where = cursor === undefined ? {} : { cursor };
    const { entries, next } = await fixture.listing.page(owner, BUCKET, { ...query, limit, ...where });
    assert.ok(entries.length <= limit);
    assert.ok(next === null || entries.length === limit, 'only the last page is short');
    seen.push(...entries);
    if (next === null) return seen;
    cursor = next;
  }
  return assert.fail('the pages never end');
}

const inBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const refuses = (attempt: () => Promise<unknown>, code: ErrorCode) =>
  assert.rejects(attempt, (error) => isAppError(error, code));

test('names come in the order of their UTF-8 bytes, each once', async () => {
  const names = (await all(NOT_VERSIONED)).map(({ name }) => name);
  assert.deepEqual(names, NAMES.toSorted(inBytes));
});

test('with versions: newest first within a name, the newest marked, markers too', async () => {
  const entries = await all({ prefix: '', versions: true });
  const ab = entries.filter(({ name }) => name === 'ab');
  assert.deepEqual(
    ab.map(({ size, is_latest }) => [size, is_latest]),
    [
      [5, true],
      [4, false],
    ],
  );
  const gone = entries.filter(({ name }) => name === 'gone');
  assert.deepEqual(
    gone.map(({ is_delete_marker, is_latest }) => [is_delete_marker, is_latest]),
    [
      [true, true],
      [false, false],
    ],
  );
});

test('pages of any sizes, with any prefix, add up to the whole list', async () => {
  const limits = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 });
  const prefix = fc.constantFrom('', 'a', 'a/', 'b', '%', '_', 'é', '😀', 'zzz');
  await fc.assert(
    fc.asyncProperty(limits, prefix, fc.boolean(), async (sizes, start, versions) => {
      const query = { prefix: start, versions };
      const whole = await all(query);
      assert.deepEqual(await paged(query, sizes), whole);
      const everything = await all({ prefix: '', versions });
      assert.deepEqual(
        whole,
        everything.filter(({ name }) => name.startsWith(start)),
      );
    }),
    { numRuns: cases(60) },
  );
});

test('a cursor goes on after its entry though that is deleted, and shows what is new behind it', async () => {
  const name = 'moving';
  await fixture.buckets.create(by(owner), { name });
  for (const key of ['a', 'b', 'c']) await fixture.put(owner, name, { name: key, bytes: Buffer.alloc(1) });
  const first = await fixture.listing.page(owner, name, { ...NOT_VERSIONED, limit: 2 });
  await fixture.removals.remove(by(owner), first.entries[1]?.id ?? '');
  await fixture.put(owner, name, { name: 'bb', bytes: Buffer.alloc(1) });
  const cursor = first.next ?? '';
  const second = await fixture.listing.page(owner, name, { ...NOT_VERSIONED, limit: 2, cursor });
  assert.deepEqual(
    second.entries.map((entry) => entry.name),
    ['bb', 'c'],
  );
});

test('what is no cursor is refused', async () => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const bad = [
    '',
    'x',
    '!!!',
    encode(null),
    encode({}),
    encode(['a', 1]),
    encode([1, 1, 1]),
    encode(['a', 1.5, 1]),
  ];
  for (const cursor of [...bad, encode(['a', 1, '1']), encode(['a', 1e300, 1])]) {
    const query = { ...NOT_VERSIONED, limit: 1, cursor };
    await refuses(() => fixture.listing.page(owner, BUCKET, query), 'invalid_cursor');
  }
});

test('a forged cursor shows nothing of another bucket, account or prefix', async () => {
  const stranger = await fixture.newPrincipal('stranger');
  await fixture.buckets.create(by(stranger), { name: 'theirs' });
  const secret = await fixture.put(stranger, 'theirs', { name: 'secret', bytes: Buffer.from('x') });
  const foreign = await fixture.store.findById(secret.object_id);
  const own = (await fixture.store.target((await fixture.buckets.find(owner, BUCKET)).id, 'b'))?.object;
  const limited = { ...owner, bucketLimits: [{ bucket: BUCKET, prefix: 'a/' }] };
  const cases = [
    { principal: owner, prefix: '', object: foreign?.id },
    { principal: owner, prefix: 'a/', object: own?.id },
    { principal: limited, prefix: 'a/', object: own?.id },
  ];
  for (const { principal, prefix, object } of cases) {
    const forged = JSON.stringify(['~~', object, Number.MAX_SAFE_INTEGER]);
    const cursor = Buffer.from(forged).toString('base64url');
    const query = { prefix, versions: true, limit: 1000, cursor };
    const { entries } = await fixture.listing.page(principal, BUCKET, query);
    const shown = entries.filter(({ name }) => name === 'secret' || !name.startsWith(prefix));
    assert.deepEqual(shown, []);
  }
});

test('a limited key lists below its prefix only', async () => {
  const limited = { ...owner, bucketLimits: [{ bucket: BUCKET, prefix: 'a/' }] };
  await refuses(() => all(NOT_VERSIONED, limited), 'scope_required');
  await refuses(() => all({ prefix: 'a', versions: true }, limited), 'scope_required');
  assert.deepEqual(
    (await all({ prefix: 'a/', versions: false }, limited)).map(({ name }) => name),
    ['a/', 'a/b', 'a/c'],
  );
});

test('a stream goes on over many reads of the database', async () => {
  const name = 'long-list';
  await fixture.buckets.create(by(owner), { name });
  const keys = Array.from({ length: 2001 }, (_, i) => `k${String(i).padStart(5, '0')}`);
  await Promise.all(keys.map((key) => fixture.put(owner, name, { name: key, bytes: Buffer.alloc(1) })));
  const texts = await Array.fromAsync(fixture.listing.stream(owner, name, NOT_VERSIONED));
  assert.deepEqual(
    texts.map((text) => JSON.parse(text).name),
    keys,
  );
});
