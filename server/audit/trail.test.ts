import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { AuditEntry } from '../calls/audit.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { FakeClock } from '../platform/clock.ts';
import { openTestMetadata } from '../testing/new-metadata.ts';
import { AuditLog } from './audit-log.ts';
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

test('a row changed or removed in the middle or at the end is found, and which range it was in', async () => {
  for (let range = 1; range <= 3; range++) {
    for (let i = 0; i < 3; i++) await trail.write(entry({ target: `${range}-${i}` }));
    await seals.seal({ all: true });
  }
  const kept = (await verifyChain(metadata)).head ?? undefined;
  const before = await rows();
  const back = async () => {
    await run('DELETE FROM audit_rows');
    for (const row of before) {
      const names = Object.keys(row);
      const marks = names.map(() => '?').join(', ');
      await run(`INSERT INTO audit_rows (${names.join(', ')}) VALUES (${marks})`, ...Object.values(row));
    }
  };
  const faultOf = async (sql: string, ...params: (string | number)[]) => {
    await run(sql, ...params);
    const { ok, fault } = await verifyChain(metadata, kept);
    assert.equal(ok, false, sql);
    await back();
    assert.equal((await verifyChain(metadata, kept)).ok, true, 'all is as before');
    return fault;
  };
  const changed = (range: number) => `a row of range ${range} was changed`;
  const columns = Object.keys(before[0] ?? {}).filter((name) => name !== 'id' && name !== 'seal');
  for (const column of columns) {
    const value =
      typeof before[4]?.[column as keyof AuditRow] === 'number' ? `${column} + 1` : `${column} || ' '`;
    const other = column === 'outcome' ? `'failed'` : value;
    assert.equal(
      await faultOf(`UPDATE audit_rows SET ${column} = ${other} WHERE target = '2-1'`),
      changed(2),
    );
  }
  assert.equal(await faultOf(`UPDATE audit_rows SET actor = 'eve' WHERE target = '3-2'`), changed(3));
  assert.match((await faultOf(`DELETE FROM audit_rows WHERE target = '2-1'`)) ?? '', /range 2 has 2 rows/);
  assert.match((await faultOf(`DELETE FROM audit_rows WHERE target = '3-2'`)) ?? '', /range 3 has 2 rows/);
  assert.match((await faultOf('DELETE FROM audit_rows WHERE seal = 3')) ?? '', /range 3 has 0 rows/);
  // The end of the log is missing together with its seal, without a trace: only the stored head shows it.
  await run('DELETE FROM audit_rows WHERE seal = 3');
  await run('DELETE FROM audit_seals WHERE id = 3');
  assert.equal((await verifyChain(metadata)).ok, true);
  assert.equal((await verifyChain(metadata, kept)).fault, 'range 3 is missing; the last range is 2');
});

test('old ranges are removed while others are sealed and entries come in', async () => {
  const short = new Seals({ changes, store, clock, keptMs: 1000 });
  let isOver = false;
  const writing = (async () => {
    for (let i = 0; i < 400; i++) await trail.write(entry({ actorId: 0, target: `${i}` }));
    isOver = true;
  })();
  const jobs = [() => seals.seal({ all: true }), () => short.seal({ all: true }), () => short.sweep()];
  await Promise.all(
    jobs.map(async (job) => {
      while (!isOver) {
        await job();
        clock.advance(400);
        await setImmediate();
      }
    }),
  );
  await writing;
  await seals.seal({ all: true });
  const { ok, fault, rows: kept, removed, unsealed } = await verifyChain(metadata);
  assert.deepEqual([ok, fault, unsealed], [true, null, 0]);
  assert.ok(removed > 0, 'some ranges are gone');
  const [sealed] = await metadata.all<{ rows: number }>('SELECT sum(rows) AS rows FROM audit_seals');
  assert.equal(Number(sealed?.rows), 400, 'each entry was sealed once');
  assert.equal((await rows()).length, kept);
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
  // As in PostgreSQL, also after a move from there: ids are not in the order of commits.
  await run('UPDATE audit_seals SET last_id = 0');
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
  await explained.between(5, 1000, 10);
  await explained.sealedOfAccount(7, 1000, 10);
  await explained.unsealed(10);
  await explained.rowsOf(3);
  const byId = 'SEARCH audit_rows USING INTEGER PRIMARY KEY (rowid>?';
  const lastSeal = 'SCALAR SUBQUERY 1; SCAN audit_seals';
  assert.deepEqual(plans, [
    `${byId} AND rowid<?)`,
    'SEARCH audit_rows USING INDEX audit_rows_account (account_id=? AND id<?)',
    `${byId}); ${lastSeal}`,
    'SEARCH audit_rows USING INDEX audit_rows_seal (seal=?)',
  ]);
});

test('an owner sees its rows of before and after a seal, also while it pages through them', async () => {
  const log = new AuditLog(store);
  const targets = async () => {
    const found: string[] = [];
    const none = { actor: '', action: '', target: '', outcome: '', from: 0, to: 0 };
    for await (const { target } of log.list({ accountId: 7, ...none }, { before: 0, limit: 10_000 })) {
      found.push(target);
      // Entries that are sealed meanwhile are neither skipped nor reported twice.
      if (found.length === 300) await seals.seal({ all: true });
    }
    return found;
  };
  const expected: string[] = [];
  for (let i = 0; i < 1600; i++) {
    await trail.write(entry({ target: `${i}`, actorId: 0 }));
    if (i % 3 === 0) await trail.write(entry({ accountId: 8, actorId: 0, target: 'of another' }));
    if (i === 700) await seals.seal({ all: true });
    expected.unshift(`${i}`);
  }
  assert.deepEqual(await targets(), expected);
  assert.deepEqual(await targets(), expected);
  // PostgreSQL, or rows that came from there: the order is unknown.
  await run('UPDATE audit_seals SET last_id = 0');
  assert.deepEqual(await targets(), expected);
  clock.advance(400 * DAY_MS);
  await seals.sweep();
  assert.deepEqual(await rows(), []);
  await trail.write(entry({ target: 'after a year' }));
  assert.deepEqual(await targets(), ['after a year'], 'whose id is lower than those of before');
  await seals.seal({ all: true });
  assert.deepEqual((await verifyChain(metadata)).unsealed, 0);
});
