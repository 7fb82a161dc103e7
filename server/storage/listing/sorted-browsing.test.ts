import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../calls/principal.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { by } from '../../testing/account-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { openStorageFixture, type StorageFixture } from '../../testing/storage-fixture.ts';
import { BrowseSql, type Order } from './browse-sql.ts';
import { SortedBrowsing, type SortedQuery } from './sorted-browsing.ts';

let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
});
after(() => fixture.close());

interface Stored {
  readonly name: string;
  readonly size: number;
}

async function fill(bucket: string, objects: readonly Stored[]): Promise<number> {
  await fixture.buckets.create(by(owner), { name: bucket });
  for (const { name, size } of objects) {
    await fixture.put(owner, bucket, { name, bytes: Buffer.alloc(size) });
  }
  return (await fixture.buckets.find(owner, bucket)).id;
}

/** Every page uses the next of `strategies`: how many names are sorted rather than scanned. */
async function paged(query: Omit<SortedQuery, 'cursor'>, strategies: readonly number[]): Promise<string[]> {
  const seen: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 1000; page++) {
    const browsing = new SortedBrowsing(
      new BrowseSql(fixture.metadata),
      strategies[page % strategies.length],
    );
    const { items, next } = await browsing.page({ ...query, cursor });
    assert.ok(items.length <= query.limit);
    seen.push(...items.map((item) => ('folder' in item ? item.folder : item.row.name)));
    if (next === null) return seen;
    cursor = next;
  }
  return assert.fail('the pages never end');
}

/** By definition: folders by name, then objects by size, and those of one size in the order of creation. */
function expected(
  stored: readonly Stored[],
  query: { prefix: string; search: string; order: Order },
): string[] {
  const { prefix, search, order } = query;
  const own = stored.filter(({ name }) => name.startsWith(prefix));
  const slashOf = (name: string) => (name === prefix ? -1 : name.indexOf('/', prefix.length));
  const isShown = ({ name }: Stored) => (search === '' ? slashOf(name) === -1 : name.includes(search));
  const folders = own.filter(({ name }) => search === '' && slashOf(name) !== -1);
  const names = [...new Set(folders.map(({ name }) => name.slice(0, slashOf(name) + 1)))];
  const objects = own.filter(isShown).sort((a, b) => a.size - b.size);
  if (order === 'desc') {
    const indexes = new Map(stored.map((each, index) => [each, index]));
    objects.sort((a, b) => b.size - a.size || (indexes.get(b) ?? 0) - (indexes.get(a) ?? 0));
  }
  names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return [...names, ...objects.map(({ name }) => name)];
}

const part = fc.constantFrom('a', 'b', 'ab', 'é', '0', '😀');
const name = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const stored = fc.record({ name, size: fc.integer({ min: 0, max: 3 }) });

test('by size, sorted or scanned or both in turn, pages of any size are what the rule says', async () => {
  let runs = 0;
  const objects = fc.uniqueArray(stored, { maxLength: 20, selector: (one) => one.name });
  await fc.assert(
    fc.asyncProperty(objects, fc.integer({ min: 1, max: 6 }), async (given, limit) => {
      const bucketId = await fill(`bucket-${runs++}`, given);
      for (const order of ['asc', 'desc'] as const) {
        for (const [prefix, search] of [
          ['', ''],
          ['a/', ''],
          ['é/', ''],
          ['a', 'b'],
          ['', 'a'],
        ] as const) {
          const query = { bucketId, prefix, search, by: 'size', order, limit } as const;
          const wanted = expected(given, { prefix, search, order });
          for (const strategies of [[10_000], [0], [10_000, 0]]) {
            assert.deepEqual(
              await paged(query, strategies),
              wanted,
              `${prefix} ${search} ${order} ${strategies}`,
            );
          }
        }
      }
    }),
    { numRuns: cases(15) },
  );
});

test('by time: what was overwritten last comes last, and first the other way round', async () => {
  const bucketId = await fill('times', []);
  for (const named of ['a', 'b', 'c', 'a']) {
    fixture.clock.advance(1000);
    await fixture.put(owner, 'times', { name: named, bytes: Buffer.alloc(1) });
  }
  const query = { bucketId, prefix: '', search: '', by: 'created_at', limit: 2 } as const;
  for (const strategies of [[10], [0]]) {
    assert.deepEqual(await paged({ ...query, order: 'asc' }, strategies), ['b', 'c', 'a']);
    assert.deepEqual(await paged({ ...query, order: 'desc' }, strategies), ['a', 'c', 'b']);
  }
});

test('folders of many names are read from an index, and nothing is sorted there', async () => {
  const asked: string[] = [];
  const { metadata } = fixture;
  const reads: Reads = {
    get: (sql, ...params) => {
      asked.push(sql);
      return metadata.get(sql, ...params);
    },
    all: (sql, ...params) => {
      asked.push(sql);
      return metadata.all(sql, ...params);
    },
  };
  const bucketId = await fill('plans', [{ name: 'x/y', size: 1 }]);
  for (const by of ['size', 'created_at'] as const) {
    const query = { bucketId, prefix: '', search: '', by, order: 'asc', limit: 2 } as const;
    await new SortedBrowsing(new BrowseSql(reads), 0).page(query);
  }
  assert.ok(asked.length > 4);
  for (const sql of asked) {
    const values = Array.from(sql.matchAll(/\?/g), () => 1);
    const plan = await metadata.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values);
    const steps = plan.map(({ detail }) => detail).join('; ');
    assert.doesNotMatch(steps, /USE TEMP B-TREE|SCAN objects/, sql);
  }
});
