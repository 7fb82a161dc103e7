import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { AuditEntry } from '../calls/audit.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { FakeClock } from '../platform/clock.ts';
import { openTestMetadata } from '../testing/new-metadata.ts';
import { type AuditHead, sealHash, verifyChain } from './chain.ts';
import { Seals } from './seals.ts';
import { type AuditRow, AuditStore } from './store.ts';
import { Trail } from './trail.ts';

const DAY_MS = 24 * 3_600_000;
const directory = mkdtempSync(join(tmpdir(), 'cloudlet-audit-'));
const clock = new FakeClock();
let metadata: Metadata;
let changes: Changes;
let store: AuditStore;
let trail: Trail;
let seals: Seals;

before(async () => {
  metadata = await openTestMetadata({ directory, clock, alarms: new Alarms(clock) });
  changes = new Changes({ metadata });
  store = new AuditStore(metadata);
});
after(async () => {
  await metadata.close();
  rmSync(directory, { recursive: true, force: true });
});
beforeEach(async () => {
  await run('DELETE FROM audit_rows');
  await run('DELETE FROM audit_seals');
  trail = new Trail({ changes, store, clock });
  seals = new Seals({ changes, store, clock });
});

const run = (sql: string, ...params: (string | number)[]) => metadata.commit([{ sql, params }]);
const rows = () => metadata.all<AuditRow>('SELECT * FROM audit_rows ORDER BY id');

function entry(change: Partial<AuditEntry> = {}): AuditEntry {
  return {
    accountId: 7,
    actorId: 7,
    actor: 'ada',
    via: 'key',
    credential: 'key-1',
    address: '203.0.113.5',
    agent: 'test',
    action: 'createBucket',
    target: 'photos',
    outcome: 'done',
    status: 201,
    code: '',
    requestId: 'req-1',
    detail: '',
    ...change,
  };
}

const STRANGER = {
  accountId: 0,
  actorId: 0,
  actor: '',
  via: 'nobody',
  action: 'login',
  code: 'invalid_credentials',
};

test('refusals of one stranger are counted beyond the first, and take nothing from others', async () => {
  for (let i = 0; i < 5000; i++) trail.note(entry({ ...STRANGER, requestId: `req-${i}` }));
  trail.note(entry({ ...STRANGER, address: '203.0.113.6' }));
  trail.note(entry());
  await trail.flush();
  assert.equal((await rows()).length, 22);
  clock.advance(10 * 60_000);
  await trail.flush();
  const all = await rows();
  assert.equal(all.length, 23);
  const { times, target, address } = all.at(-1) as AuditRow;
  assert.deepEqual([times, target, address], [4980, '', '203.0.113.5']);
});

test('changes that one account makes in masses are counted, and hide neither others nor its own', async () => {
  const change = async (of: Partial<AuditEntry>) => {
    const statements = trail.statements(entry({ outcome: 'done', ...of }));
    if (statements.length > 0) await changes.store(statements);
  };
  for (let i = 0; i < 1500; i++) await change({ action: 'setBucketTags' });
  await change({ action: 'createAccessKey' });
  await change({ action: 'setBucketTags', actorId: 8, accountId: 8 });
  await trail.write(entry({ action: 'showApiKey' }));
  assert.equal((await rows()).length, 1003);
  for (let i = 0; i < 1500; i++) await change({ action: 'adminPatchAccount', actorId: 9 });
  await trail.flush({ all: true });
  const all = await rows();
  assert.equal(all.length, 2504);
  assert.deepEqual([all.at(-1)?.action, all.at(-1)?.times], ['setBucketTags', 500]);
});

test('refusals of ever new addresses are bounded together', async () => {
  for (let i = 0; i < 30_000; i++)
    trail.note(entry({ ...STRANGER, address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` }));
  await trail.flush({ all: true });
  const all = await rows();
  assert.ok(all.length <= 1600, `${all.length} rows`);
  assert.equal(
    all.reduce((sum, { times }) => sum + times, 0),
    30_000,
    'none is forgotten',
  );
});

test('entries that cannot be stored are stored later', async () => {
  let isAway = true;
  const failing = new Changes({
    metadata: Object.assign(Object.create(metadata), {
      commit: (list: Parameters<Metadata['commit']>[0]) =>
        isAway ? Promise.reject(new Error('away')) : metadata.commit(list),
    }),
  });
  const own = new Trail({ changes: failing, store, clock });
  own.note(entry());
  await assert.rejects(own.flush(), /away/);
  own.note(entry({ target: 'later' }));
  isAway = false;
  await own.flush();
  assert.deepEqual(
    (await rows()).map(({ target }) => target),
    ['photos', 'later'],
  );
});

test('a sealed row that is changed, taken out, put in or moved is found', async () => {
  for (let range = 0; range < 3; range++) {
    for (let i = 0; i < 3; i++) await trail.write(entry({ target: `bucket-${range}-${i}` }));
    await seals.seal({ all: true });
  }
  const whole = await verifyChain(metadata);
  assert.deepEqual([whole.ok, whole.ranges, whole.rows, whole.unsealed], [true, 3, 9, 0]);
  const id = (await rows())[4]?.id ?? 0;
  await run("UPDATE audit_rows SET actor = 'eve' WHERE id = ?", id);
  assert.match((await verifyChain(metadata)).fault ?? '', /a row of range 2 was changed/);
  await run("UPDATE audit_rows SET actor = 'ada' WHERE id = ?", id);
  assert.equal((await verifyChain(metadata)).ok, true);
  await run('UPDATE audit_rows SET seal = 3 WHERE id = ?', id);
  assert.match((await verifyChain(metadata)).fault ?? '', /range 2 has 2 rows, but was sealed with 3/);
  await run('UPDATE audit_rows SET seal = 2 WHERE id = ?', id);
  await run('DELETE FROM audit_rows WHERE seal = 1');
  await run('DELETE FROM audit_seals WHERE id = 1');
  assert.match((await verifyChain(metadata)).fault ?? '', /range 1 is missing/);
});

test('a head that was kept elsewhere shows that the whole log was replaced', async () => {
  const sealOne = async (target: string) => {
    await trail.write(entry({ target }));
    await seals.seal({ all: true });
  };
  const faultWith = async (head: AuditHead | undefined) => (await verifyChain(metadata, head)).fault;
  await sealOne('photos');
  const kept = (await verifyChain(metadata)).head ?? undefined;
  await sealOne('later');
  assert.equal(await faultWith(kept), null);
  assert.equal(await sealHash(metadata, 1), kept?.hash);
  assert.equal(await sealHash(metadata, 3), null);
  await run('DELETE FROM audit_rows');
  await run('DELETE FROM audit_seals');
  assert.equal(await faultWith(kept), 'range 1 is missing; the last range is 0');
  await sealOne('another');
  assert.equal(await faultWith(undefined), null);
  assert.match((await faultWith(kept)) ?? '', /range 1 does not have the given hash/);
});

test('a row that is stored late, with an id in between, is in the next range', async () => {
  for (const id of [64, 66]) {
    await trail.write(entry({ target: String(id) }));
    await run('UPDATE audit_rows SET id = ? WHERE id = (SELECT max(id) FROM audit_rows)', id + 1000);
  }
  await seals.seal({ all: true });
  await trail.write(entry({ target: 'late' }));
  await run("UPDATE audit_rows SET id = 1065 WHERE target = 'late'");
  await seals.seal({ all: true });
  const { ok, ranges, rows: read } = await verifyChain(metadata);
  assert.deepEqual([ok, ranges, read], [true, 2, 3]);
});

test('rows are sealed within ten minutes, not one by one', async () => {
  await trail.write(entry());
  await seals.seal();
  assert.equal((await verifyChain(metadata)).ranges, 0);
  clock.advance(10 * 60_000);
  await trail.write(entry());
  await seals.seal();
  const { ranges, rows: read } = await verifyChain(metadata);
  assert.deepEqual([ranges, read], [1, 2]);
});

test('old ranges go whole, and the chain goes on', async () => {
  for (let range = 0; range < 3; range++) {
    await trail.write(entry());
    await seals.seal({ all: true });
    clock.advance(200 * DAY_MS);
  }
  await seals.sweep();
  const { ok, ranges, removed, rows: read } = await verifyChain(metadata);
  assert.deepEqual([ok, ranges, removed, read], [true, 3, 2, 1]);
  assert.equal((await rows()).length, 1);
  await new Seals({ changes, store, clock, keptBytes: 10 }).sweep();
  assert.equal((await rows()).length, 0);
  await trail.write(entry());
  await seals.seal({ all: true });
  assert.deepEqual((await verifyChain(metadata)).ok, true);
});

test('each read finds its rows by an index, and sorts none', async () => {
  const plans: string[] = [];
  const explained = new AuditStore({
    all: async (sql: string, ...params: never[]) => {
      const steps = await metadata.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...params);
      plans.push(steps.map(({ detail }) => detail).join('; '));
      return [];
    },
    get: async () => undefined,
  });
  await explained.newest(null, 1000, 10);
  await explained.newest(7, 1000, 10);
  await explained.unsealed(10);
  await explained.rowsOf(3);
  assert.deepEqual(plans, [
    'SEARCH audit_rows USING INTEGER PRIMARY KEY (rowid<?)',
    'SEARCH audit_rows USING INDEX audit_rows_account (account_id=? AND id<?)',
    'SEARCH audit_rows USING INDEX audit_rows_seal (seal=?)',
    'SEARCH audit_rows USING INDEX audit_rows_seal (seal=?)',
  ]);
});
