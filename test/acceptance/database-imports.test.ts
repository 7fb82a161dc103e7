/** CSV and JSON files become rows of new and existing tables, in one transaction, with hostile values. */
import assert from 'node:assert/strict';
import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { CliUser } from './cli-kit.ts';
import { DATABASES, rowsOf, run } from './databases-kit.ts';

let cloud: CloudProcess;
let cli: CliUser & { readonly key: string };
let user: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  cli = await CliUser.signedIn(cloud.api);
  user = await CheckedClient.open(cloud.api, cli.key);
});
after(() => cloud.stop());

const isHere = (program: string) => globSync(`build/programs/${program}-*/usr`).length > 0;
const ENGINES = [
  { engine: 'sqlite', skip: false, bytes: 'BLOB', many: 'TEXT' },
  { engine: 'postgresql', skip: isHere('postgresql') ? false : NO_POSTGRESQL, bytes: 'bytea', many: 'text' },
  { engine: 'mysql', skip: isHere('mariadb') ? false : NO_MARIADB, bytes: 'longblob', many: 'longtext' },
];

const HOSTILE = [
  String.raw`it's \ 'x'; DROP TABLE people --`,
  '<img src=x onerror=alert(1)>',
  '=1+1',
  'a,"b";c\td|e',
  ' \r\n ',
  '',
  null,
  'NULL',
  String.raw`\x00`,
  '日本 🦊 é',
  '2026-02-03',
  '007',
];

for (const { engine, skip, bytes, many } of ENGINES)
  describe(`imports into ${engine}`, { skip }, () => {
    let path: string;
    const quote = engine === 'mysql' ? '`' : '"';
    const formOf = (text: string | Uint8Array<ArrayBuffer>) => {
      const form = new FormData();
      form.set('file', new Blob([text]), 'rows.csv');
      return form;
    };
    const target = (query: Record<string, string>) => `${path}/rows/import?${new URLSearchParams(query)}`;
    const imported = (text: string | Uint8Array<ArrayBuffer>, query: Record<string, string>) =>
      user.expect(200, target(query), { body: formOf(text) });
    const refused = (code: 'load_failed' | 'invalid_request', text: string, query: Record<string, string>) =>
      user.refused(400, code, [target(query), { body: formOf(text) }]);
    const read = async (table: string, sort?: string) => {
      const by = sort === undefined ? {} : { sort: [{ column: sort }] };
      return user.expect(200, `${path}/rows/read`, { json: { table, limit: 1000, ...by } });
    };
    const exported = async (table: string, format: string) => {
      const headers = { 'x-api-key': cli.key };
      const response = await fetch(`${cloud.api}${path}/rows/export?table=${table}&format=${format}`, {
        headers,
      });
      assert.equal(response.status, 200);
      return response.text();
    };
    before(async () => {
      const made = await user.expect(201, DATABASES, { json: { name: `in-${engine}`, engine } });
      path = `${DATABASES}/${made.database_id}`;
    });

    test('types of a new table are guessed and shown, changed, and then made', async () => {
      const csv =
        '\ufeffid;Zip;name;score;born;ok;left\r\n1;01234;Ann;1.5;2001-02-03;true;\r\n2;99999;"B;o";2;;false;\r\n';
      const shown = await imported(csv, { table: 'guests', dry_run: 'true' });
      assert.deepEqual([shown.created, shown.separator, shown.header, shown.rows], [true, ';', true, 0]);
      const kinds = ['integer', 'text', 'text', 'number', 'date', 'boolean', 'text'];
      assert.deepEqual(
        shown.columns.map(({ type }: { type: string }) => type),
        kinds,
      );
      assert.deepEqual(shown.sample[1], ['2', '99999', 'B;o', '2', null, 'false', null]);
      await user.refused(400, 'invalid_request', [`${path}/rows/read`, { json: { table: 'guests' } }]);
      const columns = JSON.stringify({ Zip: { name: 'zip' }, score: { type: 'text' }, left: null });
      const done = await imported(csv, { table: 'guests', columns });
      assert.deepEqual([done.created, done.rows], [true, 2]);
      const { rows, columns: found } = await read('guests', 'id');
      assert.deepEqual(
        found.map(({ name }: { name: string }) => name),
        ['id', 'zip', 'name', 'score', 'born', 'ok'],
      );
      assert.deepEqual(
        rows.map((row: unknown[]) => row.map((value) => (value === true ? 1 : value === false ? 0 : value))),
        [
          [1, '01234', 'Ann', '1.5', '2001-02-03', 1],
          [2, '99999', 'B;o', '2', null, 0],
        ],
      );
    });

    test('fields may have the names of what every object has', async () => {
      const text = 'constructor,toString,hasOwnProperty\n1,2,3\n';
      const { columns } = await imported(text, { table: 'odd' });
      const names = columns.map(({ name }: { name: string }) => name);
      assert.deepEqual(names, ['constructor', 'toString', 'hasOwnProperty']);
      const added = await imported('[{"constructor":4},{"toString":5}]', { table: 'odd' });
      assert.equal(added.rows, 2);
    });

    test('what was exported comes back equal, as CSV and as JSON, however hostile', async () => {
      const columns = `id int PRIMARY KEY, ${quote}we,ird x${quote} int, t ${many}, b ${bytes}`;
      await run(user, path, `CREATE TABLE sent (${columns})`);
      await run(user, path, `CREATE TABLE back (${columns})`);
      const changes = HOSTILE.map((t, id) => {
        const b = id % 3 === 0 ? null : { base64: Buffer.from([0, 255, id]).toString('base64') };
        return { action: 'insert', values: { id, 'we,ird x': id % 2 ? null : -id, t, b } };
      });
      await user.expect(200, `${path}/rows/change`, { json: { table: 'sent', changes } });
      const wanted = (await read('sent')).rows;
      assert.deepEqual(
        wanted.map(([, , t]: unknown[]) => t),
        HOSTILE,
      );
      for (const format of ['csv', 'jsonl']) {
        await run(user, path, 'DELETE FROM back');
        const { rows, created } = await imported(await exported('sent', format), { table: 'back' });
        assert.deepEqual([rows, created], [HOSTILE.length, false]);
        assert.deepEqual((await read('back')).rows, wanted, format);
      }
    });

    test('one bad row names its line, and nothing is half-made', async () => {
      await run(user, path, 'CREATE TABLE strict (id int PRIMARY KEY, n int NOT NULL)');
      await run(user, path, 'INSERT INTO strict VALUES (1, 1)');
      const lines = Array.from({ length: 1500 }, (_, at) => `${at + 10},${at}`);
      lines[700] = '9,';
      lines[702] = '1,5';
      const answer = await refused('load_failed', `id,n\n${lines.join('\n')}\n`, { table: 'strict' });
      assert.deepEqual(
        answer.lines.map(({ line }: { line: number }) => line),
        [702, 704],
      );
      assert.match(answer.detail, /^Line 702: .*Nothing was imported$/);
      assert.deepEqual(await rowsOf(user, path, 'SELECT count(*) FROM strict'), [[1]]);

      const fresh = `a,b\n${'1,x\n'.repeat(20_000)}nothing,2\n`;
      const later = await refused('load_failed', fresh, {
        table: 'fresh',
        columns: '{"a":{"type":"integer"}}',
      }).catch((error: Error) => error);
      // SQLite accepts any value.
      if (engine === 'sqlite') assert.ok(later instanceof Error);
      else {
        assert.equal(later.lines[0].line, 20_002);
        await user.refused(400, 'invalid_request', [`${path}/rows/read`, { json: { table: 'fresh' } }]);
      }
      for (const text of ['a,b\n1,2\n3\n', 'a,b\n1,"2\n', 'a,b\n1,"2"x\n', '[{"a":1},{"b"}]'])
        assert.ok((await refused('load_failed', text, { table: 'broken' })).lines[0].line >= 1, text);
      const latin = formOf(new Uint8Array(Buffer.from('a,b\nM\xfcll,1\n', 'latin1')));
      await user.refused(400, 'load_failed', [target({ table: 'latin' }), { body: latin }]);
      await user.refused(400, 'invalid_request', [`${path}/rows/read`, { json: { table: 'broken' } }]);
    });

    test('JSON lists keep what a number would round, and separators, headers and empty fields are chosen', async () => {
      const json =
        '[\n  {"n": 12345678901234567, "t": "a", "o": {"x": [1, "}"]}},\n  {"n": -1, "t": null}\n]';
      await imported(json, { table: 'listed' });
      const { rows } = await read('listed', 'n');
      assert.deepEqual(
        rows.map(([n, t]: unknown[]) => [n, t]),
        [
          [-1, null],
          ['12345678901234567', 'a'],
        ],
      );
      assert.deepEqual(JSON.parse(rows[1][2]), { x: [1, '}'] });
      const utf16 = new Uint8Array(Buffer.from('\ufeffx\ty\n1\t\n', 'utf16le'));
      const said = await imported(utf16, { table: 'tabs', header: 'false', empty: 'text' });
      assert.deepEqual([said.separator, said.rows, said.columns[0].field], ['\t', 2, 'column_1']);
      assert.deepEqual((await read('tabs', 'column_1')).rows, [
        ['1', ''],
        ['x', 'y'],
      ]);
      await refused('invalid_request', 'a,b\n1,2\n', { table: 'tabs' });
      await refused('invalid_request', '', { table: 'none' });
      await refused('invalid_request', 'a\n1\n', { table: 'none', columns: '{"zip":null}' });
    });

    test('by the client, which asks for nothing that it can guess', async () => {
      writeFileSync(join(cli.home, 'goods.csv'), 'sku,price\nA-1,2.50\nA-2,3\n');
      const said = await cli.ok(['db', 'import', `in-${engine}`, 'goods.csv']);
      assert.match(said, /2 rows .*goods.*\bnew\b/);
      const shown = await cli.ok(['db', 'import', `in-${engine}`, 'goods.csv', 'other', '--dry-run']);
      assert.match(shown, /price\s+number/);
      assert.equal((await read('goods', 'sku')).rows.length, 2);
      const bad = join(cli.home, 'bad.csv');
      writeFileSync(bad, 'sku,price\nA-3\n');
      assert.match(await cli.fails(1, ['db', 'import', `in-${engine}`, bad, 'goods']), /[Ll]ine 2/);
    });
  });

test('a packed file may unpack to more than the database holds, but not to any amount', async () => {
  const made = await user.expect(201, DATABASES, { json: { name: 'small', size_limit_mb: 1 } });
  const target = (query: Record<string, string>) =>
    `${DATABASES}/${made.database_id}/rows/import?${new URLSearchParams(query)}`;
  const formOf = (packed: Buffer) => {
    const form = new FormData();
    form.set('file', new Blob([new Uint8Array(packed)]), 'rows.csv.gz');
    return form;
  };
  const rows = `id,note\n${`1,${'x'.repeat(1000)}\n`.repeat(2500)}`;
  const kept = { table: 'kept', columns: '{"note":null}' };
  assert.equal((await user.expect(200, target(kept), { body: formOf(gzipSync(rows)) })).rows, 2500);
  // Members of gzip without content: whatever they are packed in unpacks to them, and they to nothing.
  const members = Buffer.alloc(20 * 2 ** 20, gzipSync(''));
  const body = formOf(gzipSync(members));
  const answer = await user.refused(413, 'payload_too_large', [target({ table: 'none' }), { body }]);
  assert.match(answer.detail, /unpacks to more than 16 MB, 16 times the size limit/);
});
