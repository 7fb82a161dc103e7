/** Answers of queries: their values as JSON, their limits, and statements that are refused. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { newDatabase } from '../../../testing/new-database.ts';
import { openSqlite, type SqliteFixture } from '../../../testing/sqlite-fixture.ts';

const NOBODY_LEAVES = new AbortController().signal;
const WHOLE = { maxRows: 10, maxBytes: 1000, timeoutMs: 20_000, signal: NOBODY_LEAVES } as const;

function fixture(): SqliteFixture {
  const opened = openSqlite();
  after(() => opened.close());
  return opened;
}

test('a value too long to be sent is refused, and the process goes on', async () => {
  const { engine, make } = fixture();
  const database = await make();
  const sql = 'SELECT hex(randomblob(16000000))';
  const body = Buffer.from(JSON.stringify({ requests: [{ type: 'execute', stmt: { sql } }] }));
  const answer = await engine.call(database, { kind: 'hrana', path: 'v3/pipeline' }, { body });
  assert.match(answer.body.toString(), /RESPONSE_TOO_LARGE/);
});

test('a query refuses what it would leave half done, and gives values as JSON has them', async () => {
  const { engine, make, run } = fixture();
  const database = await make();
  await run(database, 'CREATE TABLE a (b)');
  for (const statement of [
    'INSERT INTO a VALUES (1); DELETE FROM a',
    'BEGIN',
    '',
    '-- nothing',
    'ATTACH "x" AS y',
  ]) {
    await assert.rejects(run(database, statement), { name: 'QueryFailed' }, statement);
  }
  for (const statement of ['SELECT 1;', ' SELECT 1 ; -- one', '/* a */ SELECT 1 /* b */']) {
    assert.deepEqual(await run(database, statement), [[1]]);
  }
  const kinds = "SELECT 9007199254740993, x'0102', 1e999, NULL, ?, ?, ?";
  const values = await run(database, kinds, 'a', 1.5, true);
  assert.deepEqual(values, [['9007199254740993', 'AQI=', 'Infinity', null, 'a', 1.5, 1]]);
  const large = { ...WHOLE, statement: 'SELECT zeroblob(30000000)', params: [], readOnly: true };
  const { rows, truncated } = await engine.query(database, large);
  assert.deepEqual([rows.toJSON(), truncated], [[], true]);
  const missing = newDatabase();
  await assert.rejects(
    engine.query(missing, { ...WHOLE, statement: 'SELECT 1', params: [], readOnly: true }),
  );
});
