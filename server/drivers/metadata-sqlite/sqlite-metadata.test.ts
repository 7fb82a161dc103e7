import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CommitRejected } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { assertSqliteVersion } from './connection.ts';
import { SqliteMetadata } from './sqlite-metadata.ts';

let directory = '';
let metadata: SqliteMetadata;

const open = () => SqliteMetadata.open({ directory, clock: systemClock, alarms: new Alarms(systemClock) });

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cloudlet-metadata-'));
  metadata = await open();
});

after(async () => {
  await metadata.close();
  rmSync(directory, { recursive: true });
});

const put = (name: string, value: string) => ({
  sql: 'INSERT INTO settings (name, value) VALUES (?, ?)',
  params: [name, value],
});
const settingOf = (name: string) =>
  metadata.get<{ value: string }>('SELECT value FROM settings WHERE name = ?', name)?.value;

test('a read sees a commit once its promise resolved', async () => {
  const results = await metadata.commit([put('seen', '1')]);
  assert.equal(results[0]?.changes, 1);
  assert.equal(settingOf('seen'), '1');
});

test('a commit that was answered is seen at once, though reads go on all the time', async () => {
  let reading = true;
  const readOn = () => {
    settingOf('turn');
    if (reading) setImmediate(readOn);
  };
  await metadata.commit([put('turn', '0')]);
  readOn();
  const sql = 'UPDATE settings SET value = ? WHERE name = ?';
  for (let turn = 1; turn <= 200; turn++) {
    await metadata.commit([{ sql, params: [String(turn), 'turn'] }]);
    assert.equal(settingOf('turn'), String(turn));
  }
  reading = false;
});

test('a commit is all or nothing, and a refused one leaves its neighbours alone', async () => {
  const expectNone = { sql: 'DELETE FROM settings WHERE name = ?', params: ['nobody'], expectChanges: 1 };
  const outcomes = await Promise.allSettled([
    metadata.commit([put('n1', 'a')]),
    metadata.commit([put('lost', 'b'), expectNone, put('never run', 'b')]),
    metadata.commit([put('n2', 'c')]),
    metadata.commit([put('lost2', 'd'), put('n1', 'again')]),
    metadata.commit([put('n3', 'e'), put('n4', 'f')]),
  ]);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
  );
  const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  assert.ok(reasons.every((reason) => reason instanceof CommitRejected));
  assert.deepEqual(
    reasons.map(({ index, reason }) => [index, reason]),
    [
      [1, 'expectation'],
      [1, 'unique'],
    ],
  );
  assert.deepEqual(['n1', 'n2', 'n3', 'n4', 'lost', 'lost2', 'never run'].map(settingOf), [
    'a',
    'c',
    'e',
    'f',
    undefined,
    undefined,
    undefined,
  ]);
});

test('the reasons of a refusal are distinguished', async () => {
  const refused = (sql: string, ...params: (string | number | null)[]) =>
    metadata.commit([{ sql, params }]).then(
      () => 'stored',
      (error) => (error instanceof CommitRejected ? error.reason : error.code),
    );
  assert.equal(
    await refused(
      'INSERT INTO buckets (account_id,name,region,versioning,encryption,created_at) VALUES (?,?,?,0,0,0)',
      99,
      'b',
      'r',
    ),
    'foreign_key',
  );
  assert.equal(await refused('INSERT INTO settings (name, value) VALUES (?, ?)', 'x', null), 'check');
  assert.equal(await refused('INSERT INTO blobs (refs, size_bytes) VALUES (?, 0)', -1), 'check');
  assert.equal(await refused('INSERT INTO no_such_table VALUES (?)', 1), 'internal_error');
  assert.equal(
    await refused('INSERT INTO settings (name, value) VALUES (?, ?)', 'too few'),
    'internal_error',
  );
  assert.equal(
    await refused('INSERT INTO settings (name, value) VALUES (?, ?)', 'still works', 'y'),
    'stored',
  );
});

test('RowIdOf stands for the id an earlier statement of the commit was given', async () => {
  const account = {
    sql: "INSERT INTO accounts (username, email, password_hash, created_at) VALUES (?, 'e', '', 0)",
    params: ['rowid'],
  };
  const bucket = {
    sql: `INSERT INTO buckets (account_id, name, region, versioning, encryption, created_at)
          VALUES (?, ?, 'r', 0, 0, 0)`,
    params: [{ rowIdOf: 0 }, 'mine'],
  };
  const [first, second] = await metadata.commit([account, bucket]);
  const row = metadata.get('SELECT id, account_id FROM buckets WHERE name = ?', 'mine');
  assert.deepEqual({ ...(row as object) }, { id: second?.lastRowId, account_id: first?.lastRowId });
  const forward = await metadata
    .commit([{ ...bucket, params: [{ rowIdOf: 1 }, 'x'] }, account])
    .catch((e) => e);
  assert.ok(isAppError(forward, 'internal_error'), 'an id of a later statement does not exist');
});

test('bytes come back as they went in, also from a part of a larger buffer', async () => {
  const large = Buffer.alloc(5000, 1);
  const inputs = [large.subarray(17, 4113), new Uint8Array(0), new Uint8Array([0, 255])];
  await Promise.all(
    inputs.map((data, i) =>
      metadata.commit([
        {
          sql: 'INSERT INTO blobs (id, size_bytes, data) VALUES (?, ?, ?)',
          params: [100 + i, data.length, data],
        },
      ]),
    ),
  );
  const rows = metadata.all<{ data: Buffer }>('SELECT data FROM blobs WHERE id >= 100 ORDER BY id');
  assert.deepEqual(
    rows.map((row) => row.data),
    inputs.map((input) => Buffer.from(input)),
  );
});

test('whole numbers are exact on both sides of 2^53, and stay integers', async () => {
  const values = [0, -5, Number.MAX_SAFE_INTEGER, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n];
  for (const value of values) {
    assert.deepEqual(metadata.get('SELECT ? AS v, 1 AS one', value), { v: value, one: 1 });
    const text = metadata.get<{ t: string }>("SELECT 'x' || ? AS t", value)?.t;
    assert.equal(text, `x${value}`);
  }
  assert.deepEqual(metadata.get('SELECT ? AS v', 1.5), { v: 1.5 });
  await metadata.commit([
    { sql: 'INSERT INTO settings (name, value) VALUES (?, ? || ?)', params: ['int', 'n', 2 ** 40] },
  ]);
  assert.equal(settingOf('int'), 'n1099511627776');
});

test('more SQL texts than are kept in mind still work', async () => {
  const texts = Array.from(
    { length: 1200 },
    (_, i) => `INSERT INTO settings (name, value) VALUES (?, 'v${i}')`,
  );
  await Promise.all(texts.map((sql, i) => metadata.commit([{ sql, params: [`text${i}`] }])));
  await Promise.all(texts.map((sql, i) => metadata.commit([{ sql, params: [`text again${i}`] }])));
  assert.equal(settingOf('text1199'), 'v1199');
  assert.equal(settingOf('text again3'), 'v3');
});

test('sha256_hex is there for writers', async () => {
  await metadata.commit([{ sql: "INSERT INTO settings VALUES ('sha', sha256_hex(?))", params: ['abc'] }]);
  assert.equal(settingOf('sha'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

test('the reader cannot write', () => {
  assert.throws(() => metadata.all('DELETE FROM settings RETURNING name'), /readonly|query_only/);
});

test('files are for the owner alone', () => {
  for (const name of ['metadata.db', 'metadata.db-wal', 'metadata.db-shm']) {
    assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name);
  }
});

test('close stores what waits, and refuses what comes later', async () => {
  const waiting = Promise.all(Array.from({ length: 300 }, (_, i) => metadata.commit([put(`w${i}`, 'x')])));
  const closed = metadata.close();
  await assert.rejects(metadata.commit([put('late', 'x')]), { code: 'shutting_down' });
  assert.throws(() => metadata.get('SELECT 1'), { code: 'shutting_down' });
  await waiting;
  await closed;
  metadata = await open();
  assert.equal(settingOf('w299'), 'x');
});

test('what adds up is stored for all commits of a turn, also when one of them is refused and at a close', async () => {
  const count = (amount: number) => ({
    sql: 'UPDATE blobs SET size_bytes = size_bytes + ? WHERE checksum = 4711',
    params: [amount],
    expectChanges: 1,
    amounts: [0],
  });
  await metadata.commit([{ sql: 'INSERT INTO blobs (size_bytes, checksum) VALUES (0, 4711)', params: [] }]);
  const commits = (names: readonly string[]) =>
    Promise.allSettled(names.map((name, i) => metadata.commit([put(name, 'x'), count(10 ** i)])));
  const statuses = (outcomes: readonly { status: string }[]) => outcomes.map(({ status }) => status);
  const sum = () => metadata.get<{ n: number }>('SELECT size_bytes AS n FROM blobs WHERE checksum = 4711')?.n;
  assert.deepEqual(statuses(await commits(['s1', 's2', 's3'])), Array(3).fill('fulfilled'));
  assert.equal(sum(), 111);
  const waiting = commits(['s4', 's1', 's5']);
  const closed = metadata.close();
  assert.deepEqual(statuses(await waiting), ['fulfilled', 'rejected', 'fulfilled']);
  await closed;
  metadata = await open();
  assert.equal(sum(), 111 + 101);
});

test('an SQLite with the WAL-reset race is refused', () => {
  for (const good of ['3.51.3', '3.52.0', '4.0.0']) assertSqliteVersion(good);
  for (const bad of ['3.51.2', '3.40.1', '2.99.99']) assert.throws(() => assertSqliteVersion(bad), /too old/);
});
