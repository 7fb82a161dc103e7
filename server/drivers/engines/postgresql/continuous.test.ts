/** Logs of PostgreSQL servers, archived in a real directory that disappears, and databases as of a moment. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { ContinuousArchive } from '../../../databases/points/continuous-archive.ts';
import { Moments } from '../../../databases/points/moments.ts';
import type { DatabaseRow } from '../../../databases/store.ts';
import type { Changes } from '../../../metadata/change.ts';
import { systemClock } from '../../../platform/clock.ts';
import { Semaphore } from '../../../platform/concurrency.ts';
import { LogArchive } from '../../../recovery/logs/log-archive.ts';
import { uselessFiles, verifyLogs } from '../../../recovery/logs/log-verification.ts';
import { Lease } from '../../../recovery/repository/lease.ts';
import { Repository } from '../../../recovery/repository/repository.ts';
import { createRepository } from '../../../recovery/repository/repository-head.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import {
  connect,
  noPostgresql,
  type PostgresqlFixture,
  postgresqlFixture,
} from '../../../testing/postgresql-fixture.ts';
import type { AccountServers } from '../../managed-server/accounts/account-servers.ts';
import { DirectoryTarget } from '../../recovery-directory/directory-target.ts';
import { postgresqlServers } from './postgresql-engine.ts';

const PASSWORD = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const MIB = 2 ** 20;
const database = newDatabase();
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-continuous-'));
const target = new DirectoryTarget(folder);
let fixture: PostgresqlFixture;
let client: Client;
let isAway = false;
/** Time of the pauses of archiving. */
let uptime = 0;
/** Files reported as damaged by a verification. */
let useless: ReadonlySet<string> = new Set();
const key = Buffer.alloc(32, 1);

before(async () => {
  if (noPostgresql) return;
  fixture = postgresqlFixture({ keepsLogs: true, idleMs: 3000 });
  await createRepository(target, { key, recoveryKey: Buffer.alloc(32, 2) });
  await fixture.engine.provision(database, PASSWORD);
  client = await connect(fixture.engine, database, PASSWORD);
  await client.query('CREATE TABLE t (i int)');
});
after(async () => {
  await client?.end().catch(() => {});
  await fixture?.close();
  rmSync(folder, { recursive: true });
});

/** An archive as created by a new start of Cloudlet. */
function archiveOf(engine: AccountServers) {
  const clock = { now: () => Date.now(), uptime: () => uptime };
  const lease = new Lease({
    target,
    clock: systemClock,
    cloud: async () => 'c',
    host: 'h',
    silenceMs: 60_000,
  });
  const find = async () => {
    if (isAway) throw new Error('the target is away');
    return new Repository(target, { key, repositoryId: '' });
  };
  // A repository is only known during one call.
  const fresh = () =>
    new LogArchive({
      find,
      lease,
      sweeping: new Semaphore(1),
      clock,
      location: folder,
      changes: { run: async () => assert.fail() } as unknown as Changes,
      store: { damagedFiles: async () => [] },
      verdicts: { logs: async () => null, setLogs: () => assert.fail() },
    });
  const store = {
    open: (...of: Parameters<LogArchive['open']>) => fresh().open(...of),
    putBase: (...of: Parameters<LogArchive['putBase']>) => fresh().putBase(...of),
    trim: (...of: Parameters<LogArchive['trim']>) => fresh().trim(...of),
    useless: async () => useless,
  };
  const raised = new Set<string>();
  const raise = (code: string) => void raised.add(code);
  const alarms = { raise, clear: (code: string) => void raised.delete(code) };
  const continuous = { store, alarms, everyMs: 1, keepMs: 1e9 };
  const onError = () => {};
  const archive = new ContinuousArchive({ engines: { all: () => [engine] }, continuous, clock, onError });
  const lifecycle = { inEngine: () => database };
  const moments = new Moments({ archive, engines: { get: () => engine }, lifecycle, assertSpace: () => {} });
  return { archive, moments, raised };
}

const row = { engine: 'postgresql', account_id: 1, database_id: 'db-1', created_at: 0 } as DatabaseRow;
const insert = (i: number) => client.query('INSERT INTO t VALUES ($1)', [i]);
/** A millisecond after all earlier commits, and before the next ones. */
const serverTime = async () => {
  const { rows } = await client.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS at');
  await sleep(2);
  return Math.ceil(Number(rows[0].at));
};
const LINES = ['postgresql', 1] as const;

async function untilBased({ archive }: ReturnType<typeof archiveOf>, count: number): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    await archive.tick();
    const bases = (await archive.lines(...LINES)).flatMap((line) => line.bases);
    if (bases.length >= count) return;
    await sleep(100);
  }
  throw new Error('no base copy was made');
}

/** Numbers in the table as of that moment. */
async function numbersAt({ moments }: ReturnType<typeof archiveOf>, at: number): Promise<number[]> {
  const dump = await moments.dump(row, at, new AbortController().signal);
  const sql = Buffer.concat(await dump.toArray()).toString('utf8');
  const rows = /^COPY public\.t .*\n((?:\d+\n)*)\\\.$/m.exec(sql)?.[1] ?? '';
  return rows.split('\n').filter(Boolean).map(Number);
}

test('each moment is had back, across a new start of Cloudlet', { skip: noPostgresql }, async () => {
  const first = archiveOf(fixture.engine);
  await untilBased(first, 1);
  await insert(1);
  const one = await serverTime();
  await insert(2);
  const two = await serverTime();
  await first.archive.tick();
  await insert(3);
  const second = archiveOf(fixture.engine);
  const three = await serverTime();
  await second.archive.tick();
  assert.equal((await second.archive.lines(...LINES)).length, 1);
  assert.deepEqual(await numbersAt(second, one), [1]);
  assert.deepEqual(await numbersAt(second, two), [1, 2]);
  assert.deepEqual(await numbersAt(second, three), [1, 2, 3]);
  await assert.rejects(second.moments.assertAt(row, one - 60_000), { code: 'point_not_found' });
  await assert.rejects(second.moments.assertAt(row, three + 60_000), { code: 'point_not_found' });
});

test('a target that is away costs a bounded part of the disk, then a gap, never a commit', {
  skip: noPostgresql,
}, async () => {
  const found = archiveOf(fixture.engine);
  const whole = await serverTime();
  await insert(4);
  await found.archive.tick();
  isAway = true;
  await insert(5);
  const lost = await serverTime();
  for (let i = 0; i < 25; i++) {
    await client.query("SELECT pg_logical_emit_message(false, 'x', repeat('y', 10 * 1024 * 1024))");
    await found.archive.tick();
  }
  uptime += 400_000;
  await found.archive.tick();
  assert.deepEqual([...found.raised], ['continuous_protection_behind']);
  const logs = join(fixture.folder, 'accounts', '1', 'home', 'data', 'pg_wal');
  const bytes = readdirSync(logs).reduce((sum, name) => sum + statSync(join(logs, name)).size, 0);
  assert.ok(bytes < 220 * MIB, `${bytes}`);
  isAway = false;
  await untilBased(found, 2);
  assert.deepEqual([...found.raised], []);
  await insert(6);
  await sleep(1100);
  const later = await serverTime();
  await found.archive.tick();
  const { windows } = await found.moments.list(row);
  assert.equal(windows.length, 2);
  assert.deepEqual(await numbersAt(found, whole), [1, 2, 3]);
  assert.deepEqual(await numbersAt(found, later), [1, 2, 3, 4, 5, 6]);
  await assert.rejects(found.moments.assertAt(row, lost), { code: 'point_not_found' });
});

test('a full target is the same as one that is away, and is used again when there is space', {
  skip: noPostgresql || (process.getuid?.() === 0 ? false : 'only root can make a small disk'),
}, async () => {
  const logs = join(folder, 'logs', 'postgresql-1');
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', logs]);
  const found = archiveOf(fixture.engine);
  try {
    // The earlier files of the timeline are hidden.
    await found.archive.tick();
    const { bavail, bsize } = statfsSync(logs);
    writeFileSync(join(logs, 'filling'), Buffer.alloc(bavail * bsize));
    await insert(7);
    await found.archive.tick();
    uptime += 400_000;
    await found.archive.tick();
    assert.deepEqual([...found.raised], ['continuous_protection_behind']);
    assert.match(found.archive.problem(...LINES) ?? '', /is full/);
    await insert(8);
    rmSync(join(logs, 'filling'));
    // A base copy may have failed meanwhile.
    for (let tries = 0; tries < 100 && found.raised.size > 0; tries++) {
      await sleep(100);
      await found.archive.tick();
    }
    assert.deepEqual([...found.raised], []);
    assert.deepEqual(
      readdirSync(logs).filter((name) => name.endsWith('unfinished')),
      [],
    );
  } finally {
    // A base copy may be in progress.
    await found.archive.close();
    execFileSync('umount', [logs]);
  }
});

test('damage that a verification finds is left out of the moments, and a new line begins', {
  skip: noPostgresql,
}, async () => {
  uptime += 700_000;
  const found = archiveOf(fixture.engine);
  const before = (await found.archive.lines(...LINES)).flatMap(({ bases }) => bases).length;
  await untilBased(found, before + 1);
  const parts = [];
  for (let i = 9; i <= 11; i++) {
    await insert(i);
    await sleep(1100);
    parts.push(await serverTime());
    await found.archive.tick();
  }
  const verified = async () => {
    const repository = new Repository(target, { key, repositoryId: '' });
    return verifyLogs({ repository, heads: found.archive.heads(), signal: new AbortController().signal });
  };
  const damagedBefore = (await verified()).damagedFiles;
  const logs = join(folder, 'logs', 'postgresql-1');
  const at = ([first = '', second = '']: string[]) => Number.parseInt(second === '' ? first : second, 16);
  const names = readdirSync(logs).filter((name) => name.includes('.log.'));
  names.sort((one, other) => at(one.split('.').slice(-1)) - at(other.split('.').slice(-1)));
  rmSync(join(logs, names.at(-2) as string));
  const verdict = await verified();
  assert.equal(verdict.damagedFiles, damagedBefore + 1);
  useless = uselessFiles(verdict);
  await found.archive.mend(useless);
  await assert.rejects(found.moments.assertAt(row, parts[1] as number), { code: 'point_not_found' });
  uptime += 700_000;
  await untilBased(found, before + 2);
  await sleep(1100);
  const now = await serverTime();
  await found.archive.tick();
  assert.deepEqual((await numbersAt(found, now)).slice(-3), [9, 10, 11]);
  assert.ok((await numbersAt(found, parts[0] as number)).includes(9));
  assert.ok((await found.moments.list(row)).windows.length >= 2);
});

test('a server that nobody uses sleeps, with its log archived, and is not woken', {
  skip: noPostgresql,
}, async () => {
  const found = archiveOf(fixture.engine);
  await found.archive.tick();
  await insert(12);
  const at = await serverTime();
  await client.end();
  const server = fixture.engine.serverOf(1);
  for (let tries = 0; tries < 200 && server?.isUp; tries++) await sleep(100);
  assert.equal(server?.isUp, false);
  for (let i = 0; i < 3; i++) await found.archive.tick();
  assert.equal(server?.isUp, false);
  const [line] = (await archiveOf(fixture.engine).archive.lines(...LINES)).slice(-1);
  assert.ok((line?.until ?? 0) >= at, 'archived before it slept');
  await found.moments.assertAt(row, Date.now());
  assert.equal(server?.isUp, false);
  assert.deepEqual((await numbersAt(found, Date.now())).slice(-1), [12]);
});

test('switched off, a server loses its slot, then writes less log', { skip: noPostgresql }, async () => {
  await fixture.engine.close();
  const off = postgresqlServers({ ...fixture.options(), keepsLogs: false });
  const server = off.serverOf(1);
  try {
    await off.wake();
    assert.equal(
      (await server?.using(({ ownLog }) => (ownLog === undefined ? assert.fail() : ownLog.state())))?.line,
      null,
    );
    await server?.restart();
    assert.equal(
      await server?.using(({ ownLog }) => (ownLog === undefined ? assert.fail() : ownLog.state())),
      null,
    );
  } finally {
    await off.close();
  }
});
