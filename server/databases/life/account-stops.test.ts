import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError } from '../../platform/errors.ts';
import { DiskShares } from '../../resources/disk-shares.ts';
import { type DatabaseCloud, openDatabaseFixture } from '../../testing/database-fixture.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

async function open(t: TestContext) {
  const fixture = await openDatabaseFixture();
  t.after(() => fixture.close());
  const cloud = await fixture.open();
  return { fixture, cloud, ada: await fixture.newCall('ada') };
}

/** A database of at most 2 MiB that contains this many bytes. */
async function newDatabase(cloud: DatabaseCloud, call: Call, mib = 0): Promise<string> {
  const name = `n${cloud.announced.length}`;
  const made = await cloud.creation.create(call, { name, size_limit_mb: 2 });
  for (let i = 0; i < mib; i++) await fill(cloud, call, made.database_id);
  return made.database_id;
}

function fill({ queries }: DatabaseCloud, { principal }: Call, id: string) {
  const input = { statement: 'x'.repeat(MIB), read_only: false };
  return queries.run(principal, id, { input, signal: new AbortController().signal });
}

const stateOf = async ({ databases }: DatabaseCloud, { principal }: Call, id: string) => {
  const { state, state_reason } = await databases.describe(principal, id);
  return `${state} ${state_reason?.code ?? ''}`.trim();
};

test('databases are closed for want of credits, and come back as their size says', async (t) => {
  const { fixture, cloud, ada } = await open(t);
  const bob = await fixture.newCall('bob');
  const [full, empty] = [await newDatabase(cloud, ada, 3), await newDatabase(cloud, ada)];
  const others = await newDatabase(cloud, bob);
  await cloud.sampler.tick();
  assert.equal(await stateOf(cloud, ada, full), 'read_only size_limit_reached');
  const stop = () => cloud.accountStops.stop(ada.principal.accountId, 'credits_exhausted');
  await stop();
  await stop();
  for (const id of [full, empty]) {
    assert.equal(await stateOf(cloud, ada, id), 'suspended credits_exhausted');
    const row = await fixture.store.find(id);
    assert.equal(fixture.disk.databases.get(row?.engine_database ?? '')?.access, 'none');
  }
  assert.equal(await stateOf(cloud, bob, others), 'ready');
  await cloud.sampler.tick();
  assert.equal(await stateOf(cloud, ada, full), 'suspended credits_exhausted', 'not opened by its size');
  assert.deepEqual(await cloud.accountStops.resume(ada.principal.accountId), { waiting: 0 });
  assert.equal(await stateOf(cloud, ada, full), 'read_only size_limit_reached');
  assert.equal(await stateOf(cloud, ada, empty), 'ready');
  assert.deepEqual(cloud.announced.slice(3).sort(), [
    ...['database.read_only', 'database.read_only', 'database.resumed'],
    ...['database.suspended', 'database.suspended'],
  ]);
});

test('one that comes back is said to be ready once its engine lets its users in', async (t) => {
  const { fixture, cloud, ada } = await open(t);
  const id = await newDatabase(cloud, ada);
  const { accountId } = ada.principal;
  await cloud.accountStops.stop(accountId, 'credits_exhausted');
  const seen: string[] = [];
  cloud.scripted.script('restrict', async () => {
    seen.push(await stateOf(cloud, ada, id));
    if (seen.length === 1) throw new AppError('engine_unavailable', 'not yet');
  });
  assert.deepEqual(await cloud.accountStops.resume(accountId), { waiting: 1 });
  assert.equal(await stateOf(cloud, ada, id), 'suspended credits_exhausted');
  await cloud.supervisor.check();
  assert.equal(await stateOf(cloud, ada, id), 'suspended credits_exhausted', 'as its engine was left');
  assert.deepEqual(await cloud.accountStops.resume(accountId), { waiting: 0 });
  assert.equal(await stateOf(cloud, ada, id), 'ready');
  assert.deepEqual(seen, Array(3).fill('suspended credits_exhausted'));
  const row = await fixture.store.find(id);
  assert.equal(row?.applied, row?.generation);
  assert.deepEqual(cloud.announced, ['database.created', 'database.suspended', 'database.resumed']);
});

test('while the engine is away they are suspended in the rows, and closed when it is back', async (t) => {
  const { fixture, cloud, ada } = await open(t);
  const id = await newDatabase(cloud, ada);
  cloud.scripted.isAway = true;
  await cloud.accountStops.stop(ada.principal.accountId, 'account_suspended');
  assert.equal(await stateOf(cloud, ada, id), 'suspended account_suspended');
  assert.match(cloud.reports.join(), /stopping a resource failed \(account_suspended\)/);
  cloud.scripted.isAway = false;
  await cloud.supervisor.check();
  const row = await fixture.store.find(id);
  assert.equal(fixture.disk.databases.get(row?.engine_database ?? '')?.access, 'none');
});

test('those of a closed account go for good, the deleted ones with their last dumps', async (t) => {
  const { fixture, cloud, ada } = await open(t);
  const [live, kept] = [await newDatabase(cloud, ada), await newDatabase(cloud, ada)];
  await cloud.deleter.remove(ada, kept);
  await cloud.supervisor.reconcile(kept);
  assert.equal((await cloud.kept.list()).length, 1);
  await cloud.accountStops.stop(ada.principal.accountId, 'account_closed');
  for (const id of [live, kept]) {
    await cloud.supervisor.reconcile(id);
    assert.equal(await fixture.store.find(id), undefined);
  }
  assert.deepEqual(await cloud.kept.list(), []);
  assert.equal(fixture.disk.databases.size, 0);
  assert.equal(await fixture.counted(ada), 0);
  assert.deepEqual(cloud.announced.slice(2), ['database.deleted', 'database.deleted']);
});

test('the end of an account ends long work on its databases', async (t) => {
  const { fixture, cloud, ada } = await open(t);
  const id = await newDatabase(cloud, ada);
  const forking = Promise.withResolvers<void>();
  cloud.scripted.script('fork', (signal) => {
    forking.resolve();
    return new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(new Error('interrupted')));
    });
  });
  const copy = cloud.creation.create(ada, { name: 'copy', from: { database_id: id } });
  const refused = assert.rejects(copy, { code: 'database_not_ready' });
  await forking.promise;
  await cloud.accountStops.stop(ada.principal.accountId, 'account_closed');
  await refused;
  await cloud.supervisor.reconcile(id);
  assert.equal(fixture.disk.databases.size, 0);
});

test('one over its limit is read-only until there is some space again', async (t) => {
  const { cloud, ada } = await open(t);
  const id = await newDatabase(cloud, ada, 2);
  const { principal } = ada;
  await cloud.sampler.tick();
  assert.equal((await cloud.databases.describe(principal, id)).size_bytes, 2 * MIB + 1);
  assert.equal(await stateOf(cloud, ada, id), 'read_only size_limit_reached');
  await cloud.sampler.tick();
  await cloud.databases.change(ada, id, { name: 'renamed' });
  assert.equal(await stateOf(cloud, ada, id), 'read_only size_limit_reached');
  await cloud.databases.change(ada, id, { size_limit_mb: 3 });
  assert.equal(await stateOf(cloud, ada, id), 'ready');
  await cloud.databases.change(ada, id, { size_limit_mb: 1 });
  assert.equal(await stateOf(cloud, ada, id), 'read_only size_limit_reached');
});

test('with a larger limit it is ready when its engine says so, and not before', async (t) => {
  const { fixture, cloud, ada } = await open(t);
  const id = await newDatabase(cloud, ada, 2);
  await cloud.sampler.tick();
  const during: string[] = [];
  cloud.scripted.script('restrict', async () => void during.push(await stateOf(cloud, ada, id)));
  assert.equal((await cloud.databases.change(ada, id, { size_limit_mb: 3 })).state, 'ready');
  assert.deepEqual(during, ['read_only size_limit_reached']);
  assert.equal(await stateOf(cloud, ada, id), 'ready');

  await cloud.databases.change(ada, id, { size_limit_mb: 2 });
  cloud.scripted.isAway = true;
  const waiting = await cloud.databases.change(ada, id, { size_limit_mb: 4 });
  assert.deepEqual([waiting.state, waiting.size_limit_mb], ['read_only', 4]);
  cloud.scripted.isAway = false;
  await cloud.supervisor.check();
  await cloud.sampler.tick();
  assert.equal(await stateOf(cloud, ada, id), 'ready');
  const row = await fixture.store.find(id);
  assert.equal(fixture.disk.databases.get(row?.engine_database ?? '')?.sizeLimitBytes, 4 * MIB);
});

test('metrics have a history of when it was used, and nulls where the engine does not tell', async (t) => {
  const { fixture, cloud, ada } = await open(t);
  const id = await newDatabase(cloud, ada, 1);
  await cloud.sampler.tick();
  for (let i = 0; i < 3; i++) {
    fixture.clock.advance(5000);
    await cloud.sampler.tick();
  }
  const read = (range = {}) => cloud.metrics.read(ada.principal, id, range);
  const { size_bytes, statements, history } = await read({ step: 5 });
  assert.deepEqual([size_bytes, statements], [MIB, null]);
  assert.equal(history?.length, 2, 'while it was used, and once more');
  assert.equal((await read()).history, undefined);
  fixture.clock.advance(600_000);
  await cloud.sampler.tick();
  const coarse = await read({ from: '2025-12-31 00:00:00', step: 86_400 });
  assert.equal(coarse.history?.at(-1)?.size_bytes, MIB);
});

test('a database of an account with more than its share of a disk that fills is read-only until it has less', async (t) => {
  const fixture = await openDatabaseFixture();
  t.after(() => fixture.close());
  const disk = { totalBytes: 100 * GIB, freeBytes: 10 * GIB };
  const trusted = async () => new Set<number>();
  const onError = (error: unknown) => assert.fail(String(error));
  const diskShares = new DiskShares({
    clock: fixture.clock,
    percent: 50,
    disk: () => disk,
    trusted,
    onError,
  });
  const cloud = await fixture.open({ diskShares });
  const [ada, bob] = [await fixture.newCall('ada'), await fixture.newCall('bob')];
  const [grows, others] = [await newDatabase(cloud, ada), await newDatabase(cloud, bob)];
  // As her machines would do.
  const machines = new Map([[ada.principal.accountId, 13 * GIB]]);
  diskShares.count(() => machines);
  await fill(cloud, ada, grows);
  await fill(cloud, bob, others);
  await cloud.sampler.tick();
  assert.equal(await stateOf(cloud, ada, grows), 'read_only disk_share_reached');
  assert.equal(await stateOf(cloud, bob, others), 'ready');
  const { state_reason } = await cloud.databases.describe(ada.principal, grows);
  assert.match(state_reason?.message ?? '', /ask an administrator to grant you credits/);
  machines.clear();
  fixture.clock.advance(5000);
  await cloud.sampler.tick();
  assert.equal(await stateOf(cloud, ada, grows), 'ready');
});

test('one within its size limit, but not by much, is writable again once its account has its share', async (t) => {
  const fixture = await openDatabaseFixture();
  t.after(() => fixture.close());
  const over = new Set<number>();
  let isUnknown = false;
  const diskShares = {
    over: async () => {
      if (isUnknown) throw new Error('not counted');
      return over;
    },
    count: () => {},
    assertMayGrow: async () => {},
  };
  const cloud = await fixture.open({ diskShares });
  const ada = await fixture.newCall('ada');
  const [full, larger] = [await newDatabase(cloud, ada, 1), await newDatabase(cloud, ada, 3)];
  const input = { statement: 'x'.repeat(MIB - 1000), read_only: false };
  await cloud.queries.run(ada.principal, full, { input, signal: new AbortController().signal });
  over.add(ada.principal.accountId);
  await cloud.sampler.tick();
  assert.equal(await stateOf(cloud, ada, full), 'read_only disk_share_reached');
  assert.equal(await stateOf(cloud, ada, larger), 'read_only disk_share_reached');
  over.clear();
  await cloud.sampler.tick();
  assert.equal(await stateOf(cloud, ada, full), 'ready');
  assert.equal(await stateOf(cloud, ada, larger), 'read_only size_limit_reached');

  // Sizes are limited even while the shares are unknown.
  isUnknown = true;
  await fill(cloud, ada, full);
  await assert.rejects(cloud.sampler.tick(), /not counted/);
  assert.equal(await stateOf(cloud, ada, full), 'read_only size_limit_reached');
});
