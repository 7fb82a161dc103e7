/** SQL text of other programs: sqlite3's `.dump`, Python's `iterdump`, structures of frameworks. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import type { EngineDatabase } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { FULL_TEXT_PARTS, openSqlite, type SqliteFixture } from '../../../../testing/sqlite-fixture.ts';

const { signal } = new AbortController();

interface Loading extends Pick<SqliteFixture, 'run'> {
  readonly database: EngineDatabase;
  /** Lines, beginnings and reasons of what is left out. */
  load(text: string | Buffer): Promise<readonly string[]>;
  loadStrictly(text: string): Promise<void>;
}

async function open(): Promise<Loading> {
  const { engine, make, run, close } = openSqlite();
  after(close);
  const database = await make();
  return {
    run,
    database,
    load: async (text) => {
      const leftOut = new LeftOut();
      await engine.load(database, Readable.from([Buffer.from(text)]), { signal, leftOut });
      return leftOut.notes.map((note) => `${note.line}: ${note.text.slice(0, 25)}: ${note.reason}`);
    },
    loadStrictly: (text) => engine.load(database, Readable.from([Buffer.from(text)]), { signal }),
  };
}

/** As Python writes them. */
const PARTS = FULL_TEXT_PARTS.replaceAll(' IF NOT EXISTS', '').replace('f_data VALUES', '"f_data" VALUES');
const ROW = `INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)VALUES('table','f','f',0,'CREATE VIRTUAL TABLE f USING fts5(t)');\n`;

test('virtual tables come with their parts, however a program writes them', async () => {
  const { load, run, database } = await open();
  const found = () => run(database, "SELECT rowid, t FROM f WHERE f MATCH 'word'");
  for (const text of [
    `CREATE VIRTUAL TABLE f USING fts5(t)\n/* f(t) */;\n${PARTS}`,
    // Python before 3.13 sets no writable_schema.
    `BEGIN TRANSACTION;\n${ROW}${PARTS}COMMIT;\n`,
    `CREATE VIRTUAL TABLE f USING fts5(t);\nINSERT INTO f VALUES('word');\n${PARTS}`,
    `CREATE VIRTUAL TABLE f USING fts5(t);\nINSERT INTO f(f,rank) VALUES('pgsz',4000);\n${PARTS}`,
    `-- a comment\n${ROW.replace('INSERT', '/* and */ insert')}${PARTS}`,
  ]) {
    assert.deepEqual(await load(text), [], text);
    assert.deepEqual(await found(), [[1, 'word']], text);
    await run(database, "INSERT INTO f VALUES('other word')");
    assert.deepEqual(await found(), [
      [1, 'word'],
      [2, 'other word'],
    ]);
    assert.deepEqual(await run(database, 'PRAGMA integrity_check'), [['ok']]);
  }
});

test('rows of a virtual table behind those of its parts are left out, and told', async () => {
  const { load, loadStrictly, run, database } = await open();
  const text = `CREATE VIRTUAL TABLE f USING fts5(t);\n${PARTS}INSERT INTO "f"("t") VALUES('word');\n`;
  assert.deepEqual(await load(text), [
    '14: INSERT INTO "f"("t") VALU: the rows of f came with its shadow tables',
  ]);
  const count = 'SELECT count(*) FROM f';
  assert.deepEqual(await run(database, count), [[1]]);
  await loadStrictly(text);
  assert.deepEqual(await run(database, count), [[2]]);
});

test('what is left out is counted, and the first ten parts are told', async () => {
  const { engine, make, close } = openSqlite();
  after(close);
  const leftOut = new LeftOut();
  const tables = Array.from(
    { length: 300 },
    (_, i) => `CREATE TABLE t${i}(a COLLATE ${'x'.repeat(5000)});\n`,
  );
  await engine.load(await make(), Readable.from([Buffer.from(tables.join(''))]), { signal, leftOut });
  assert.equal(leftOut.count, 300);
  assert.equal(leftOut.notes.length, 10);
});

test('a tokenizer that is missing here leaves out its table and what uses that, and told', async () => {
  const { load, loadStrictly, run, database } = await open();
  const text = `CREATE TABLE a(b, c);
CREATE INDEX i ON a(b);
CREATE VIRTUAL TABLE f USING fts5(t, tokenize='icu');
INSERT INTO f VALUES('word');
CREATE VIEW v AS SELECT * FROM a JOIN f ON a.b = f.t;
CREATE VIEW w AS SELECT * FROM v;
CREATE VIEW x AS SELECT b AS f FROM a;
CREATE TRIGGER g AFTER INSERT ON a BEGIN INSERT INTO "f" VALUES(new.b); END;
INSERT INTO a VALUES(1, 2);
`;
  assert.deepEqual(
    (await load(text)).map((note) => note.replace(/; .*/, '')),
    [
      '3: CREATE VIRTUAL TABLE f US: no such tokenizer: icu',
      '5: CREATE VIEW v AS SELECT *: it uses f, which is left out',
      '6: CREATE VIEW w AS SELECT *: it uses v, which is left out',
      '8: CREATE TRIGGER g AFTER IN: it uses f, which is left out',
    ],
  );
  const names = 'SELECT name FROM sqlite_schema ORDER BY 1';
  assert.deepEqual(await run(database, names), [['a'], ['i'], ['x']]);
  await assert.rejects(loadStrictly(text), /line 3: no such tokenizer: icu/);
  const dumped = ROW.replace('fts5(t)', "fts5(t, tokenize=''icu'')") + PARTS;
  assert.deepEqual((await load(dumped)).length, 1);
  assert.deepEqual(await run(database, 'SELECT c0 FROM f_content'), [['word']]);
});

test('collations and functions that programs define are left out, and told', async () => {
  const { load, loadStrictly, run, database } = await open();
  const text = `CREATE TABLE a(b TEXT COLLATE LOCALIZED, c TEXT DEFAULT 'COLLATE x' COLLATE NOCASE, -- COLLATE y
  d TEXT CHECK(d REGEXP '^[(a]' AND length(d) > 0), CONSTRAINT long CHECK(length(b) < 4), CHECK(norm(c) = c));
INSERT INTO a VALUES('b', 'C', 'a');
CREATE UNIQUE INDEX i ON a(b COLLATE "UNICODE");
CREATE INDEX j ON a(norm(b));
`;
  assert.deepEqual(await load(text), [
    '1: CREATE TABLE a(b TEXT COL: there is no collation LOCALIZED here; text is compared byte by byte instead',
    '1: CREATE TABLE a(b TEXT COL: there is no function regexp here; the checks with it are left out',
    '1: CREATE TABLE a(b TEXT COL: there is no function norm here; the checks with it are left out',
    '4: CREATE UNIQUE INDEX i ON : there is no collation "UNICODE" here; text is compared byte by byte instead',
    '5: CREATE INDEX j ON a(norm(: there is no function norm here',
  ]);
  assert.deepEqual(await run(database, "SELECT b, c, d FROM a WHERE c = 'c'"), [['b', 'C', 'a']]);
  await assert.rejects(
    run(database, "INSERT INTO a VALUES('long', '', '')"),
    /CHECK constraint failed: long/,
  );
  await assert.rejects(run(database, "INSERT INTO a VALUES('b', '', '')"), /UNIQUE/);
  await assert.rejects(loadStrictly(text), /no such (?:collation|function)/);
});

test('text that is no UTF-8, long blobs and commands of the client are loaded as sqlite3 does', async () => {
  const { load, run, database } = await open();
  const bytes = (text: string) => Buffer.from(text, 'latin1');
  await load(
    Buffer.concat([
      bytes("CREATE TABLE a(b DEFAULT '\xfc');\nINSERT INTO a VALUES('it''s \xe9'),('"),
      Buffer.from("é€');\n.mode csv\n.headers on\nINSERT INTO a DEFAULT VALUES;\n"),
    ]),
  );
  assert.deepEqual(await run(database, 'SELECT hex(b) FROM a'), [['6974277320E9'], ['C3A9E282AC'], ['FC']]);
  for (const digits of [3, 20_000_000, 66_000_000]) {
    const blob = Buffer.alloc(digits * 2, '0aF7').toString();
    await load(
      `CREATE TABLE a(b, c, d);\nINSERT INTO a VALUES('x',X'${blob.slice(0, digits - (digits % 2))}',x'${blob.slice(0, 2)}');`,
    ).catch((error) => assert.match(String(error), digits > 64 * 2 ** 20 ? /at most 32 MiB/ : /nothing/));
    if (digits > 64 * 2 ** 20) break;
    const shown = 'SELECT b, length(c), hex(substr(c, 1, 2)), hex(d) FROM a';
    assert.deepEqual(await run(database, shown), [
      ['x', Math.floor(digits / 2), digits > 3 ? '0AF7' : '0A', '0A'],
    ]);
  }
});
