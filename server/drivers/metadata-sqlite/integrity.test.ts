import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { DATABASE_FILE } from './connection.ts';
import { damageIn } from './integrity.ts';

test('a row that its index does not know any more is damage', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-integrity-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, DATABASE_FILE);
  const database = new Database(path);
  database.exec(
    "PRAGMA journal_mode = wal; CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('the name of it')",
  );
  database.exec('CREATE INDEX t_a ON t (a)');
  database.close();
  assert.equal(await damageIn(directory), null);
  const bytes = readFileSync(path);
  const at = bytes.indexOf('the name of it');
  bytes[at] = (bytes[at] ?? 0) ^ 0x10;
  writeFileSync(path, bytes);
  assert.match((await damageIn(directory)) ?? '', /index t_a/);
});
