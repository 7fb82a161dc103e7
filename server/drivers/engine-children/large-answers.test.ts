/**
 * Large answers of children pass through the main process as bytes: it neither parses nor serializes them.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { EngineDatabase, Query, QueryResult } from '../../databases/engine.ts';
import { openMongodb } from '../../testing/mongodb-fixture.ts';
import { openSqlite } from '../../testing/sqlite-fixture.ts';

const BOUNDS = { params: [], maxRows: 1000, maxBytes: 4 * 2 ** 20, timeoutMs: 60_000 };
/** Heads of frames are parsed; rows are not. */
const LITTLE = 4096;
const LARGE = 3_000_000;

/** The longest JSON that this process parses or serializes from now on. */
function longestJson(t: TestContext): () => number {
  const { parse, stringify } = JSON;
  let longest = 0;
  const note = (text: unknown) => {
    longest = Math.max(longest, String(text).length);
  };
  JSON.parse = (text, ...more) => {
    note(text);
    return parse(text, ...more);
  };
  JSON.stringify = ((...input: Parameters<typeof stringify>) => {
    const text = stringify(...input);
    note(text);
    return text;
  }) as typeof stringify;
  const restore = () => Object.assign(JSON, { parse, stringify });
  t.after(restore);
  return () => {
    restore();
    return longest;
  };
}

interface Asked {
  readonly engine: { query(database: EngineDatabase, query: Query): Promise<QueryResult> };
  readonly database: EngineDatabase;
}

async function ask({ engine, database }: Asked, more: Pick<Query, 'statement'> & Partial<Query>) {
  const { signal } = new AbortController();
  return engine.query(database, { ...BOUNDS, readOnly: true, signal, ...more });
}

test("SQLite's rows are not parsed, and are those that were asked for", async (t) => {
  const { engine, make, close } = openSqlite();
  t.after(close);
  const on = { engine, database: await make() };
  const longest = longestJson(t);
  const result = await ask(on, { statement: `SELECT 'ä€𝄞', hex(zeroblob(${LARGE / 2})) AS long` });
  assert.ok(longest() < LITTLE, `${longest()} characters were parsed or written`);
  assert.deepEqual(result.columns.toJSON(), [
    { name: "'ä€𝄞'", type: null },
    { name: 'long', type: null },
  ]);
  assert.ok(String(result.rows) === JSON.stringify([['ä€𝄞', '0'.repeat(LARGE)]]));
  assert.deepEqual([result.rowCount, result.affected, result.truncated], [1, null, false]);
});

test("MongoDB's documents are not parsed, and are those that were asked for", async (t) => {
  const fixture = openMongodb({ firstPort: 28_330 });
  t.after(() => fixture.close());
  const { engine } = fixture;
  const { database } = await fixture.make();
  const long = 'x'.repeat(LARGE / 3);
  for (const _id of [1, 2, 3]) {
    const insert = { insert: 'notes', documents: [{ _id, long, [`ä${_id}`]: null }] };
    assert.equal((await ask({ engine, database }, { statement: insert, readOnly: false })).affected, 1);
  }
  const longest = longestJson(t);
  const result = await ask({ engine, database }, { statement: { find: 'notes', sort: { _id: 1 } } });
  assert.ok(longest() < LITTLE, `${longest()} characters were parsed or written`);
  assert.deepEqual(
    result.columns.toJSON().map(({ name }) => name),
    ['_id', 'long', 'ä1', 'ä2', 'ä3'],
  );
  const rows = [1, 2, 3].map((_id) => [_id, long, null, null, null]);
  assert.ok(String(result.rows) === JSON.stringify(rows));
});
