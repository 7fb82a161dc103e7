import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { insertTransfer } from '../../billing/ledger/ledger-store.ts';
import { assertNotMoved, MOVED_FILE } from '../../metadata/identity.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { openReader } from '../metadata-sqlite/connection.ts';
import { SqliteMetadata } from '../metadata-sqlite/sqlite-metadata.ts';
import { moveToPostgresql, moveToSqlite } from './move-metadata.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';
import { tablesOf } from './table-copy.ts';

let server: OperatorServer;
let databases = 0;
const directories: string[] = [];

before(async () => {
  server = await operatorPostgresql();
});
after(async () => {
  for (const directory of directories) rmSync(directory, { recursive: true });
  await server?.close();
});

async function newDatabase(): Promise<string> {
  const name = `moved_${++databases}`;
  await server.run(`CREATE DATABASE ${name}`);
  return server.url('postgres', 'of-the-operator').replace(/postgres$/, name);
}

const opened = { clock: systemClock, alarms: new Alarms(systemClock), onTakenOver: assert.fail };
const now = 1_700_000_000_000;

/** A data directory with rows of all kinds. */
async function newCloud(text = 'ä€😀'): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-moved-'));
  directories.push(directory);
  const metadata = await SqliteMetadata.open({ directory, ...opened });
  const account = (name: string) => ({
    sql: "INSERT INTO accounts (username, email, password_hash, created_at) VALUES (?, 'e', '', 0)",
    params: [name],
  });
  await metadata.commit([
    { sql: "INSERT INTO identity (id, cloud_id, starts) VALUES (1, 'cld-1', 3)", params: [] },
    ...Array.from({ length: 1200 }, (_, i) => account(`user ${i}`)),
  ]);
  await metadata.commit([
    {
      sql: 'UPDATE accounts SET credits_micro = ?, username = ? WHERE id = 7',
      params: [2n ** 62n + 1n, text],
    },
    {
      sql: 'INSERT INTO blobs (id, size_bytes, data, checksum) VALUES (?, ?, ?, ?)',
      params: [5, 3, Buffer.from([0, 255, 39]), 7],
    },
    {
      sql: `INSERT INTO steady_clock (id, boot_id, uptime_ms, wall_ms, steady_ms) VALUES (1, 'b', ?, 1, 2)`,
      params: [0.1 + 0.2],
    },
  ]);
  for (let i = 0; i < 3; i++) {
    const transfer = {
      debit: 'granted',
      credit: 'account:7',
      amountMicro: 5n,
      code: 'grant',
      reference: text,
    };
    await metadata.commit([insertTransfer({ ...transfer, id: `t${i}`, createdAt: i })]);
  }
  await metadata.close();
  return directory;
}

function rowsOf(directory: string): Record<string, unknown[]> {
  const sqlite = openReader(directory);
  try {
    return Object.fromEntries(
      tablesOf(sqlite).map(({ name }) => [
        name,
        sqlite.prepare(`SELECT * FROM ${name}`).safeIntegers().all(),
      ]),
    );
  } finally {
    sqlite.close();
  }
}

test('the metadata go to PostgreSQL and back, and the old copy cannot be started', async () => {
  const directory = await newCloud();
  const before = rowsOf(directory);
  const url = await newDatabase();
  const copied = await moveToPostgresql({ directory, url, now });
  assert.equal(copied?.find(({ name }) => name === 'accounts')?.rows, 1200);
  assert.throws(
    () => assertNotMoved(directory),
    /is in postgresql:\/\/127\.0\.0\.1:\d+\/moved_1: set CLOUDLET/,
  );
  assert.throws(
    () => assertNotMoved(directory),
    (error: Error) => !error.message.includes('of-the-operator'),
  );

  const metadata = await PostgresqlMetadata.open({ url, ...opened });
  const insert =
    "INSERT INTO accounts (username, email, password_hash, created_at) VALUES ('new', 'e', '', 0)";
  await metadata.commit([{ sql: insert, params: [] }]);
  const { id } = (await metadata.get<{ id: number }>("SELECT id FROM accounts WHERE username = 'new'")) ?? {
    id: 0,
  };
  assert.ok(id > 1200, `${id} was given before`);
  const transfer = { debit: 'granted', credit: 'account:7', amountMicro: 5n, code: 'grant', reference: 'r' };
  await metadata.commit([insertTransfer({ ...transfer, id: 'next', createdAt: 9 })]);
  const [last, next] = await metadata.all<{ hash: string; prev_hash: string }>(
    'SELECT hash, prev_hash FROM ledger_transfers ORDER BY seq LIMIT 2 OFFSET 2',
  );
  assert.equal(next?.prev_hash, last?.hash);
  await metadata.commit([
    { sql: 'DELETE FROM billing_accounts WHERE account_id = ?', params: [id] },
    { sql: 'DELETE FROM accounts WHERE id = ?', params: [id] },
  ]);
  await metadata.close();

  await moveToSqlite({ directory, url, now });
  assertNotMoved(directory);
  await assert.rejects(PostgresqlMetadata.open({ url, ...opened }), /was moved to \S*cloudlet-moved-/);
  const after = rowsOf(directory);
  assert.equal(after.ledger_transfers?.pop() !== undefined, true);
  assert.deepEqual(after, before);
  // Moved back and forth: the copy left behind is outdated.
  await moveToPostgresql({ directory, url, now });
});

test('a move that was cut off after its last step can be run again; another cloud is never overwritten', async () => {
  const directory = await newCloud();
  const url = await newDatabase();
  await moveToPostgresql({ directory, url, now });
  await moveToPostgresql({ directory, url, now });
  const metadata = await PostgresqlMetadata.open({ url, ...opened });
  await metadata.commit([{ sql: 'UPDATE identity SET starts = 4', params: [] }]);
  await metadata.close();
  assert.equal(await moveToPostgresql({ directory, url, now }), null, 'it was moved, and used there');
  rmSync(join(directory, MOVED_FILE));
  await assert.rejects(moveToPostgresql({ directory, url, now }), /already has the metadata of a cloud/);
});

test('the metadata of another cloud in the data directory are not replaced', async () => {
  const url = await newDatabase();
  await moveToPostgresql({ directory: await newCloud(), url, now });
  const directory = await newCloud();
  const other = await SqliteMetadata.open({ directory, ...opened });
  await other.commit([{ sql: "UPDATE identity SET cloud_id = 'cld-2'", params: [] }]);
  await other.close();
  const before = rowsOf(directory);
  await assert.rejects(moveToSqlite({ directory, url, now }), /belongs to another cloud, or is newer/);
  assert.deepEqual(rowsOf(directory), before);
  await assert.rejects(moveToPostgresql({ directory: `${directory}/none`, url, now }), /has no metadata\.db/);
});

test('a text that PostgreSQL cannot hold is named before anything is written', async () => {
  const directory = await newCloud('a\0b');
  const url = await newDatabase();
  await assert.rejects(moveToPostgresql({ directory, url, now }), /a text in accounts has a NUL character/);
  assertNotMoved(directory);
  const metadata = await PostgresqlMetadata.open({ url, ...opened });
  assert.deepEqual(await metadata.all('SELECT id FROM accounts'), []);
  await metadata.close();
});
