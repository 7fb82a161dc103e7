import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { testMetadata } from '../../testing/metadata.conformance.ts';
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

test('an SQLite with the WAL-reset race is refused', () => {
  for (const good of ['3.51.3', '3.52.0', '4.0.0']) assertSqliteVersion(good);
  for (const bad of ['3.51.2', '3.40.1', '2.99.99']) assert.throws(() => assertSqliteVersion(bad), /too old/);
});

testMetadata('SQLite', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-metadata-'));
  return {
    open: () => SqliteMetadata.open({ directory, clock: systemClock, alarms: new Alarms(systemClock) }),
    end: async () => rmSync(directory, { recursive: true }),
  };
});
