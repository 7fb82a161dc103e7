import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../calls/principal.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { ScanTurns } from '../../platform/concurrency.ts';
import { isAppError } from '../../platform/errors.ts';
import { by } from '../../testing/account-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { BrowseSql } from './browse-sql.ts';
import { Browsing } from './browsing.ts';
import { FolderSizes } from './folder-sizes.ts';

let fixture: StorageFixture;
let owner: Principal;
let browseSql: BrowseSql;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  browseSql = new BrowseSql(fixture.metadata);
});
after(() => fixture.close());

const openSizes = (now: () => number) =>
  new FolderSizes({ store: browseSql, listing: fixture.listing, steady: { now } });

test('a folder is what its names say, without what was deleted', async () => {
  await fixture.buckets.create(by(owner), { name: 'sized', versioning: true });
  const sizes = openSizes(() => 0);
  const part = fc.constantFrom('a', 'b', 'é', '😀', 'a b');
  const name = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
  const stored = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(name, fc.nat({ max: 30 }), name, async (added, bytes, folder) => {
      await fixture.put(owner, 'sized', { name: added, bytes: Buffer.alloc(bytes) });
      stored.set(added, bytes);
      for (const prefix of ['', `${folder}/`]) {
        const own = [...stored].filter(([each]) => each.startsWith(prefix));
        const { object_count, size, next_cursor } = await sizes.of(owner, 'sized', { prefix });
        const sum = own.reduce((total, [, each]) => total + each, 0);
        assert.deepEqual([object_count, size, next_cursor], [own.length, sum, null], prefix);
      }
    }),
    { numRuns: cases(60) },
  );
});

test('a folder is counted by the index alone, without a look at any object', async () => {
  const { metadata } = fixture;
  const asked: string[] = [];
  const reads: Reads = {
    get: (sql, ...params) => {
      asked.push(sql);
      return metadata.get(sql, ...params);
    },
    all: (sql, ...params) => metadata.all(sql, ...params),
  };
  const from = { name: '', after: false };
  const range = { end: 'z', scan: 10 };
  await new BrowseSql(reads).sizes(1, from, range);
  await new BrowseSql(reads).measure(1, from, range);
  assert.equal(asked.length, 2);
  for (const sql of asked) {
    const plan = await metadata.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, 1, '', 'z', 10);
    const steps = plan.map(({ detail }) => detail).join('; ');
    assert.match(steps, /USING COVERING INDEX objects_live/, sql);
  }
});

/** Objects of 7 bytes that exist only as rows: 12,345 of them in `big/`. */
const BIG = 12_345;
async function bigBucket(name: string): Promise<void> {
  await fixture.buckets.create(by(owner), { name });
  await fixture.put(owner, name, { name: 'big', bytes: Buffer.alloc(1) });
  await fixture.put(owner, name, { name: 'bigger', bytes: Buffer.alloc(1) });
  const bucket = await fixture.listing.bucketFor(owner, name, '');
  const { metadata } = fixture;
  const { max = 0 } = (await metadata.get<{ max: number }>('SELECT max(id) AS max FROM objects')) ?? {};
  const rows = Array.from({ length: BIG }, (_, at) => at);
  await metadata.commit([
    {
      sql: `INSERT INTO objects (object_id, bucket_id, name, current, size_bytes, changed_at)
            SELECT 'obj-' || ? || CAST(value AS TEXT), ?, 'big/' || CAST(value AS TEXT), ?, 7, 0 FROM json_each(?)`,
      params: [`${name}-`, bucket.id, max, JSON.stringify(rows)],
    },
  ]);
}

test('a large folder takes several calls, whose sum it is', async () => {
  await bigBucket('large');
  // Each reading of the clock returns the next second.
  let now = 0;
  const sizes = openSizes(() => (now += 1000));
  let [objects, bytes, calls] = [0, 0, 0];
  let cursor: string | undefined;
  do {
    const part = await sizes.of(owner, 'large', { prefix: 'big/', cursor });
    [objects, bytes, calls] = [objects + part.object_count, bytes + part.size, calls + 1];
    cursor = part.next_cursor ?? undefined;
  } while (cursor !== undefined);
  assert.deepEqual([objects, bytes, calls], [BIG, BIG * 7, 13]);
  await assert.rejects(sizes.of(owner, 'large', { prefix: 'big/', cursor: 'x' }), (error) =>
    isAppError(error, 'invalid_cursor'),
  );
});

test('calls that nobody waits for any more count nothing', async () => {
  await bigBucket('left');
  let reads = 0;
  const ended = new AbortController();
  const store = {
    sizes: (...asked: Parameters<BrowseSql['sizes']>) => {
      reads++;
      ended.abort();
      return browseSql.sizes(...asked);
    },
  };
  const sizes = new FolderSizes({ store, listing: fixture.listing, steady: { now: () => 0 } });
  const asked = [1, 2, 3].map(() => sizes.of(owner, 'left', { prefix: '', signal: ended.signal }));
  for (const { status } of await Promise.allSettled(asked)) assert.equal(status, 'rejected');
  assert.equal(reads, 1);
});

test('of many calls of many accounts, one reads in a turn of the event loop', async () => {
  await bigBucket('busy');
  let [running, most, turns] = [0, 0, 0];
  const store = {
    sizes: async (...asked: Parameters<BrowseSql['sizes']>) => {
      running++;
      most = Math.max(most, running);
      setImmediate(() => running--);
      return browseSql.sizes(...asked);
    },
  };
  const { listing } = fixture;
  const other = { ...owner, accountId: owner.accountId + 1 };
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const sizes = new FolderSizes({
    store,
    listing: { bucketFor: (_, name, prefix) => listing.bucketFor(owner, name, prefix) },
    steady: { now: () => 0 },
  });
  const asked = [1, 2, 3].flatMap(() => [
    sizes.of(owner, 'busy', { prefix: '' }),
    sizes.of(other, 'busy', { prefix: '' }),
  ]);
  for (const { object_count } of await Promise.all(asked)) assert.equal(object_count, BIG + 2);
  isOver = true;
  assert.equal(most, 1);
  assert.ok(turns >= 6 * 13, `${turns} turns`);
});

test('a search without an end holds up neither the size of a folder nor a sorted page', async () => {
  await fixture.buckets.create(by(owner), { name: 'aside' });
  for (const name of ['f/a', 'f/b']) await fixture.put(owner, 'aside', { name, bytes: Buffer.alloc(3) });
  const { listing, accessTimes } = fixture;
  const left = new AbortController();
  /** It searches for the same names again and again. */
  class Endless extends BrowseSql {
    override async lastName(): Promise<{ name: string }> {
      return { name: 'f/' };
    }
  }
  const turns = new ScanTurns();
  const store = new Endless(fixture.metadata);
  const browsing = new Browsing({ store, listing, accessTimes, turns });
  const sizes = new FolderSizes({ store, listing, turns, steady: { now: () => 0 } });
  const search = browsing.page(owner, 'aside', { prefix: '', search: 'zzz', limit: 5, signal: left.signal });
  const isLeft = assert.rejects(search, /left/);
  const others = Promise.all([
    sizes.of(owner, 'aside', { prefix: 'f/' }),
    browsing.page(owner, 'aside', { prefix: 'f/', sort: 'size', limit: 5 }),
  ]);
  const end = setTimeout(() => left.abort(new Error('left: the others waited')), 10_000);
  const [size, page] = await others;
  clearTimeout(end);
  assert.equal(left.signal.aborted, false, 'they waited for the search');
  assert.deepEqual([size.size, page.entries.length], [6, 2]);
  left.abort(new Error('left'));
  await isLeft;
});

test('the time that a size spends waiting counts for its limit', async () => {
  await bigBucket('waited');
  let now = 0;
  const turns = new ScanTurns();
  const { listing } = fixture;
  const sizes = new FolderSizes({ store: browseSql, listing, turns, steady: { now: () => now } });
  const [first, second] = await Promise.all([
    sizes.of(owner, 'waited', { prefix: '' }),
    sizes.of(owner, 'waited', { prefix: '' }),
    (async () => {
      await new Promise(setImmediate);
      now = 1000;
    })(),
  ]);
  for (const { object_count } of [first, second]) assert.ok(object_count < BIG, `${object_count}`);
  assert.ok(second.object_count > 0);
});
