/** Vectors as in libSQL: from its documentation, and dumps of databases with a vector index. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { LoadFailed } from '../../../databases/engine.ts';
import { LeftOut } from '../../../databases/left-out.ts';
import { openSqlite } from '../../../testing/sqlite-fixture.ts';

const { signal } = new AbortController();

test('vectors are stored as libSQL stores them, and read back', async () => {
  const { make, run, close } = openSqlite();
  try {
    const database = await make();
    const one = async (sql: string) => (await run(database, `SELECT ${sql}`))[0]?.[0];
    assert.equal(await one("hex(vector32('[1,-2.5,0]'))"), '0000803F000020C000000000');
    assert.equal(await one("hex(vector('[1]'))"), '0000803F');
    assert.equal(await one("hex(vector64('[1]'))"), '000000000000F03F02');
    assert.equal(await one("vector_extract(vector32('[0.8, 0.579, 1e3, -2]'))"), '[0.8,0.579,1000,-2]');
    assert.equal(await one("vector_extract(vector64('[0.1,2]'))"), '[0.1,2]');
    assert.equal(await one("vector_extract(vector32(vector64('[0.1]')))"), '[0.1]');
    assert.equal(await one("vector_distance_l2('[3,0]', vector32('[0,4]'))"), 5);
    assert.equal(await one("vector_distance_cos('[1,0]', '[0,2]')"), 1);
    assert.equal(await one("round(vector_distance_cos(vector32('[1,2]'), vector64('[2,4]')), 9)"), 0);
    assert.equal(await one("vector_distance_cos(NULL, '[1]')"), null);
    assert.equal(await one('vector_extract(vector32(NULL))'), null);
    for (const [sql, said] of [
      ["vector32('1,2')", /invalid vector: expected numbers in brackets, such as \[1,2,3\]/],
      ['vector32(\'["a"]\')', /invalid vector/],
      ["vector_extract(X'010203')", /the blob is not a vector/],
      ["vector_distance_cos('[1]', '[1,2]')", /vectors must have the same length: 1 != 2/],
    ] as const)
      await assert.rejects(run(database, `SELECT ${sql}`), said);
  } finally {
    await close();
  }
});

test('the nearest rows are found by reading all, and an index says so', async () => {
  const { make, run, close } = openSqlite();
  try {
    const database = await make();
    await run(database, 'CREATE TABLE films (title TEXT, v F32_BLOB(2))');
    await run(
      database,
      "INSERT INTO films VALUES ('a', vector32('[1,0]')), ('b', vector32('[0,1]')), ('c', vector32('[1,1]')), ('d', NULL)",
    );
    const near =
      "SELECT title FROM films WHERE v IS NOT NULL ORDER BY vector_distance_cos(v, '[1,0.9]') LIMIT 2";
    assert.deepEqual(await run(database, near), [['c'], ['a']]);
    const index = run(database, 'CREATE INDEX i ON films (libsql_vector_idx(v))');
    await assert.rejects(
      index,
      /libsql_vector_idx \(vectors have no index here: ORDER BY vector_distance_cos/,
    );
    const top = run(database, "SELECT * FROM vector_top_k('i', '[1,0]', 2)");
    await assert.rejects(top, /vector_top_k \(vectors have no index here/);
    // Other programs must be able to open the file.
    await assert.rejects(run(database, 'CREATE INDEX j ON films (vector_extract(v))'), /unsafe use/);
  } finally {
    await close();
  }
});

const DUMP = `PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE films (title TEXT, v F32_BLOB(2));
INSERT INTO films VALUES('a',X'0000803F00000000');
CREATE TABLE libsql_vector_meta_shadow ( name TEXT PRIMARY KEY, metadata BLOB ) WITHOUT ROWID;
INSERT INTO libsql_vector_meta_shadow VALUES('films_idx',X'00');
CREATE TABLE IF NOT EXISTS "films_idx_shadow" (index_key INTEGER, data BLOB, PRIMARY KEY (index_key));
INSERT INTO films_idx_shadow VALUES(1,X'00');
CREATE INDEX films_idx ON films (libsql_vector_idx(v, 'metric=cosine'));
CREATE INDEX by_title ON films (title);
COMMIT;
`;

test('a dump with an index of vectors is loaded without it, and told', async () => {
  const { engine, make, run, close } = openSqlite();
  try {
    const database = await make();
    const leftOut = new LeftOut();
    await engine.load(database, Readable.from([Buffer.from(DUMP)]), { signal, leftOut });
    assert.equal(leftOut.count, 1);
    assert.match(leftOut.notes[0]?.text ?? '', /^CREATE INDEX films_idx ON films \(libsql_vector_idx/);
    assert.match(leftOut.notes[0]?.reason ?? '', /no index here: ORDER BY vector_distance_cos/);
    assert.deepEqual(await run(database, 'SELECT name FROM sqlite_schema'), [['films'], ['by_title']]);
    assert.deepEqual(await run(database, 'SELECT vector_extract(v) FROM films'), [['[1,0]']]);
    const strict = engine.load(database, Readable.from([Buffer.from(DUMP)]), { signal });
    await assert.rejects(strict, (error: Error) => {
      assert.ok(error instanceof LoadFailed);
      assert.match(error.message, /^line 9: no such function: libsql_vector_idx/);
      return true;
    });
  } finally {
    await close();
  }
});
