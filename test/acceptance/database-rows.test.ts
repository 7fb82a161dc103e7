/** Rows of tables over the API, in each available SQL engine: pages, filters, and atomic changes. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { DATABASES, rowsOf, run } from './databases-kit.ts';

let cloud: CloudProcess;
let user: CheckedClient;
let other: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
  other = anyone.as((await anyone.register()).api_key);
});
after(() => cloud.stop());

const isHere = (program: string) => globSync(`build/programs/${program}-*/usr`).length > 0;

interface Sql {
  readonly engine: string;
  readonly skip: string | false;
  /** Statements that create a table `odd` with a key `id`, one column of each difficult type, and a row 1. */
  readonly odd: readonly string[];
  /** Row 1 as read by the API, and its changes. */
  readonly oddRow: readonly unknown[];
  readonly changed: Readonly<Record<string, unknown>>;
}

const BYTES = { base64: 'AAH/' };
const ENGINES: readonly Sql[] = [
  {
    engine: 'sqlite',
    skip: false,
    odd: [
      'CREATE TABLE odd (id INTEGER PRIMARY KEY, big INTEGER, real REAL, loose, bytes BLOB, empty TEXT, none TEXT)',
      `INSERT INTO odd VALUES (1, 9007199254740993, 0.1, 9007199254740995, x'0001ff', '', NULL)`,
    ],
    oddRow: [1, '9007199254740993', 0.1, '9007199254740995', BYTES, '', null],
    changed: {
      big: '9007199254740995',
      real: 2.5,
      loose: 7,
      bytes: { base64: 'AgM=' },
      empty: null,
      none: '',
    },
  },
  {
    engine: 'postgresql',
    skip: isHere('postgresql') ? false : NO_POSTGRESQL,
    odd: [
      `CREATE TABLE odd (id bigint PRIMARY KEY, big bigint, exact numeric, real float4, bytes bytea, doc json,
        docs jsonb, at timestamptz, day date, flags boolean, place point, list text[], empty text, none text)`,
      String.raw`INSERT INTO odd VALUES (1, 9007199254740993, 1.10, 0.1, '\x0001ff', '{"a":  12345678901234567890}',
        '["x"]', '2026-02-03 04:05:06.789+00', '2026-02-03', true, '(1,2)', '{a,"b c"}', '', NULL)`,
    ],
    oddRow: [
      ...[1, '9007199254740993', '1.10', 0.1, BYTES, '{"a":  12345678901234567890}', '["x"]'],
      ...['2026-02-03 04:05:06.789+00', '2026-02-03', true, '(1,2)', '{a,"b c"}', '', null],
    ],
    changed: {
      big: '9007199254740995',
      exact: '2.20',
      real: 2.5,
      bytes: { base64: 'AgM=' },
      doc: '"text"',
      docs: '{"b": 1}',
      at: '2026-02-03 04:05:07+00',
      day: '2026-02-04',
      flags: false,
      place: '(3,4)',
      list: '{c}',
      empty: null,
      none: '',
    },
  },
  {
    engine: 'mysql',
    skip: isHere('mariadb') ? false : NO_MARIADB,
    odd: [
      `CREATE TABLE odd (id bigint unsigned PRIMARY KEY, big bigint, exact decimal(30, 10), frac float, dbl double,
        bytes blob, bits bit(4), doc json, at datetime(3), day date, kind enum('a', 'b'), empty text, none text)`,
      `INSERT INTO odd VALUES (1, 9007199254740993, 12345678901234567890.1, 0.1, 0.1, x'0001ff', b'101',
        '{"a":  1}', '2026-02-03 04:05:06.789', '2026-02-03', 'a', '', NULL)`,
    ],
    oddRow: [
      ...[1, '9007199254740993', '12345678901234567890.1000000000', '0.1', '0.1', BYTES, 5, '{"a":  1}'],
      ...['2026-02-03 04:05:06.789', '2026-02-03', 'a', '', null],
    ],
    changed: {
      big: '9007199254740995',
      exact: '2.2000000000',
      frac: '2.5',
      dbl: '2.5',
      bytes: { base64: 'AgM=' },
      bits: 6,
      doc: '"text"',
      at: '2026-02-03 04:05:07.000',
      day: '2026-02-04',
      kind: 'b',
      empty: null,
      none: '',
    },
  },
];

/** The whole text of an export. */
async function exportOf(path: string, query: string): Promise<string> {
  const headers = { 'x-api-key': user.key ?? '' };
  const response = await fetch(`${cloud.api}${path}/rows/export?${query}`, { headers });
  assert.equal(response.status, 200);
  return response.text();
}

test('rows whose key is NULL, which SQLite allows, are exported too', async () => {
  const { database_id: id } = await user.expect(201, DATABASES, { json: { name: 'nulls' } });
  const path = `${DATABASES}/${id}`;
  await run(user, path, 'CREATE TABLE n (k TEXT PRIMARY KEY, v INTEGER)');
  await run(
    user,
    path,
    `WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < 3000)
     INSERT INTO n SELECT CASE WHEN v > 1500 THEN printf('%05d', v) END, v FROM i`,
  );
  const [, ...lines] = (await exportOf(path, 'table=n')).trimEnd().split('\r\n');
  const found = lines.map((line) => Number(line.split(',')[1]));
  assert.deepEqual(
    found.toSorted((one, next) => one - next),
    Array.from({ length: 3000 }, (_, at) => at + 1),
  );
});

test('rows of 1,999 columns are read, changed and exported in SQLite, and of 2,000 it is said', async () => {
  const { database_id: id } = await user.expect(201, DATABASES, { json: { name: 'wide' } });
  const path = `${DATABASES}/${id}`;
  const names = Array.from({ length: 1998 }, (_, at) => `c${at}`);
  await run(user, path, `CREATE TABLE wide (id INTEGER PRIMARY KEY, ${names.join(', ')})`);
  await run(user, path, `INSERT INTO wide (id, c7, c1997) VALUES (1, x'00ff', 'last')`);
  const asked = { json: { table: 'wide' } };
  const { columns, rows } = await user.expect(200, `${path}/rows/read`, asked);
  assert.deepEqual([columns.length, rows.length], [1999, 1]);
  const [row] = rows;
  assert.deepEqual([row[0], row[1], row[8], row.at(-1)], [1, null, { base64: 'AP8=' }, 'last']);
  const old = Object.fromEntries(columns.map(({ name }: { name: string }, at: number) => [name, row[at]]));
  const changes = [{ action: 'update', old, values: { c7: 'text' } }];
  await user.expect(200, `${path}/rows/change`, { json: { table: 'wide', changes } });
  assert.equal((await user.expect(200, `${path}/rows/read`, asked)).rows[0][8], 'text');
  const [, line = ''] = (await exportOf(path, 'table=wide')).trimEnd().split('\r\n');
  assert.ok(line.startsWith('1,') && line.endsWith(',last'));
  await run(user, path, 'ALTER TABLE wide ADD COLUMN c1998');
  const problem = await user.refused(400, 'invalid_request', [`${path}/rows/read`, asked]);
  assert.match(problem.detail, /2000 columns, but rows of at most 1,999/);
});

for (const { engine, skip, odd, oddRow, changed } of ENGINES) {
  describe(`rows in ${engine}`, { skip }, () => {
    let path: string;
    const read = (ask: object) => user.expect(200, `${path}/rows/read`, { json: ask });
    const change = (json: object): [string, { json: object }] => [`${path}/rows/change`, { json }];
    const exported = (table: string, format: string) => exportOf(path, `table=${table}&format=${format}`);
    const quote = engine === 'mysql' ? '`' : '"';
    before(async () => {
      const made = await user.expect(201, DATABASES, { json: { name: `rows-${engine}`, engine } });
      path = `${DATABASES}/${made.database_id}`;
      await run(user, path, 'CREATE TABLE people (id int PRIMARY KEY, name varchar(90), age int)');
      const rows = Array.from(
        { length: 250 },
        (_, i) => `(${i + 1}, 'P${i % 10}', ${i % 7 === 0 ? 'NULL' : i})`,
      );
      await run(user, path, `INSERT INTO people VALUES ${rows.join(', ')}`);
      for (const statement of odd) await run(user, path, statement);
    });

    test('are read by pages in the order of the key, or sorted, and counted', async () => {
      const first = await read({ table: 'people', count: true });
      assert.deepEqual([first.rows.length, first.total, first.key], [100, 250, ['id']]);
      const last = await read({ table: 'people', skip: 200, limit: 100 });
      assert.deepEqual([last.rows.length, last.rows[0][0], last.total], [50, 201, null]);
      assert.deepEqual(
        first.columns.map(({ name }: { name: string }) => name),
        ['id', 'name', 'age'],
      );
      const sorted = await read({ table: 'people', sort: [{ column: 'name', descending: true }], limit: 2 });
      assert.deepEqual(
        sorted.rows.map(([id]: number[]) => id),
        [10, 20],
      );
      assert.match(sorted.query.statement, /^SELECT .*id.* FROM .*people.* ORDER BY .* DESC, .* LIMIT 2$/);
    });

    test('are filtered by values that are bound, whatever they look like', async () => {
      const count = async (operator: string, column: string, value?: unknown) =>
        (await read({ table: 'people', filter: [{ column, operator, value }], count: true })).total;
      assert.equal(await count('eq', 'id', 7), 1);
      assert.equal(await count('eq', 'id', '7'), 1);
      assert.equal(await count('ne', 'id', 7), 249);
      assert.equal(await count('gt', 'id', 240), 10);
      assert.equal(await count('le', 'id', '9'), 9);
      assert.equal(await count('contains', 'name', 'p3'), 25);
      assert.equal(await count('starts_with', 'name', '3'), 0);
      assert.equal(await count('contains', 'name', '%'), 0);
      assert.equal(await count('contains', 'id', 24), 13);
      // Every text contains the empty one: none of these finds all rows.
      for (const operator of ['contains', 'starts_with']) {
        for (const value of ['', [], [''], {}, { base64: 'AA==' }, null, undefined]) {
          const filter = [{ column: 'name', operator, value }];
          const ask = { json: { table: 'people', filter } };
          const { detail } = await user.refused(400, 'invalid_request', [`${path}/rows/read`, ask]);
          assert.match(detail, /needs (a value|at least one character)/);
        }
      }
      assert.equal(await count('eq', 'name', []), 0);
      assert.equal(await count('eq', 'name', ''), 0);
      assert.equal(await count('is_null', 'age'), 36);
      assert.equal(await count('is_not_null', 'age'), 214);
      assert.equal(await count('eq', 'name', "' OR 1 = 1; DROP TABLE people --"), 0);
      const { query } = await read({
        table: 'people',
        filter: [{ column: 'name', operator: 'eq', value: "x'y" }],
      });
      assert.deepEqual([query.params, query.statement.includes("x'y")], [["x'y"], false]);
    });

    test('that are not there are told: a table, a column, a value', async () => {
      for (const json of [
        { table: 'nobody' },
        { table: 'people', sort: [{ column: 'id; DROP TABLE people' }] },
        { table: 'people', filter: [{ column: 'nope', operator: 'eq', value: 1 }] },
        { table: 'people', filter: [{ column: 'id', operator: 'eq' }] },
        { table: 'people', filter: [{ column: 'id', operator: 'like', value: 1 }] },
      ])
        await user.refused(400, 'invalid_request', [`${path}/rows/read`, { json }]);
      await other.refused(404, 'database_not_found', [`${path}/rows/read`, { json: { table: 'people' } }]);
    });

    test('have hostile names', async () => {
      const name = `we${quote}ird; DROP TABLE people -- 🦊`.replace('🦊', engine === 'mysql' ? 'ä' : '🦊');
      const quoted = `${quote}${name.replaceAll(quote, quote + quote)}${quote}`;
      await run(user, path, `CREATE TABLE ${quoted} (${quoted} int PRIMARY KEY)`);
      await user.expect(
        200,
        ...change({ table: name, changes: [{ action: 'insert', values: { [name]: 5 } }] }),
      );
      const filter = [{ column: name, operator: 'eq', value: 5 }];
      const { rows, columns } = await read({ table: name, filter, sort: [{ column: name }] });
      assert.deepEqual([rows, columns[0].name], [[[5]], name]);
      await user.expect(200, ...change({ table: name, changes: [{ action: 'delete', old: { [name]: 5 } }] }));
    });

    test('keep what JSON cannot hold, and are changed by what was read', async () => {
      const { rows, columns } = await read({ table: 'odd' });
      assert.deepEqual(rows, [oddRow]);
      const names = columns.map(({ name }: { name: string }) => name);
      const old = Object.fromEntries(names.map((name: string, at: number) => [name, oddRow[at]]));
      await user.expect(
        200,
        ...change({ table: 'odd', changes: [{ action: 'update', old, values: changed }] }),
      );
      const [after] = (await read({ table: 'odd' })).rows;
      const now = Object.fromEntries(names.map((name: string, at: number) => [name, after[at]]));
      assert.deepEqual(now, { id: 1, ...changed });
      // The row that was read has changed meanwhile.
      await user.refused(
        409,
        'write_conflict',
        change({ table: 'odd', changes: [{ action: 'delete', old }] }),
      );
      await user.expect(200, ...change({ table: 'odd', changes: [{ action: 'delete', old: now }] }));
      await user.expect(200, ...change({ table: 'odd', changes: [{ action: 'insert', values: now }] }));
      assert.deepEqual((await read({ table: 'odd' })).rows, [after]);
    });

    test('are changed together or not at all, and only as they were read', async () => {
      const [[id, name, age]] = (await read({ table: 'people', skip: 10, limit: 1 })).rows;
      const old = { id, name, age };
      const changes = [
        { action: 'insert', values: { id: 1000, name: 'new' } },
        { action: 'update', old, values: { name: 'Eve' } },
        { action: 'delete', old: { id: 20, name: 'P9', age: 19 } },
      ];
      const shown = await user.expect(200, ...change({ table: 'people', changes, dry_run: true }));
      assert.deepEqual([shown.changed, shown.statements.length], [0, 3]);
      assert.match(shown.statements[1].statement, /^UPDATE .*people.* SET .* WHERE .*id.* = /);
      assert.equal((await read({ table: 'people', count: true })).total, 250);

      // Another session was faster.
      await run(user, path, `UPDATE people SET name = 'p9' WHERE id = 20`);
      const refused = await user.refused(409, 'write_conflict', change({ table: 'people', changes }));
      assert.equal(refused.index, 2);
      assert.match(refused.detail, /Change 3 .*meanwhile.*Nothing was changed/);
      assert.equal((await read({ table: 'people', count: true })).total, 250);
      assert.deepEqual(await rowsOf(user, path, `SELECT name FROM people WHERE id = ${id}`), [[name]]);

      await run(user, path, `UPDATE people SET name = 'P9' WHERE id = 20`);
      const done = await user.expect(200, ...change({ table: 'people', changes }));
      assert.equal(done.changed, 3);
      assert.deepEqual(
        await rowsOf(user, path, `SELECT id, name FROM people WHERE id IN (${id}, 20, 1000) ORDER BY id`),
        [
          [id, 'Eve'],
          [1000, 'new'],
        ],
      );
      const twice = { action: 'insert', values: { id: 1000 } };
      const next = { action: 'insert', values: { id: 1001 } };
      await user.refused(400, 'query_failed', change({ table: 'people', changes: [next, twice] }));
      assert.deepEqual(await rowsOf(user, path, 'SELECT id FROM people WHERE id = 1001'), []);
    });

    test('are exported as CSV, JSON lines and SQL, in which nothing is lost', async () => {
      await run(user, path, 'CREATE TABLE sent (k varchar(9), n int, t varchar(90), PRIMARY KEY (k, n))');
      const hostile = String.raw`it's \ 'x'; DROP TABLE people --`;
      const texts = ['=1+1', 'a,"b"', hostile, ' \r\n', '', null];
      const values = texts.map((t, at) => ({ k: 'ä', n: at - 2, t }));
      const changes = values.map((one) => ({ action: 'insert', values: one }));
      await user.expect(200, ...change({ table: 'sent', changes }));
      const cells = ['=1+1', '"a,""b"""', hostile, '" \r\n"', '""', ''];
      const wanted = `k,n,t\r\n${cells.map((text, at) => `ä,${at - 2},${text}\r\n`).join('')}`;
      assert.equal(await exported('sent', 'csv'), wanted);
      const lines = (await exported('sent', 'jsonl')).trimEnd().split('\n');
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        values,
      );
      for (const table of ['sent', 'odd']) {
        const { rows } = await read({ table });
        assert.ok(rows.length > 0);
        const sql = await exported(table, 'sql');
        await run(user, path, `DELETE FROM ${table}`);
        for (const line of sql.split(/;\n/).slice(0, -1)) await run(user, path, line);
        assert.deepEqual((await read({ table })).rows, rows);
      }
    });

    test('are exported in the order of the key, each once', async () => {
      await run(user, path, 'CREATE TABLE many (a int, b int, PRIMARY KEY (a, b))');
      const pairs = Array.from({ length: 2500 }, (_, at) => [Math.floor(at / 700), at % 700]);
      await run(user, path, `INSERT INTO many VALUES ${pairs.map(([a, b]) => `(${a}, ${b})`).join(', ')}`);
      const [head, ...rows] = (await exported('many', 'csv')).trimEnd().split('\r\n');
      assert.deepEqual([head, rows], ['a,b', pairs.map(String)]);
    });

    test('of a table without a key, and of a view, are read-only', async () => {
      await run(user, path, 'CREATE TABLE loose (a int)');
      await run(user, path, 'CREATE VIEW seen AS SELECT id FROM people');
      const insert = { table: 'loose', changes: [{ action: 'insert', values: { a: 1 } }] };
      await user.expect(200, ...change(insert));
      assert.deepEqual((await read({ table: 'loose' })).key, []);
      const misspelled = { table: 'loose', changes: [{ action: 'insert', set: { a: 1 } }] };
      assert.match(
        (await user.refused(400, 'invalid_request', change(misspelled))).detail,
        /values: is missing/,
      );
      assert.equal((await read({ table: 'loose', count: true })).total, 1);
      const remove = { table: 'loose', changes: [{ action: 'delete', old: { a: 1 } }] };
      assert.match((await user.refused(400, 'invalid_request', change(remove))).detail, /no primary key/);
      const view = { table: 'seen', changes: [{ action: 'insert', values: { id: 1 } }] };
      await user.refused(400, 'invalid_request', change(view));
      const noKey = { table: 'people', changes: [{ action: 'delete', old: { name: 'P1' } }] };
      await user.refused(400, 'invalid_request', change(noKey));
      assert.equal((await read({ table: 'seen', count: true })).total, 250);
    });
  });
}
