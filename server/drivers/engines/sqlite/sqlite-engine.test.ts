/** SQLite as an engine, with libSQL's driver. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { createClient } from '@libsql/client';
import { type EngineDatabase, LoadFailed } from '../../../databases/engine.ts';
import { LeftOut } from '../../../databases/left-out.ts';
import { type EngineFixture, type NotesClient, testEngine } from '../../../testing/engine.conformance.ts';
import { eventually } from '../../../testing/eventually.ts';
import { FULL_TEXT_PARTS, openSqlite } from '../../../testing/sqlite-fixture.ts';
import { exchangeHrana } from './hrana-exchange.ts';
import type { SqliteEngine } from './sqlite-engine.ts';

async function open(): Promise<EngineFixture> {
  const fixture = openSqlite();
  const { engine } = fixture;
  const edge = await openEdge(engine);
  return {
    engine,
    connect: async (database) => clientOf(edge.connect(database)),
    crash: async (database) => {
      process.kill(await eventually(() => engine.processOf(database)), 'SIGKILL');
    },
    close: async () => {
      await edge.close();
      await fixture.close();
    },
    holdsSize: true,
    statements: {
      count: (rows) =>
        `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT ${rows}) SELECT n FROM c`,
      addNote: "INSERT INTO notes VALUES ('by query')",
      wrong: 'SELEC 1',
      endless: 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c',
    },
  };
}

/** Hrana without passwords, which the edge checks: hrana/hrana-edge.ts. */
async function openEdge(engine: SqliteEngine) {
  const known = new Map<string, EngineDatabase>();
  const server = createServer(async (request, response) => {
    const [, databaseId = '', ...path] = (request.url ?? '').split('/');
    const database = known.get(databaseId);
    const body = await buffer(request);
    const signal = new AbortController().signal;
    try {
      if (database === undefined || request.method === 'GET') return response.writeHead(200).end('{}');
      const answer = await exchangeHrana(engine, database, { path: path.join('/'), body, signal });
      response.writeHead(answer.status, { 'content-type': answer.contentType });
      if (answer.body instanceof Uint8Array) return response.end(answer.body);
      return await pipeline(answer.body, response);
    } catch (error) {
      return response.writeHead(503).end(String(error));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    connect: (database: EngineDatabase) => {
      known.set(database.databaseId, database);
      return createClient({ url: `http://127.0.0.1:${port}/${database.databaseId}/` });
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function clientOf(driver: ReturnType<typeof createClient>): NotesClient {
  return {
    prepare: async () => {
      await driver.execute('CREATE TABLE IF NOT EXISTS notes (note TEXT)');
    },
    add: async (note) => {
      await driver.execute({ sql: 'INSERT INTO notes VALUES (?)', args: [note] });
    },
    notes: async () => {
      const { rows } = await driver.execute('SELECT note FROM notes ORDER BY note');
      return rows.map(({ note }) => String(note));
    },
    clear: async () => {
      await driver.execute('DELETE FROM notes');
    },
    close: async () => driver.close(),
  };
}

testEngine('sqlite', open);

/** Lines of sqlite3's `.dump`, with a virtual table, a trigger and strings that look like SQL. */
const DUMP = `PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT DEFAULT 'x;y', c REFERENCES later (id));
INSERT INTO a VALUES(1,'it''s; COMMIT;
ROLLBACK;',7);
INSERT INTO a VALUES(2,replace('two\\nlines','\\n',char(10)),NULL);
CREATE TABLE later (id PRIMARY KEY);
INSERT INTO later VALUES(7);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','f','f',0,'CREATE VIRTUAL TABLE f USING fts5(t)');
${FULL_TEXT_PARTS}DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('a',41);
CREATE TRIGGER g AFTER INSERT ON a BEGIN
  UPDATE a SET b = upper(b) WHERE id = new.id;
  SELECT CASE WHEN 1 THEN 2 END;
END;
CREATE INDEX i ON a (b);
PRAGMA writable_schema=OFF;
COMMIT;
`;

test('SQL text of .dump is loaded as a whole, or not at all', async () => {
  const { engine, make, run, close } = openSqlite();
  const { signal } = new AbortController();
  try {
    const database = await make();
    const load = (text: string | Buffer) =>
      engine.load(database, Readable.from([Buffer.from(text)]), { signal });
    await load(`\ufeff${DUMP.replaceAll(';\n', ';\r\n')}`);
    assert.deepEqual(await run(database, 'SELECT id, b, c FROM a'), [
      [1, "it's; COMMIT;\r\nROLLBACK;", 7],
      [2, 'two\nlines', null],
    ]);
    await load(DUMP);
    assert.deepEqual(await run(database, 'SELECT t FROM f'), [['word']]);
    await run(database, "INSERT INTO a (b) VALUES ('new')");
    assert.deepEqual(await run(database, 'SELECT id, b FROM a WHERE id > 2'), [[42, 'NEW']]);
    // The shell's .schema of a table with AUTOINCREMENT that was analysed.
    const own = 'CREATE TABLE sqlite_sequence(name,seq);\nCREATE TABLE sqlite_stat1(tbl,idx,stat);\n';
    await load(`CREATE TABLE s (id INTEGER PRIMARY KEY AUTOINCREMENT);\n${own}`);
    assert.deepEqual(await run(database, 'SELECT count(*) FROM s'), [[0]]);
    await load(DUMP);
    await run(database, "INSERT INTO a (b) VALUES ('new')");
    const refused = (text: string | Buffer, what: RegExp) =>
      assert.rejects(load(text), (error: Error) => {
        assert.ok(error instanceof LoadFailed);
        assert.match(error.message, what);
        return true;
      });
    await refused(DUMP.replace('VALUES(1,X', 'VALUES(nothing,X'), /^line 12: near "nothing": syntax error/);
    await refused(DUMP.replace(/COMMIT;\n$/, ''), /cut off: .*make it again/);
    await refused(DUMP.replace(/COMMIT;\n$/, 'ROLLBACK; -- due to errors\n'), /line 31: .*ROLLBACK/);
    await refused(DUMP.replace('PRAGMA foreign', "ATTACH '/tmp/x' AS x;\nPRAGMA foreign"), /^line 1: /);
    await refused('\n-- nothing\n;/* at all */  \n', /empty: it has no statement/);
    await refused(Buffer.alloc(40 * 1024 * 1024, ' '), /^line 1: the statement is too long/);
    assert.deepEqual(await run(database, 'SELECT count(*) FROM a'), [[3]]);
  } finally {
    await close();
  }
});

test('SQL text with virtual tables of other modules is loaded without them, and told', async () => {
  const { engine, make, run, close } = openSqlite();
  const { signal } = new AbortController();
  try {
    const database = await make();
    const made = (name: string) =>
      `INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','${name}','${name}',0,'CREATE VIRTUAL TABLE ${name} USING vec0(e float[3])');\n`;
    const text =
      `PRAGMA writable_schema=ON;\n${made('v')}${made('w').replace('_schema', '_master')}PRAGMA writable_schema=OFF;\n` +
      `CREATE TABLE v_info (a);\nINSERT INTO v_info VALUES ('CREATE VIRTUAL TABLE x USING vec0()');\n` +
      'CREATE VIRTUAL TABLE SpatialIndex USING VirtualSpatialIndex();\nCREATE VIRTUAL TABLE f USING fts5(t);\n';
    const load = (leftOut?: LeftOut) =>
      engine.load(database, Readable.from([Buffer.from(text)]), { signal, leftOut });
    await assert.rejects(load(), LoadFailed);
    const leftOut = new LeftOut();
    await load(leftOut);
    assert.deepEqual(
      leftOut.notes.map(({ text: told, reason }) => [told.slice(0, 20), reason.split(' ')[4]]),
      [
        ['INSERT INTO sqlite_s', 'vec0'],
        ['INSERT INTO sqlite_m', 'vec0'],
        ['CREATE VIRTUAL TABLE', 'VirtualSpatialIndex'],
      ],
    );
    const names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'f_%' ORDER BY 1";
    assert.deepEqual(await run(database, names), [['f'], ['v_info']]);
  } finally {
    await close();
  }
});

/** Output of `.dump --data-only` of sqlite3 3.40. */
const ROWS = `INSERT INTO p VALUES(3,'c;
COMMIT;');
INSERT INTO p VALUES(4,replace('d\\n','\\n',char(10)));
INSERT INTO r VALUES(2,2.0,3.0);
INSERT INTO r_rowid VALUES(2,1);
INSERT INTO "r_node" VALUES(1,X'0000');
INSERT INTO f VALUES('hello');
INSERT INTO 'f_data' VALUES(1,X'0101');
INSERT INTO f_content(id,c0) VALUES(1,'hello');
INSERT INTO sqlite_sequence VALUES('p',40);
`;

test('SQL text of rows alone is added to the tables that are there, as a whole or not at all', async () => {
  const { engine, make, run, close } = openSqlite();
  const { signal } = new AbortController();
  try {
    const database = await make();
    let added = 0;
    const adding = () => {
      added++;
    };
    const load = (text: string) =>
      engine.load(database, Readable.from([Buffer.from(text)]), { signal, adding });
    await load(`CREATE TABLE p (id INTEGER PRIMARY KEY AUTOINCREMENT, n TEXT);
      CREATE TABLE k (p REFERENCES p); CREATE VIRTUAL TABLE r USING rtree(id, x0, x1);
      CREATE VIRTUAL TABLE f USING fts5(t); INSERT INTO r VALUES (1, 2, 3);
      INSERT INTO p VALUES (1, 'a'), (2, 'b');`);
    assert.equal(added, 0);
    await run(database, 'INSERT INTO k VALUES (1)');
    await load(ROWS);
    assert.equal(added, 1);
    const count = async () => (await run(database, 'SELECT count(*), (SELECT count(*) FROM k) FROM p'))[0];
    assert.deepEqual(await count(), [4, 1]);
    assert.deepEqual(await run(database, 'SELECT n FROM p WHERE id > 2'), [['c;\nCOMMIT;'], ['d\n']]);
    assert.deepEqual(await run(database, 'SELECT id FROM r WHERE x0 <= 2 AND x1 >= 3'), [[1], [2]]);
    assert.deepEqual(await run(database, "SELECT t FROM f WHERE f MATCH 'hello'"), [['hello']]);
    assert.deepEqual(await run(database, 'SELECT * FROM sqlite_sequence'), [['p', 40]]);
    for (const [text, reason] of [
      [ROWS, /^line 1: UNIQUE constraint failed: p\.id, at: INSERT INTO p/],
      ["INSERT INTO p VALUES(9,'i');\nINSERT INTO q VALUES(1);", /^line 2: no such table: q/],
      ["BEGIN;\nINSERT INTO p VALUES(9,'i');\n", /cut off/],
      ["INSERT INTO p VALUES(9,'i');\nINSERT INTO k VALUES(10);", /missing row of p/],
      [
        '-- CREATE\nPRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nDELETE FROM p;\nROLLBACK;',
        /contains ROLLBACK/,
      ],
    ] as const) {
      await assert.rejects(load(text), (error: Error) => {
        assert.ok(error instanceof LoadFailed);
        assert.match(error.message, reason);
        return true;
      });
      assert.deepEqual(await count(), [4, 1]);
    }
    // The beginning of `.recover` of sqlite3 3.45, and typical hand-written ends.
    const recovered = '.dbconfig defensive off\r\n.mode list\nBEGIN;\nPRAGMA writable_schema = on;\n';
    await load(`${recovered}CREATE TABLE "b"(x);\nPRAGMA writable_schema = off;\nCOMMIT;\nVACUUM;\n`);
    assert.deepEqual(await run(database, 'SELECT count(*) FROM b'), [[0]]);
    await assert.rejects(load(`.mode list\n.shell ls\n${DUMP}`), /line 2: /);
    await assert.rejects(load('.mode list\nCREATE TABLE b(x);\nCREATE TABLE b(x);'), /^.*line 3: /);
    await load(DUMP);
    // Copies and recovery points still replace the database.
    const text = Readable.from([Buffer.from('INSERT INTO p VALUES(9);')]);
    await assert.rejects(engine.load(database, text, { signal }), /no such table: p/);
    await load(DUMP);
    assert.deepEqual(await run(database, 'SELECT count(*) FROM a'), [[2]]);
  } finally {
    await close();
  }
});

test('a copy whose load fails early leaves no open file', async () => {
  const fixture = openSqlite();
  const { engine } = fixture;
  const [from, to] = [await fixture.make(), await fixture.make()];
  const why = new Error('no folder for it');
  engine.load = () => Promise.reject(why);
  await assert.rejects(engine.fork(from, to, new AbortController().signal), why);
  const paths = () => readdirSync('/proc/self/fd').map((name) => linkOf(`/proc/self/fd/${name}`));
  await eventually(() => !paths().some((path) => path.startsWith(fixture.folder)));
  await fixture.close();
});

/** Descriptors may be closed while they are listed. */
function linkOf(path: string): string {
  return existsSync(path) ? readlinkSync(path) : '';
}
