import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../calls/principal.ts';
import { type InTurn, ScanTurns } from '../../platform/concurrency.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import type { BucketEntry } from '../schema.ts';
import { BrowseSql } from './browse-sql.ts';
import { Browsing, type BrowsingQuery } from './browsing.ts';

let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
});
after(() => fixture.close());

async function fill(bucket: string, names: Iterable<string>): Promise<void> {
  await fixture.buckets.create(by(owner), { name: bucket });
  for (const name of names) await fixture.put(owner, bucket, { name, bytes: Buffer.alloc(1) });
}

type Query = Omit<BrowsingQuery, 'limit' | 'cursor'>;

async function paged(bucket: string, query: Query, limit: number) {
  const seen: BucketEntry[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 1000; page++) {
    const { entries, next } = await fixture.browsing.page(owner, bucket, { ...query, limit, cursor });
    assert.ok(entries.length <= limit);
    seen.push(...entries);
    if (next === null) return seen.map(({ name }) => name);
    cursor = next;
  }
  return assert.fail('the pages never end');
}

const inBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** By definition: names directly under the prefix, and deeper names as their folder. */
function expected(names: readonly string[], prefix: string): string[] {
  const shown = names
    .filter((name) => name.startsWith(prefix))
    .map((name) => {
      const slash = name.indexOf('/', prefix.length);
      return slash === -1 || name === prefix ? name : name.slice(0, slash + 1);
    });
  return [...new Set(shown)].sort(inBytes);
}

const part = fc.constantFrom('a', 'b', 'ab', 'é', '0', '.', '~', '😀', 'A');
const name = fc
  .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([parts, isFolder]) => parts.join('/') + (isFolder ? '/' : ''));

test('folders and objects are what the names say, on pages of any size', async () => {
  let runs = 0;
  const names = fc.uniqueArray(name, { maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(names, fc.integer({ min: 1, max: 7 }), async (given, limit) => {
      const bucket = `bucket-${runs++}`;
      await fill(bucket, given);
      const folders = given.flatMap((one) => (one.includes('/') ? [one.slice(0, one.indexOf('/') + 1)] : []));
      for (const prefix of ['', 'a', ...folders]) {
        const forwards = expected(given, prefix);
        assert.deepEqual(await paged(bucket, { prefix }, limit), forwards, prefix);
        const backwards = await paged(bucket, { prefix, order: 'desc' }, limit);
        assert.deepEqual(backwards, forwards.toReversed(), `${prefix} backwards`);
      }
      const found = given.filter((one) => one.toLowerCase().includes('a/')).sort(inBytes);
      assert.deepEqual(await paged(bucket, { prefix: '', search: 'A/' }, limit), found);
      const backwards = await paged(bucket, { prefix: '', search: 'A/', order: 'desc' }, limit);
      assert.deepEqual(backwards, found.toReversed());
    }),
    { numRuns: cases(40) },
  );
});

test('a folder with many names is passed over', async () => {
  const many = Array.from({ length: 300 }, (_, i) => `big/${i}`);
  await fill('many', [...many, 'a', 'z/y', 'z/x']);
  assert.deepEqual(await paged('many', { prefix: '' }, 2), ['a', 'big/', 'z/']);
});

test('entries say what they are', async () => {
  await fill('kinds', ['docs/a.txt', 'b.txt']);
  const { entries } = await fixture.browsing.page(owner, 'kinds', { prefix: '', limit: 10 });
  assert.deepEqual(
    entries.map(({ kind, name, object }) => [kind, name, object?.size]),
    [
      ['object', 'b.txt', 1],
      ['folder', 'docs/', undefined],
    ],
  );
});

test('deleted objects are listed in their folders, with what can be restored', async () => {
  await fixture.buckets.create(by(owner), { name: 'bin', versioning: true });
  for (const named of ['docs/a.txt', 'b.txt', 'c.txt']) {
    const { object_id } = await fixture.put(owner, 'bin', { name: named, bytes: Buffer.alloc(3) });
    if (named !== 'c.txt') await fixture.removals.remove(by(owner), object_id);
  }
  const page = { prefix: '', limit: 10, deleted: true };
  const { entries } = await fixture.browsing.page(owner, 'bin', page);
  assert.deepEqual(
    entries.map(({ kind, name, object }) => [kind, name, object?.size]),
    [
      ['object', 'b.txt', 3],
      ['folder', 'docs/', undefined],
    ],
  );
  assert.ok(entries[0]?.deleted_at);
  assert.deepEqual(await paged('bin', { prefix: '', deleted: true, search: 'A.' }, 1), ['docs/a.txt']);
  await assert.rejects(fixture.browsing.page(owner, 'bin', { ...page, sort: 'size' }), (error) =>
    isAppError(error, 'invalid_request'),
  );
});

test('a large bucket is searched and sorted a thousand names in a turn, and for nobody who has left', async () => {
  await fill('large', ['first']);
  const { metadata, listing, accessTimes } = fixture;
  const bucket = await listing.bucketFor(owner, 'large', '');
  const current = await metadata.get<{ id: number }>(
    'SELECT current AS id FROM objects WHERE bucket_id = ?',
    bucket.id,
  );
  const rows = JSON.stringify(Array.from({ length: 3500 }, (_, at) => at));
  await metadata.commit([
    {
      sql: `INSERT INTO objects (object_id, bucket_id, name, current, size_bytes, changed_at)
            SELECT 'obj-large-' || CAST(value AS TEXT), ?, 'n' || CAST(value AS TEXT), ?, 7, 0 FROM json_each(?)`,
      params: [bucket.id, current?.id ?? 0, rows],
    },
  ]);
  let reads = 0;
  const turns = new ScanTurns();
  const counted: Pick<ScanTurns, 'walk'> = {
    walk: (accountId, signal, work) =>
      turns.walk(accountId, signal, (inTurn) => {
        const noted: InTurn = (read) => {
          reads++;
          return inTurn(read);
        };
        return work(noted);
      }),
  };
  const browsing = new Browsing({ store: new BrowseSql(metadata), listing, accessTimes, turns: counted });
  for (const query of [{ search: 'zzz' }, { search: 'zzz', sort: 'size' }, { sort: 'size' }] as const) {
    reads = 0;
    const { entries } = await browsing.page(owner, 'large', { prefix: '', limit: 5, ...query });
    assert.equal(entries.length, 'search' in query ? 0 : 5);
    assert.ok(reads >= 4, `${JSON.stringify(query)}: ${reads} reads`);
    const wanted = { prefix: '', limit: 5, ...query, signal: AbortSignal.abort(new Error('left')) };
    await assert.rejects(browsing.page(owner, 'large', wanted), /left/);
  }
});

test('a cursor of somebody else is refused, and so is the bucket of another account', async () => {
  await fill('own', ['a']);
  const page = { prefix: '', limit: 1 };
  for (const sort of ['name', 'size'] as const) {
    await assert.rejects(fixture.browsing.page(owner, 'own', { ...page, sort, cursor: 'x' }), (error) =>
      isAppError(error, 'invalid_cursor'),
    );
  }
  const other = await fixture.newPrincipal('other');
  await assert.rejects(fixture.browsing.page(other, 'own', page), (error) =>
    isAppError(error, 'bucket_not_found'),
  );
});
