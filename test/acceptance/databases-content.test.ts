/** The content of databases: statements, tables, dumps and loads. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { DATABASES, DELETE, formOf, newDatabase, rowsOf, run, sqliteFile } from './databases-kit.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const user = anyone.as((await anyone.register()).api_key);
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const query = (path: string, json: object): [string, { json: object }] => [`${path}/query`, { json }];

describe('a statement', () => {
  test('answers with columns and rows, its parameters in order', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (a INTEGER, b TEXT)');
    const insert = {
      statement: 'INSERT INTO t VALUES (?, ?), (2, NULL)',
      params: [1, 'x'],
      read_only: false,
    };
    assert.equal((await user.expect(200, ...query(path, insert))).affected, 2);
    const answer = await user.expect(200, ...query(path, { statement: 'SELECT * FROM t ORDER BY a' }));
    assert.deepEqual(answer.rows, [
      [1, 'x'],
      [2, null],
    ]);
    assert.deepEqual(
      answer.columns.map(({ name }: { name: string }) => name),
      ['a', 'b'],
    );
    assert.deepEqual([answer.row_count, answer.truncated], [2, false]);
  });

  test('answers with JSON as it always was written, however large', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (a INTEGER, b TEXT)');
    for (const count of [0, 2, 700]) {
      const statement = `WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 700)
        SELECT i AS "ü", hex(zeroblob(2000)) AS b, 1e999 AS c, NULL AS d FROM n WHERE i <= ${count}`;
      const answer = await user.fetch(`${path}/query`, { json: { statement } });
      const text = await answer.text();
      const columns = ['ü', 'b', 'c', 'd'].map((name) => ({ name, type: null }));
      const rows = Array.from({ length: count }, (_, i) => [i + 1, '0'.repeat(4000), 'Infinity', null]);
      const { elapsed_ms } = JSON.parse(text);
      const expected = { columns, rows, row_count: count, affected: null, truncated: false, elapsed_ms };
      assert.ok(text === `${JSON.stringify(expected)}\n`, `${count} rows differ: ${text.slice(0, 300)}`);
      assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(text)));
    }
  });

  test('writes only when it may', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (a)');
    for (const statement of ['INSERT INTO t VALUES (1)', 'DROP TABLE t', 'CREATE TABLE u (a)']) {
      await user.refused(400, 'query_failed', query(path, { statement }));
    }
    assert.deepEqual(await rowsOf(user, path, 'SELECT count(*) FROM t'), [[0]]);
  });

  test('that is wrong is answered with what the engine says', async () => {
    const path = await newDatabase(user);
    const wrong = await user.refused(400, 'query_failed', query(path, { statement: 'SELECT 1 FROMM t' }));
    assert.match(wrong.detail, /syntax error/);
    assert.match(wrong.engine_code, /^SQLITE_ERROR/);
  });

  test('may be 100,000 characters long, whatever they take in UTF-8 and JSON', async () => {
    const path = await newDatabase(user);
    const of = (length: number) => `SELECT length('${'\u0001'.repeat(length)}')`;
    const most = of(100_000 - of(0).length);
    assert.deepEqual(await rowsOf(user, path, most), [[100_000 - of(0).length]]);
    const { errors } = await user.refused(400, 'invalid_request', query(path, { statement: `${most} ` }));
    assert.equal(errors[0].field, 'statement');
  });

  test('may have comments before and after it, with lines of dashes', async () => {
    const path = await newDatabase(user);
    const line = '-'.repeat(70);
    assert.deepEqual(await rowsOf(user, path, `${line}\n-- x ; y\nSELECT 1; ${line}\n/* ${line} */`), [[1]]);
    for (const statement of [`${line}\n`, `SELECT 1; ${line}\nSELECT 2`]) {
      await user.refused(400, 'query_failed', query(path, { statement }));
    }
  });

  test('gives at most so many rows', async () => {
    const path = await newDatabase(user);
    const statement = 'WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n';
    const most = await user.expect(200, ...query(path, { statement }));
    assert.deepEqual([most.row_count, most.truncated], [1000, true]);
    const few = await user.expect(200, ...query(path, { statement, max_rows: 3 }));
    assert.deepEqual([few.rows, few.truncated], [[[1], [2], [3]], true]);
  });

  test('has a shape', async () => {
    const path = await newDatabase(user);
    const statement = 'SELECT 1';
    const bad = [
      {},
      { statement: '' },
      { statement: 7 },
      { command: { ping: 1 } },
      { statement, params: 'x' },
      { statement, read_only: 'yes' },
      { statement, max_rows: 0 },
      { statement, max_rows: 1001 },
    ];
    for (const json of bad) await user.refused(400, 'invalid_request', query(path, json));
  });
});

test('tables have their columns, indexes and references', async () => {
  const path = await newDatabase(
    user,
    'CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)',
    'CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer(id))',
    'CREATE VIEW names AS SELECT name FROM customer',
  );
  const tables = await user.expect(200, `${path}/tables`);
  const byName = new Map(tables.map((table: { name: string }) => [table.name, table]));
  assert.deepEqual([...byName.keys()].sort(), ['customer', 'names', 'sale']);
  const { columns } = byName.get('customer') as { columns: { name: string; primary_key: boolean }[] };
  assert.deepEqual(
    columns.map(({ name, primary_key }) => [name, primary_key]),
    [
      ['id', true],
      ['name', false],
    ],
  );
  const sale = byName.get('sale') as { foreign_keys: { references: { table: string } }[] };
  assert.equal(sale.foreign_keys[0]?.references.table, 'customer');
});

describe('a dump', () => {
  test('is a file that any SQLite opens', async () => {
    const path = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (1), (2)');
    const answer = await user.fetch(`${path}/dump`);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-disposition') ?? '', /attachment; filename="?d\d+\./);
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.equal(Number(answer.headers.get('content-length')), bytes.length);
    const name = join(folder, 'dump.db');
    writeFileSync(name, bytes);
    const file = new DatabaseSync(name);
    assert.equal(file.prepare('SELECT sum(x) AS sum FROM t').get()?.sum, 3);
    file.close();
  });

  test('has no format that the engine does not have', async () => {
    const path = await newDatabase(user);
    await user.refused(400, 'invalid_request', [`${path}/dump?format=csv`]);
  });
});

describe('a load', () => {
  const file = sqliteFile('CREATE TABLE loaded (x)', 'INSERT INTO loaded VALUES (42)');
  const load = (path: string, body: FormData): [string, { body: FormData }] => [`${path}/load`, { body }];

  test('replaces all that was there by a file', async () => {
    const path = await newDatabase(user, 'CREATE TABLE old (x)');
    await user.expect(200, ...load(path, formOf(file)));
    assert.deepEqual(await rowsOf(user, path, 'SELECT name FROM sqlite_master'), [['loaded']]);
    assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM loaded'), [[42]]);
    await run(user, path, 'INSERT INTO loaded VALUES (43)');
    const text = '\ufeffBEGIN;\r\nCREATE TABLE loaded (x);\r\nINSERT INTO loaded VALUES (44);\r\nCOMMIT;\r\n';
    const loaded = await user.expect(200, ...load(path, formOf(gzipSync(text))));
    assert.deepEqual([loaded.added, loaded.left_out, loaded.notes], [false, 0, []]);
    assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM loaded'), [[44]]);
    const more = formOf(Buffer.from('INSERT INTO loaded VALUES(45);\n'));
    assert.equal((await user.expect(200, ...load(path, more))).added, true);
    assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM loaded'), [[44], [45]]);
    await user.expect(200, `${path}/load?strict=true`, { body: formOf(file) });
    const packed = formOf(Buffer.from([0x04, 0x22, 0x4d, 0x18, 0, 0]));
    assert.match((await user.refused(400, 'load_failed', load(path, packed))).detail, /lz4.*unlz4/);
    const ofPowerShell = (sql: string) => formOf(Buffer.from(`\ufeff${sql}\r\n`, 'utf16le'));
    await user.expect(200, ...load(path, ofPowerShell('CREATE TABLE loaded (x);')));
    assert.deepEqual(await rowsOf(user, path, 'SELECT x FROM loaded'), []);
    const altered = load(path, ofPowerShell("INSERT INTO loaded VALUES ('é');"));
    assert.match(
      (await user.refused(400, 'load_failed', altered)).detail,
      /UTF-16.*line 1.*write the file itself/,
    );
  });

  test('that fails leaves what was there', async () => {
    const path = await newDatabase(user, 'CREATE TABLE old (x)');
    const damaged = Buffer.from(file);
    damaged.fill(0xff, 4096);
    const small = formOf(Buffer.from('no database at all'));
    await user.refused(400, 'load_failed', load(path, small));
    await user.refused(400, 'load_failed', load(path, formOf(damaged)));
    await user.refused(400, 'load_failed', load(path, formOf(Buffer.alloc(0))));
    assert.deepEqual(await rowsOf(user, path, 'SELECT name FROM sqlite_master'), [['old']]);
  });

  test('is bounded by the size limit', async () => {
    const made = await user.expect(201, DATABASES, { json: { name: 'tiny', size_limit_mb: 1 } });
    const path = `${DATABASES}/${made.database_id}`;
    const large = sqliteFile('CREATE TABLE t (x)', 'INSERT INTO t VALUES (zeroblob(2000000))');
    const { hint } = await user.refused(413, 'payload_too_large', load(path, formOf(large)));
    assert.match(hint, /size_limit_mb/);
    await user.expect(200, path, { method: 'PATCH', json: { size_limit_mb: 4 } });
    await user.expect(200, ...load(path, formOf(large)));
  });

  test('is a form with a file', async () => {
    const path = await newDatabase(user);
    await user.refused(400, 'invalid_request', load(path, new FormData()));
    await user.refused(400, 'invalid_request', load(path, formOf(file, 'dump')));
    await user.refused(415, 'unsupported_media_type', [`${path}/load`, { json: {} }]);
    const form = formOf(file);
    form.set('frobnicate', '1');
    const { status, headers } = await user.call(...load(path, form));
    assert.equal(status, 200);
    assert.match(headers.get('warning') ?? '', /frobnicate/);
  });

  test('into what is not there is refused, and the cloud goes on', async () => {
    const path = await newDatabase(user);
    await user.expect(200, path, DELETE);
    const large = formOf(Buffer.alloc(5_000_000));
    await user.refused(404, 'database_not_found', load(path, large));
    await user.expect(200, DATABASES);
  });

  test('whose caller leaves half-way leaves what was there, and the database free', async () => {
    const path = await newDatabase(user, 'CREATE TABLE old (x)');
    const headers = {
      'x-api-key': user.key ?? '',
      'content-type': 'multipart/form-data; boundary=x',
      'content-length': '100000',
    };
    const cut = request(cloud.api + path + '/load', { method: 'POST', headers });
    const gone = new Promise((resolve) => cut.once('close', resolve));
    cut.on('error', () => {});
    cut.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n');
    cut.write(file.subarray(0, 5000), () => cut.destroy());
    await gone;
    await user.expect(200, `${path}/credentials/rotate`, { method: 'POST' });
    assert.deepEqual(await rowsOf(user, path, 'SELECT name FROM sqlite_master'), [['old']]);
  });

  test('is done once under an Idempotency-Key', async () => {
    const path = await newDatabase(user);
    const call = () => ({ body: formOf(file), headers: { 'idempotency-key': 'load-once' } });
    await user.expect(200, `${path}/load`, call());
    await run(user, path, 'DELETE FROM loaded');
    const again = await user.call(`${path}/load`, call());
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(await rowsOf(user, path, 'SELECT count(*) FROM loaded'), [[0]]);
    const other = { ...call(), body: formOf(sqliteFile('CREATE TABLE other (x)')) };
    await user.refused(422, 'idempotency_mismatch', [`${path}/load`, other]);
    await user.expect(200, path, DELETE);
    const late = await user.call(`${path}/load`, call());
    assert.deepEqual([late.status, late.headers.get('idempotent-replayed')], [200, 'true']);
    assert.deepEqual(late.body, again.body);
    await user.refused(422, 'idempotency_mismatch', [`${path}/load`, other]);
    const unknown = { ...call(), headers: { 'idempotency-key': 'load-never' } };
    await user.refused(404, 'database_not_found', [`${path}/load`, unknown]);
  });
});

test('many calls on one connection leave no listeners on it', async () => {
  const path = await newDatabase(user);
  for (let i = 0; i < 30; i++) await rowsOf(user, path, 'SELECT 1');
  assert.doesNotMatch(cloud.output, /MaxListenersExceededWarning/);
});
