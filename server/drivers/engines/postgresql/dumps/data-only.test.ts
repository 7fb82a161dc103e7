import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { Client } from 'pg';
import { type EngineDatabase, LoadFailed } from '../../../../databases/engine.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import {
  connect,
  noPostgresql,
  type PostgresqlFixture,
  postgresqlFixture,
} from '../../../../testing/postgresql-fixture.ts';
import { findPrograms } from '../postgresql-programs.ts';
import { withoutTables } from './data-only.ts';

const run = promisify(execFile);
const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const { signal } = new AbortController();

test('data alone is known by its first statement of content, however long', async () => {
  const isData = async (text: string) => {
    const all = Buffer.from(text);
    const pieces = Readable.from([all.subarray(0, 30), all.subarray(30)]);
    const found = await withoutTables(pieces);
    assert.ok(Buffer.concat(await Array.fromAsync(found.pieces)).equals(all));
    return found.isDataOnly;
  };
  const start =
    "\ufeff-- CREATE TABLE a (x int);\nSET a = 1;\nSELECT set_config('search_path', '', false);\n";
  const rows = `(1)${', (1)'.repeat(50_000)}`;
  for (const text of [
    `${start}COPY a (x) FROM stdin;\n1\n\\.\n`,
    `${start}INSERT INTO a VALUES ${rows};\n`,
    `${start}ALTER DATABASE b SET c = 1; CREATE ROLE d; COPY a FROM stdin;\n\\.\n`,
    'BEGIN; TRUNCATE a; INSERT INTO a VALUES (1); COMMIT;',
    `${start}ALTER TABLE a DISABLE TRIGGER ALL;\nCOPY a FROM stdin;\n\\.\n`,
    "INSERT INTO a VALUES ('x')",
    `${start}ALTER TABLE ONLY a\n    ADD CONSTRAINT b PRIMARY KEY (x);`,
    `${start}CREATE UNIQUE INDEX i ON a USING btree (x);`,
  ])
    assert.equal(await isData(text), true, text.slice(0, 200));
  for (const text of [
    '',
    start,
    `${start}CREATE TABLE a (x int);\nINSERT INTO a VALUES (1);`,
    `${start}DROP TABLE IF EXISTS a;\nINSERT INTO a VALUES (1);`,
    `${start}ALTER TABLE a DROP CONSTRAINT b;\n`,
    `CREATE TABLE a AS VALUES ${rows};`,
  ])
    assert.equal(await isData(text), false, text.slice(0, 200));
});

describe('data alone into PostgreSQL', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let client: Client;

  before(async () => {
    fixture = postgresqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
    client = await connect(fixture.engine, own, SECRET);
    await client.query(`CREATE TABLE parents (id int PRIMARY KEY, name text);
      CREATE TABLE kids (id serial PRIMARY KEY, parent int REFERENCES parents DEFERRABLE, name text)`);
  });
  beforeEach(() =>
    client.query(`TRUNCATE kids, parents;
      INSERT INTO parents VALUES (1, 'a;\nCOMMIT;'), (2, 'b');
      INSERT INTO kids VALUES (1, 1, 'x'), (2, 2, 'y'); SELECT setval('kids_id_seq', 2)`),
  );
  after(async () => {
    await client?.end();
    await fixture?.close();
  });

  let added = 0;
  async function load(dump: string | Buffer, isStrict = false): Promise<LeftOut> {
    const leftOut = new LeftOut();
    added = 0;
    const adding = () => {
      added++;
    };
    const how = isStrict ? { signal, adding } : { signal, adding, leftOut };
    await fixture.engine.load(own, Readable.from([Buffer.from(dump)]), how);
    return leftOut;
  }
  const rows = async () => (await client.query('SELECT id, parent, name FROM kids ORDER BY id')).rows;
  const KIDS = [
    { id: 1, parent: 1, name: 'x' },
    { id: 2, parent: 2, name: 'y' },
  ];

  test('of pg_dump, in each of its formats, goes into the tables that are there', async () => {
    const programs = await findPrograms(null);
    assert.ok('bin' in programs);
    const { uri } = await fixture.engine.endpoint(own);
    const env = { ...process.env, ...programs.env };
    for (const args of [[], ['--column-inserts'], ['--disable-triggers'], ['-Fc'], ['-Ft']]) {
      const program = join(programs.bin, 'pg_dump');
      const how = { env, encoding: 'buffer' as const };
      const { stdout: dump } = await run(program, ['--data-only', ...args, uri(SECRET)], how);
      await client.query('TRUNCATE kids, parents; SELECT setval($$kids_id_seq$$, 90)');
      // The server's settings of the database are included in archives.
      const isPlain = args.every((arg) => arg === '--column-inserts');
      for (const isStrict of isPlain ? [false, true] : [false]) {
        await client.query('TRUNCATE kids, parents');
        const { notes } = await load(dump, isStrict);
        assert.equal(added, 1);
        assert.deepEqual(await rows(), KIDS, args.join());
        assert.deepEqual((await client.query('SELECT name FROM parents WHERE id = 1')).rows, [
          { name: 'a;\nCOMMIT;' },
        ]);
        assert.deepEqual((await client.query('SELECT last_value FROM kids_id_seq')).rows, [
          { last_value: '2' },
        ]);
        for (const { text } of notes)
          assert.match(text, /TRIGGER ALL|^SET |^ALTER (?:DATABASE|ROLE) |^OWNER TO /);
      }
      // The rows are now present, as after psql.
      await assert.rejects(load(dump), /duplicate key value violates unique constraint "\w+_pkey"/);
      assert.deepEqual(await rows(), KIDS);
    }
  });

  test('of the sections of pg_dump, one after the other, is a whole database', async () => {
    const programs = await findPrograms(null);
    assert.ok('bin' in programs);
    const { uri } = await fixture.engine.endpoint(own);
    const dumps: Buffer[] = [];
    for (const section of ['pre-data', 'data', 'post-data']) {
      const how = { env: { ...process.env, ...programs.env }, encoding: 'buffer' as const };
      const args = [`--section=${section}`, uri(SECRET)];
      dumps.push((await run(join(programs.bin, 'pg_dump'), args, how)).stdout);
    }
    const counted: number[] = [];
    await client.end();
    for (const dump of dumps) {
      await load(dump);
      counted.push(added);
    }
    client = await connect(fixture.engine, own, SECRET);
    assert.deepEqual(counted, [0, 1, 1]);
    assert.deepEqual(await rows(), KIDS);
    await assert.rejects(client.query('INSERT INTO kids VALUES (1, 1)'), { code: '23505' });
    await assert.rejects(client.query('INSERT INTO kids VALUES (9, 9)'), { code: '23503' });
  });

  test('adds all rows or none, whatever the text says of transactions', async () => {
    const more = "INSERT INTO parents VALUES (3, 'c');\n";
    const { count } = await load(
      `BEGIN;\n${more}COMMIT;\nSTART TRANSACTION;\nINSERT INTO kids VALUES (3, 3);\nEND;`,
    );
    assert.deepEqual([count, (await rows()).length], [0, 3]);
    const again = "INSERT INTO parents VALUES (4, 'd');\n";
    for (const [end, reason] of [
      ['COMMIT;\nINSERT INTO nothing VALUES (1);', /^line 3: ERROR: .*nothing/],
      ['ROLLBACK;', /^line 2: .*contains ROLLBACK/],
      ["INSERT INTO parents VALUES (5, 'cut", /unterminated/],
      ['SET CONSTRAINTS ALL DEFERRED; INSERT INTO kids VALUES (9, 99);', /violates foreign key/],
      ['COPY parents (id, name) FROM stdin;\n5\te\n', /cut off: .*`\\\.`/],
    ] as const) {
      await assert.rejects(load(again + end), (error: Error) => {
        assert.ok(error instanceof LoadFailed);
        assert.match(error.message, reason);
        return true;
      });
      assert.equal(added, 1);
      assert.equal((await client.query('SELECT FROM parents')).rowCount, 3, end);
    }
    const whole = `-- PostgreSQL database dump\n${'--\n'.repeat(300)}${again}`;
    await assert.rejects(load(whole), /cut off: .*dump complete/);
    assert.equal((await client.query('SELECT FROM parents')).rowCount, 3);
  });

  test('changes nothing where it may not add', async () => {
    const refuse = () => {
      throw new Error('read-only');
    };
    const dump = Readable.from([Buffer.from('INSERT INTO parents VALUES (3);')]);
    await assert.rejects(fixture.engine.load(own, dump, { signal, adding: refuse }), /read-only/);
    // Copies and recovery points still replace the database.
    const text = Readable.from([Buffer.from('INSERT INTO parents VALUES (3);')]);
    await assert.rejects(fixture.engine.load(own, text, { signal }), /parents" does not exist/);
    assert.deepEqual(await rows(), KIDS);
  });
});
