import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { readSql } from '../../../../libs/hrana/index.ts';
import { isBusy, isFull, sqliteErrorName } from '../../../../libs/sqlite/index.ts';
import { FULL_TEXT_PARTS } from '../../../testing/sqlite-fixture.ts';
import { numberOf, openTenantFile, setSizeLimit } from './tenant-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-tenant-'));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

const MIB = 2 ** 20;
const OPTIONS = { sizeLimitBytes: MIB, mayGrow: true, queryOnly: false, sessions: 'own' } as const;

function open(options: Partial<Parameters<typeof openTenantFile>[1]> = {}, path = newFile()): DatabaseSync {
  return openTenantFile(path, { ...OPTIONS, ...options });
}

function newFile(): string {
  const path = join(folder, `${++files}.sqlite`);
  writeFileSync(path, '');
  return path;
}

const other = join(folder, 'other.sqlite');
const FORBIDDEN = [
  `ATTACH '${other}' AS other`,
  "ATTACH ':memory:' AS other",
  "ATTACH '' AS other",
  'DETACH main',
  'VACUUM',
  `VACUUM INTO '${other}'`,
  "SELECT load_extension('/tmp/x')",
  "SELECT fts3_tokenizer('simple')",
  'CREATE VIRTUAL TABLE pages USING dbstat',
  'CREATE VIRTUAL TABLE x USING fts3tokenize',
  "UPDATE sqlite_schema SET sql = 'x'",
  "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, 'x')",
  'CREATE TABLE sqlite_x (a)',
  'PRAGMA writable_schema = ON',
  'PRAGMA writable_schema',
  'PRAGMA trusted_schema = ON',
  'PRAGMA journal_mode = DELETE',
  'PRAGMA journal_mode = OFF',
  'PRAGMA main.journal_mode = MEMORY',
  'PRAGMA locking_mode = EXCLUSIVE',
  "PRAGMA temp_store_directory = '/tmp'",
  'PRAGMA max_page_count = 1000000',
  'PRAGMA main.max_page_count = 1000000',
  'PRAGMA page_size = 512',
  'PRAGMA hard_heap_limit = 1',
  'PRAGMA soft_heap_limit = 1',
  'PRAGMA secure_delete = ON',
  'PRAGMA schema_version = 1',
  'PRAGMA cell_size_check = OFF',
  'SELECT * FROM pragma_database_list',
  'PRAGMA lock_proxy_file',
  'PRAGMA no_such_pragma = 1',
];
const ALLOWED = [
  'CREATE TABLE a (id INTEGER PRIMARY KEY, b TEXT UNIQUE, c REFERENCES a (id))',
  'CREATE INDEX i ON a (b)',
  'CREATE VIEW v AS SELECT b FROM a',
  'CREATE TRIGGER g AFTER INSERT ON a BEGIN UPDATE a SET b = upper(b) WHERE id = new.id; END',
  "INSERT INTO a (b) VALUES ('x') RETURNING id",
  'BEGIN; SAVEPOINT s; RELEASE s; COMMIT',
  'ALTER TABLE a ADD COLUMN d',
  'CREATE TEMP TABLE t AS SELECT * FROM a',
  'CREATE VIRTUAL TABLE f USING fts5(text)',
  "INSERT INTO f VALUES ('some words')",
  "SELECT * FROM f WHERE f MATCH 'words'",
  'CREATE VIRTUAL TABLE r USING rtree(id, x0, x1)',
  "SELECT json_extract('{\"a\": 1}', '$.a'), sqrt(2), datetime('now')",
  'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 3) SELECT n FROM c',
  'PRAGMA table_info(a)',
  'SELECT * FROM pragma_table_info(?)',
  'PRAGMA foreign_keys = ON',
  'PRAGMA foreign_keys',
  'PRAGMA user_version = 7',
  'PRAGMA index_list(a)',
  'PRAGMA foreign_key_list(a)',
  'PRAGMA integrity_check',
  'PRAGMA optimize',
  'PRAGMA journal_mode',
  'PRAGMA journal_mode = WAL',
  'PRAGMA page_count',
  // Hints that are ignored.
  'PRAGMA busy_timeout = 5000',
  'PRAGMA synchronous = OFF',
  'PRAGMA cache_size = -100000',
  'PRAGMA temp_store = FILE',
  'PRAGMA mmap_size = 1000000',
  'PRAGMA journal_size_limit = -1',
  'PRAGMA wal_autocheckpoint = 0',
  'PRAGMA threads = 8',
  'ANALYZE; REINDEX',
  'DROP TRIGGER g; DROP VIEW v; DROP TABLE f; DROP TABLE a',
];

describe('the SQL of a tenant', () => {
  test('makes no part of a virtual table, and passes over those of .schema that are there', () => {
    const database = open();
    database.exec(
      'CREATE VIRTUAL TABLE words USING fts5(text); CREATE VIRTUAL TABLE place USING rtree(id, x0, x1)',
    );
    database.exec("CREATE VIRTUAL TABLE bare USING fts5(text, content='')");
    for (const part of ["'words_data'(id, block)", '"place_node"(nodeno, data)'])
      assert.deepEqual(database.prepare(`CREATE TABLE IF NOT EXISTS ${part}`).all(), []);
    for (const sql of ["CREATE TABLE 'words_data'(id)", 'CREATE TABLE IF NOT EXISTS bare_content(id)'])
      assert.throws(() => database.prepare(sql).all(), /reserved for internal use/);
    database.prepare("INSERT INTO words VALUES ('some')").run();
    assert.equal(database.prepare("SELECT count(*) AS n FROM words('some')").get()?.n, 1);
    database.close();
  });

  test('reaches nothing but the own file', () => {
    const database = open();
    const before = readdirSync(folder);
    for (const sql of FORBIDDEN) assert.throws(() => database.prepare(sql).all(), Error, sql);
    for (const sql of FORBIDDEN) assert.throws(() => database.exec(sql), Error, sql);
    assert.deepEqual(readdirSync(folder), before);
    database.close();
  });

  test('does what applications do', () => {
    const database = open();
    for (const sql of ALLOWED) assert.doesNotThrow(() => database.exec(sql), sql);
    assert.equal(numberOf(database, 'PRAGMA synchronous'), 1);
    assert.equal(numberOf(database, 'PRAGMA temp_store'), 2);
    for (const [set, value] of [
      ['PRAGMA mmap_size = 1000000', 0],
      ['pragma main.journal_size_limit(-1);', 8 * 2 ** 20],
      ['PRAGMA wal_autocheckpoint=0', 1000],
    ] as const)
      assert.equal(numberOf(database, set), value, set);
    const list = database.prepare('PRAGMA database_list').all();
    assert.deepEqual(
      list.map((row) => ({ ...row })),
      [{ seq: 0, name: 'main', file: '' }],
    );
    assert.equal(numberOf(database, 'PRAGMA user_version'), 7);
    assert.equal(numberOf(database, 'PRAGMA foreign_keys'), 1);
    database.close();
  });

  test('cannot make a query-only connection write, nor leave a transaction open on it', () => {
    const path = newFile();
    open({}, path).exec('CREATE TABLE a (b)');
    const database = open({ queryOnly: true, sessions: 'single' }, path);
    for (const sql of ['PRAGMA query_only = OFF', 'BEGIN', 'SAVEPOINT s', 'INSERT INTO a VALUES (1)']) {
      assert.throws(() => database.exec(sql), Error, sql);
    }
    database.close();
  });

  test('in a file that someone else made is held to the same', () => {
    const path = newFile();
    const crafted = new DatabaseSync(path);
    crafted.exec(`CREATE TABLE a (b); CREATE VIEW evil AS SELECT load_extension('/tmp/x');
      CREATE VIEW look AS SELECT * FROM pragma_database_list;
      CREATE TRIGGER evil_too AFTER INSERT ON a BEGIN SELECT load_extension('/tmp/x'); END`);
    crafted.close();
    const database = open({}, path);
    assert.throws(() => database.exec('SELECT * FROM evil'));
    assert.throws(() => database.exec('SELECT * FROM look'));
    assert.throws(() => database.exec('INSERT INTO a VALUES (1)'));
    assert.deepEqual(database.prepare('SELECT * FROM a').all(), []);
    database.close();
  });
});

describe('the size limit of a file', () => {
  const FILL = 'INSERT INTO a SELECT zeroblob(1000) FROM generated LIMIT 3000';
  const prepare = (database: DatabaseSync) =>
    database.exec(`CREATE TABLE a (b); CREATE VIEW generated AS
      WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c`);

  test('ends with SQLITE_FULL, whole', () => {
    const database = open();
    prepare(database);
    assert.throws(() => database.exec(FILL), isFull);
    assert.equal(numberOf(database, 'SELECT count(*) FROM a'), 0);
    assert.equal(database.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
    database.close();
  });

  test('changes while a connection is open, and is never below what is there', () => {
    const database = open();
    prepare(database);
    setSizeLimit(database, { sizeLimitBytes: 16 * MIB, mayGrow: true }, 'own');
    database.exec(FILL);
    setSizeLimit(database, { sizeLimitBytes: 16 * MIB, mayGrow: false }, 'own');
    assert.throws(() => database.exec(FILL), isFull);
    database.exec('DELETE FROM a WHERE rowid % 2 = 0');
    database.exec('INSERT INTO a VALUES (1)');
    assert.throws(() => database.exec('PRAGMA max_page_count = 100000'));
    database.close();
  });
});

test('a lock that is taken fails at once, by its name', () => {
  const path = newFile();
  const [one, other] = [open({}, path), open({}, path)];
  one.exec('CREATE TABLE a (b UNIQUE); BEGIN IMMEDIATE');
  assert.throws(() => other.exec('BEGIN IMMEDIATE'), isBusy);
  one.exec('INSERT INTO a VALUES (1); COMMIT');
  assert.throws(
    () => other.exec('INSERT INTO a VALUES (1)'),
    (error) => sqliteErrorName(error) === 'SQLITE_CONSTRAINT_UNIQUE',
  );
  one.close();
  other.close();
});

test('a file that is gone is not made anew', () => {
  assert.throws(() => open({}, join(folder, 'gone.sqlite')));
  assert.ok(!readdirSync(folder).includes('gone.sqlite'));
});

const DUMP = `PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE a(id INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT, c AS (length(b)) STORED);
INSERT INTO a VALUES(7,replace('one\\ntwo','\\n',char(10)));
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','f','f',0,'CREATE VIRTUAL TABLE f USING fts5(t, tokenize=''porter'')');
${FULL_TEXT_PARTS.replace("'word'", "'words'")}DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('a',7);
CREATE TRIGGER g AFTER INSERT ON a BEGIN INSERT INTO f VALUES(new.b); END;
PRAGMA writable_schema=OFF;
COMMIT;
`;

test('a dump with a virtual table is run line by line in a session, and the schema stays protected', () => {
  const database = open();
  const run = (sql: string) => {
    for (const { text } of readSql(sql)) database.prepare(text).run();
  };
  run(DUMP);
  run("INSERT INTO a(b) VALUES('word')");
  const found = database.prepare("SELECT rowid, t FROM f WHERE f MATCH 'word' ORDER BY 1").all();
  assert.deepEqual(
    found.map(({ rowid, t }) => [rowid, t]),
    [
      [1, 'words'],
      [2, 'word'],
    ],
  );
  assert.deepEqual({ ...database.prepare('SELECT id, c FROM a WHERE id < 8').get() }, { id: 7, c: 7 });
  assert.deepEqual({ ...database.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' });
  for (const refused of [
    "UPDATE sqlite_schema SET sql = 'x'",
    "INSERT INTO sqlite_schema VALUES('table','x','x',0,'CREATE TABLE x(y)')",
    "INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','x','x',0,'CREATE VIRTUAL TABLE x USING dbstat')",
  ])
    assert.throws(() => run(refused), /may not be modified|not authorized/, refused);
  const single = open({ sessions: 'single' });
  const [line = ''] = DUMP.split('\n').filter((one) => one.includes('VIRTUAL'));
  assert.throws(() => single.prepare(line), /may not be modified/);
  single.close();
  database.close();
});
