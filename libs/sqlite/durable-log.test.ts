import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { DurableLog } from './durable-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-log-'));
after(() => rmSync(folder, { recursive: true }));

function open(path: string): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
  return database;
}

test('what was committed is waited for once, by all who came until then, and what was not is not', async () => {
  const path = join(folder, 'db.sqlite');
  writeFileSync(path, '');
  const [watcher, one, other] = [open(path), open(path), open(path)];
  one.exec('CREATE TABLE a (b)');
  const log = new DurableLog(path, watcher);
  const first = log.flush();
  assert.ok(first !== null, 'what another process left may not be on the disk yet');
  await first;
  assert.equal(log.flush(), null);

  one.exec('INSERT INTO a VALUES (1)');
  const afterOne = log.flush();
  other.exec('INSERT INTO a VALUES (2)');
  assert.ok(afterOne !== null);
  assert.equal(log.flush(), afterOne, 'commits of one turn go together');
  await new Promise(setImmediate);
  other.exec('INSERT INTO a VALUES (3)');
  const next = log.flush();
  assert.ok(next !== null && next !== afterOne, 'a commit that came while one runs waits for the next');
  await next;
  assert.equal(log.flush(), null);

  one.exec('BEGIN; INSERT INTO a VALUES (4)');
  assert.equal(log.flush(), null, 'not committed yet');
  one.exec('COMMIT; DELETE FROM a');
  const again = log.flush();
  assert.ok(again !== null);
  await again;
  await log.close();
  for (const database of [one, other, watcher]) database.close();
});
