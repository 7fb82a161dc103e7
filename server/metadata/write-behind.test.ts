import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Principal } from '../calls/principal.ts';
import { AppError } from '../platform/errors.ts';
import { by } from '../testing/account-fixture.ts';
import { openStorageFixture, type StorageFixture } from '../testing/storage-fixture.ts';
import { Changes, WriteBehind } from './change.ts';
import type { Metadata } from './metadata.ts';

const BUCKET = 'touched';
let fixture: StorageFixture;
let owner: Principal;
before(async () => {
  fixture = await openStorageFixture();
  owner = await fixture.newPrincipal('owner');
  await fixture.buckets.create(by(owner), { name: BUCKET });
});
after(() => fixture.close());

async function put(name: string): Promise<{ id: string; row: number }> {
  const { object_id: id } = await fixture.put(owner, BUCKET, { name, bytes: Buffer.from('x') });
  return { id, row: (await fixture.store.findById(id))?.current ?? 0 };
}

async function shown(name: string): Promise<string | null | undefined> {
  const query = { prefix: name, versions: false, limit: 1 };
  return (await fixture.listing.page(owner, BUCKET, query)).entries[0]?.last_accessed;
}

async function stored(row: number): Promise<number | null | undefined> {
  const sql = 'SELECT last_accessed AS at FROM versions WHERE id = ?';
  return (await fixture.metadata.get<{ at: number | null }>(sql, row))?.at;
}

/** Commits fail while `broken` is true. */
function breakable(): { metadata: Metadata; broken: boolean } {
  const { metadata } = fixture;
  const failing = {
    broken: false,
    metadata: {
      get: metadata.get.bind(metadata),
      all: metadata.all.bind(metadata),
      close: () => metadata.close(),
      commit: (statements) => {
        if (failing.broken) return Promise.reject(new AppError('out_of_space', 'full'));
        return metadata.commit(statements);
      },
    } as Metadata,
  };
  return failing;
}

test('a download shows in the next listing, before it is written and after', async () => {
  const { id, row } = await put('a');
  assert.equal(await shown('a'), null);
  fixture.accessTimes.note(row, fixture.clock.now());
  assert.equal(await shown('a'), '2026-01-01 00:00:00');
  assert.equal(
    (await fixture.objectInspector.describe(owner, id, { limit: 1 })).details.last_accessed,
    '2026-01-01 00:00:00',
  );
  assert.equal(await stored(row), null);
  await fixture.accessTimes.flush();
  assert.equal(await stored(row), fixture.clock.now());
  assert.equal(fixture.accessTimes.latest(row), undefined);
  assert.equal(await shown('a'), '2026-01-01 00:00:00');
});

test('while it is written the time still shows, and a later one wins', async () => {
  const { row } = await put('b');
  fixture.accessTimes.note(row, fixture.clock.now());
  const first = fixture.clock.now();
  const writing = fixture.accessTimes.flush();
  assert.equal(fixture.accessTimes.latest(row), first);
  fixture.clock.advance(1000);
  fixture.accessTimes.note(row, fixture.clock.now());
  await writing;
  assert.equal(fixture.accessTimes.latest(row), first + 1000);
  await fixture.accessTimes.flush();
  assert.equal(await stored(row), first + 1000);
});

test('what could not be written is kept for the next time', async () => {
  const { row } = await put('c');
  const failing = breakable();
  const times = new WriteBehind<number, number>({
    changes: new Changes(failing),
    statementOf: (version, at) => fixture.store.setLastAccessed(version, at),
  });
  times.note(row, fixture.clock.now());
  failing.broken = true;
  await assert.rejects(times.flush());
  assert.equal(times.latest(row), fixture.clock.now());
  failing.broken = false;
  await times.flush();
  assert.equal(await stored(row), fixture.clock.now());
});

test('more than fit into one commit are all written; a deleted object is no obstacle', async () => {
  const gone = await put('gone');
  await fixture.removals.remove(by(owner), gone.id);
  const names = Array.from({ length: 1101 }, (_, i) => `many/${i}`);
  const rows = (await Promise.all(names.map(put))).map(({ row }) => row);
  for (const row of [gone.row, ...rows]) fixture.accessTimes.note(row, fixture.clock.now());
  await fixture.accessTimes.flush();
  for (const row of rows) assert.equal(await stored(row), fixture.clock.now());
});

test('amounts are added up, also those that come while a flush fails', async () => {
  const { row } = await put('sum');
  const failing = breakable();
  const sums = new WriteBehind<number, number>({
    changes: new Changes(failing),
    statementOf: (version, amount) => fixture.store.setLastAccessed(version, amount),
    join: (earlier, later) => earlier + later,
  });
  for (const amount of [1, 2]) sums.note(row, amount);
  failing.broken = true;
  const flushing = sums.flush();
  sums.note(row, 4);
  await assert.rejects(flushing);
  failing.broken = false;
  sums.note(row, 8);
  await sums.flush();
  assert.equal(await stored(row), 15);
});
