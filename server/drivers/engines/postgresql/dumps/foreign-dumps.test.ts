/**
 * Dumps made by programs elsewhere: statements that this server or tenant cannot run are skipped and
 * reported.
 */
// Its own process: it starts servers.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
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
import { RefusedStatements } from './refused-statements.ts';
import { factsOf } from './server-facts-store.ts';

const run = promisify(execFile);
const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const { signal } = new AbortController();
const BEGIN = '--\n-- PostgreSQL database dump\n--\n\n';
const END = '\n--\n-- PostgreSQL database dump complete\n--\n\n';

/** Statements of pg_dump 18.1 for a small foreign database, and each skipped line. */
const FOREIGN: readonly (readonly [string, boolean])[] = [
  ['\\restrict zJEQcgWWGX45n1mFeKxMKPbDoWvsGQKqDwQYkqa6xdcvd4UlTSBv1NDYk0ZjyGV', false],
  ['SET statement_timeout = 0;', false],
  ['SET transaction_timeout = 0;', true],
  ["SET client_encoding = 'UTF8';", false],
  ["SELECT pg_catalog.set_config('search_path', '', false);", false],
  ['SET row_security = off;', false],
  ['CREATE SCHEMA public;', true],
  ['ALTER SCHEMA public OWNER TO pg_database_owner;', true],
  ["COMMENT ON SCHEMA public IS 'standard public schema';", false],
  ['CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;', false],
  ["COMMENT ON EXTENSION plpgsql IS 'PL/pgSQL procedural language';", true],
  ['CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA public;', true],
  ["COMMENT ON EXTENSION postgis IS 'geometry';", true],
  ['CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;', false],
  ["COMMENT ON EXTENSION citext IS 'data type for case-insensitive character strings';", false],
  ['CREATE SCHEMA shop AUTHORIZATION postgres;', true],
  ['SET default_tablespace = fast;', true],
  ["SET default_tablespace = '';", false],
  ['SET default_table_access_method = heap;', false],
  ['SET default_table_access_method = columnar;', true],
  ['CREATE TABLE shop.goods (\n    id integer NOT NULL,\n    name text,\n    code public.citext\n);', false],
  ['ALTER TABLE shop.goods OWNER TO postgres;', true],
  [
    'COPY shop.goods (id, name, code) FROM stdin;\n1\tGRANT ALL ON x TO nobody;\tAb\n2\tALTER TABLE a OWNER TO b;\tc\n\\.',
    false,
  ],
  [
    "CREATE FUNCTION shop.f() RETURNS text LANGUAGE sql AS $$\nSELECT 'SET transaction_timeout = 0;';\n$$;",
    false,
  ],
  ['ALTER FUNCTION shop.f() OWNER TO postgres;', true],
  ['ALTER TABLE ONLY shop.goods\n    ADD CONSTRAINT goods_pkey PRIMARY KEY (id);', false],
  ['CREATE INDEX by_name ON shop.goods USING btree (name) TABLESPACE fast;', true],
  ['CREATE POLICY p ON shop.goods FOR SELECT TO readonly USING (true);', true],
  ["CREATE PUBLICATION all_tables FOR ALL TABLES WITH (publish = 'insert');", true],
  ['ALTER PUBLICATION all_tables OWNER TO postgres;', true],
  ["CREATE SUBSCRIPTION s CONNECTION 'host=a' PUBLICATION p WITH (connect = false);", true],
  ['CREATE EVENT TRIGGER t ON ddl_command_end\n   EXECUTE FUNCTION shop.f();', true],
  ['GRANT USAGE ON SCHEMA shop TO readonly;', true],
  ['GRANT SELECT ON TABLE shop.goods TO PUBLIC;', false],
  ['GRANT SELECT(name) ON TABLE shop.goods TO "Read Only" WITH GRANT OPTION;', true],
  ['REVOKE ALL ON FUNCTION shop.f() FROM postgres;', true],
  ['GRANT readonly TO writer WITH INHERIT TRUE GRANTED BY postgres;', true],
  ['ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA shop GRANT SELECT ON TABLES TO readonly;', true],
  ['CREATE ROLE readonly;', true],
  ["ALTER ROLE readonly IN DATABASE shop SET search_path TO 'shop';", true],
  ["ALTER DATABASE shop SET timezone TO 'UTC';", true],
  ["SECURITY LABEL FOR anon ON COLUMN shop.goods.name IS 'MASKED';", true],
  ['CREATE FOREIGN DATA WRAPPER w;', true],
  ['CREATE SERVER other FOREIGN DATA WRAPPER w;', true],
  [
    "SELECT * FROM pg_catalog.pg_restore_relation_stats(\n\t'version', '180001'::integer,\n\t'relname', 'goods'\n);",
    true,
  ],
  ['\\unrestrict zJEQcgWWGX45n1mFeKxMKPbDoWvsGQKqDwQYkqa6xdcvd4UlTSBv1NDYk0ZjyGV', false],
];
const FOREIGN_TEXT = `${BEGIN}${FOREIGN.map(([text]) => text).join('\n')}${END}`;

describe('a load into PostgreSQL', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let client: Client;

  before(async () => {
    fixture = postgresqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
    client = await connect(fixture.engine, own, SECRET);
  });
  after(async () => {
    await client?.end();
    await fixture?.close();
  });

  /** Loads it in pieces; returns the notes, and the rows of `query` afterwards. */
  async function load(dump: string | Buffer, { isStrict = false, pieceBytes = 1000 } = {}): Promise<LeftOut> {
    const all = Buffer.from(dump);
    const leftOut = new LeftOut();
    const pieces = Array.from({ length: Math.ceil(all.length / pieceBytes) }, (_, at) =>
      all.subarray(at * pieceBytes, (at + 1) * pieceBytes),
    );
    await client.end();
    const how = isStrict ? { signal } : { signal, leftOut };
    const loading = fixture.engine.load(own, Readable.from(pieces), how);
    await loading.finally(async () => {
      client = await connect(fixture.engine, own, SECRET);
    });
    return leftOut;
  }

  const goods = async () => (await client.query('SELECT id, name, code FROM shop.goods ORDER BY id')).rows;
  const GOODS = [
    { id: 1, name: 'GRANT ALL ON x TO nobody;', code: 'Ab' },
    { id: 2, name: 'ALTER TABLE a OWNER TO b;', code: 'c' },
  ];

  test('of a newer pg_dump leaves out and tells what is not here, and nothing else', async () => {
    const { count, notes } = await load(FOREIGN_TEXT);
    const expected = FOREIGN.flatMap(([text, isLeftOut], at) => {
      const before =
        BEGIN +
        FOREIGN.slice(0, at)
          .map(([one]) => `${one}\n`)
          .join('');
      return isLeftOut ? [{ line: before.split('\n').length, text: text.replace(/\s+/g, ' ') }] : [];
    });
    assert.deepEqual(
      notes.map(({ line, text }) => ({ line, text })),
      expected.slice(0, 10),
    );
    assert.equal(count, expected.length);
    for (const { reason } of notes) assert.match(reason, /\w/);
    assert.deepEqual(await goods(), GOODS);
    assert.deepEqual(
      (await client.query('SELECT shop.f() AS f')).rows[0].f.trim(),
      'SET transaction_timeout = 0;',
    );
    const index = "SELECT FROM pg_indexes WHERE indexname = 'by_name'";
    assert.equal((await client.query(index)).rowCount, 1);
  });

  test('takes a byte order mark and CRLF', async () => {
    const { count } = await load(`\ufeff${FOREIGN_TEXT.replaceAll('\n', '\r\n')}`, { pieceBytes: 7 });
    assert.ok(count > 20);
    assert.deepEqual(await goods(), GOODS);
  });

  test('says of a true error its line in the file, and what was left out; nothing changes', async () => {
    const wrong = FOREIGN_TEXT.replace('ALTER TABLE ONLY shop.goods\n', 'ALTER TABLE ONLY shop.nothing\n');
    const line = wrong.split('\n').findIndex((text) => text.includes('goods_pkey')) + 1;
    await assert.rejects(load(wrong), (error: Error) => {
      assert.ok(error instanceof LoadFailed);
      assert.match(error.message, new RegExp(`^line ${line}: ERROR: .*shop.nothing`));
      return true;
    });
    assert.deepEqual(await goods(), GOODS);
    await assert.rejects(load(FOREIGN_TEXT, { isStrict: true }), /line 7: ERROR: .*transaction_timeout/);
    await assert.rejects(load(FOREIGN_TEXT.slice(0, -40)), /cut off: .*dump complete`.*Make it again/);
    // Comments are missing in shortened dumps; then the end of COPY decides.
    const bare = 'CREATE TABLE t (a int);\nCOPY t (a) FROM stdin;\n1\n2';
    for (const cut of [bare, `${bare}\n`])
      await assert.rejects(load(cut), /cut off: .*`\\\.`.*Make it again/);
    // Text that psql would skip must not replace the database by an empty one.
    for (const [bad, reason] of [
      [Buffer.alloc(5000), /neither SQL nor an archive/],
      [`${FOREIGN_TEXT}\0`, /neither SQL nor an archive/],
      ['\n-- nothing\n/* at all */ ;\n', /empty: it has no statement/],
      ['CREATE TABLE t (a int); /* never ended\n', /cut off within a comment/],
      [`SELECT 1;\n${'/*'.repeat(100_000)}`, /: line 2: comments are nested too deeply/],
      [Buffer.from(`PGDMP\x01\x0e\0\x04\x08\x01${'\x01\xff\xff\xff\x7f'.repeat(20)}`, 'latin1'), /damaged/],
    ] as const)
      await assert.rejects(load(bad), reason);
    assert.deepEqual(await goods(), GOODS);
    await load(`${bare}\n\\.`);
    await load(FOREIGN_TEXT);
  });

  test('of pg_dumpall goes into one database; one with two databases is refused', async () => {
    const section = (name: string, sql: string) =>
      `\\connect ${name}\n\n${BEGIN}SET statement_timeout = 0;\n${sql}${END}`;
    const all = (...parts: string[]) =>
      `--\n-- PostgreSQL database cluster dump\n--\n\nCREATE ROLE shop;\nALTER ROLE shop WITH SUPERUSER;\n${parts.join('')}` +
      '--\n-- PostgreSQL database cluster dump complete\n--\n';
    const template = section(
      'template1',
      "SET transaction_timeout = 0;\nCOMMENT ON DATABASE template1 IS 't';\n",
    );
    const shop = section(
      '-reuse-previous=on "dbname=\'sh op\'"',
      'CREATE TABLE public.kept (x int);\nINSERT INTO public.kept VALUES (7);\n',
    );
    const { notes } = await load(all(template, section('postgres', ''), `CREATE DATABASE "sh op";\n`, shop));
    assert.ok(notes.some(({ text }) => text.startsWith('\\connect')));
    assert.deepEqual((await client.query('SELECT x FROM kept')).rows, [{ x: 7 }]);
    const two = all(shop, section('blog', 'CREATE TABLE public.posts (x int);\n'));
    await assert.rejects(load(two), /more than one database, sh op and blog/);
    assert.deepEqual((await client.query('SELECT x FROM kept')).rows, [{ x: 7 }]);
  });

  test('with DROP before all else, as `pg_dump --clean` writes it, begins empty', async () => {
    const drops =
      'ALTER TABLE ONLY public.a DROP CONSTRAINT a_pkey;\nDROP TABLE public.a;\nDROP SCHEMA public;\n';
    const { count } = await load(
      `${BEGIN}${drops}CREATE SCHEMA public;\nCREATE TABLE public.a (x int PRIMARY KEY);\n${END}`,
    );
    assert.equal(count, 4);
    assert.deepEqual((await client.query('SELECT x FROM a')).rows, []);
  });

  test('of pg_dump 18 has the form of an older server where there is one, and tells', async (t) => {
    const [{ server_version_num: version }] = (await client.query('SHOW server_version_num')).rows;
    if (Number(version) >= 170_000) return t.skip('the server has all of it');
    const NEW: readonly (readonly [string, RegExp])[] = [
      ["SELECT pg_catalog.lo_unlink('4711');", /nothing to drop/],
      ["CREATE COLLATION public.bytes (provider = builtin, locale = 'C.UTF-8');", /C.UTF-8 of the C library/],
      [
        'CREATE TABLE public.made (\n    x integer CONSTRAINT kept NOT NULL NO INHERIT,\n' +
          "    t text COLLATE public.bytes DEFAULT 'a\nb'::text,\n" +
          '    twice integer GENERATED ALWAYS AS ((x * 2)) CONSTRAINT named NOT NULL,\n' +
          '    half integer GENERATED ALWAYS AS ((x / 2)) STORED,\n' +
          '    CONSTRAINT small CHECK ((x < 100)),\n    CONSTRAINT loose CHECK ((x > 0)) NOT ENFORCED\n);',
        /has no name; generated columns are stored; constraints are always enforced$/,
      ],
      [
        'CREATE TABLE public.child (\n    CONSTRAINT n NOT NULL t,\n    NOT NULL x NO INHERIT\n)\nINHERITS (public.made);',
        /NOT NULL constraint belongs to a column/,
      ],
      ['ALTER TABLE public.made\n    ADD CONSTRAINT t_there NOT NULL t;', /has no name/],
      ['ALTER TABLE ONLY public.made\n    ADD CONSTRAINT later NOT NULL half NOT VALID;', /checked at once/],
      [
        'ALTER TABLE ONLY public.made\n    ADD CONSTRAINT f FOREIGN KEY (x) REFERENCES public.made(twice) NOT ENFORCED;',
        /always enforced/,
      ],
      ['GRANT SELECT,MAINTAIN,UPDATE ON TABLE public.made TO PUBLIC;', /no MAINTAIN privilege/],
      ['GRANT MAINTAIN ON TABLE public.child TO PUBLIC;', /no MAINTAIN privilege/],
      [
        "CREATE TABLE public.keyed (\n    id uuid DEFAULT uuidv7() NOT NULL,\n    t text DEFAULT 'uuidv7()'::text\n);",
        /no uuidv7\(\): new rows get random ones/,
      ],
    ];
    const copy = 'COPY public.made (x, t) FROM stdin;\n-3\ta\n\\.';
    const { count, notes } = await load(`${BEGIN}${NEW.map(([sql]) => sql).join('\n')}\n${copy}${END}`);
    assert.equal(count, NEW.length);
    for (const [at, [sql, reason]] of NEW.entries()) {
      assert.match(notes[at]?.reason ?? '', reason, sql);
      assert.ok(sql.replace(/\s+/g, ' ').startsWith(notes[at]?.text.replace(/…$/, '') ?? '?'));
    }
    const rows = async (sql: string) => (await client.query(sql)).rows;
    assert.deepEqual(await rows('SELECT x, twice, half FROM made'), [{ x: -3, twice: -6, half: -1 }]);
    assert.deepEqual(await rows('INSERT INTO made (x) VALUES (1) RETURNING t'), [{ t: 'a\nb' }]);
    assert.deepEqual(await rows('INSERT INTO keyed DEFAULT VALUES RETURNING t'), [{ t: 'uuidv7()' }]);
    for (const sql of ["INSERT INTO child (t) VALUES ('a')", 'INSERT INTO child (x, t) VALUES (1, NULL)'])
      await assert.rejects(client.query(sql), { code: '23502' });
    await assert.rejects(client.query('INSERT INTO made (x) VALUES (100)'), { code: '23514' });
    // Lines stay those of the file.
    const wrong = `${BEGIN}${NEW[1]?.[0]}\n${NEW[2]?.[0]}\nCREATE TABLE wrong (x nothing);${END}`;
    const line = wrong.split('\n').findIndex((text) => text.includes('wrong')) + 1;
    await assert.rejects(load(wrong), new RegExp(`line ${line}: ERROR: .*nothing`));
  });

  /** Statements of pg_dump that need an administrator, or what was left out before them. */
  const NEEDING: readonly (readonly [string, RegExp | null])[] = [
    ['CREATE TABLE public.a (\n    x integer,\n    language text\n);', null],
    ["INSERT INTO public.a VALUES (1, 'it needs public.far');", null],
    ['CREATE TYPE public.box_t;', /base types/],
    [
      'CREATE FUNCTION public.box_in(cstring) RETURNS public.box_t\n    LANGUAGE internal IMMUTABLE STRICT\n    AS $$int4in$$;',
      /written in C/,
    ],
    ['CREATE TYPE public.box_t (\n    INTERNALLENGTH = 4,\n    INPUT = public.box_in\n);', /base types/],
    ['COMMENT ON TYPE public.box_t IS $$x$$;', /needs public.box_t/],
    ['CREATE SERVER other FOREIGN DATA WRAPPER w;', /foreign servers/],
    ['CREATE FOREIGN TABLE public.far (\n    id integer\n)\nSERVER other;', /foreign servers/],
    ['CREATE VIEW public.seen AS\n SELECT far.id\n   FROM public.far;', /needs public.far/],
    ['GRANT SELECT ON TABLE public.seen TO PUBLIC;', /needs public.seen/],
    ['CREATE FUNCTION public.py() RETURNS trigger\n    LANGUAGE plpython3u\n    AS $_$x$_$;', /plpython3u/],
    ['CREATE TRIGGER t BEFORE INSERT ON public.a FOR EACH ROW EXECUTE FUNCTION public.py();', /public.py/],
    ['ALTER TABLE public.a DISABLE TRIGGER t;', /trigger t of public.a/],
    ["COMMENT ON TRIGGER t ON public.a IS 'x';", /trigger t of public.a/],
    [
      'CREATE FUNCTION public.py(a numeric(10,2)) RETURNS TABLE(id integer, language text)\n    LANGUAGE sql\n' +
        '    AS $$ SELECT x, language FROM public.a $$;',
      null,
    ],
    ["COMMENT ON FUNCTION public.py(numeric) IS 'x';", null],
    [
      "CREATE FUNCTION public.made() RETURNS text AS $$ SELECT 'LANGUAGE klingon, public.far'::text $$ LANGUAGE 'sql';",
      null,
    ],
    [
      "CREATE FUNCTION public.near() RETURNS text\n    LANGUAGE sql IMMUTABLE LEAKPROOF\n    AS $$ SELECT 'LEAKPROOF'::text $$;",
      /LEAKPROOF/,
    ],
    [
      "CREATE FUNCTION public.set() RETURNS text\n    LANGUAGE sql\n    SET log_min_messages TO 'panic'\n" +
        "    SET search_path TO 'public', 'pg_temp'\n    AS $$ SELECT current_setting('search_path') $$;",
      /set log_min_messages/,
    ],
    ['ALTER FUNCTION public.near() DEPENDS ON EXTENSION postgis;', /extension postgis/],
    ['CREATE CAST (text AS integer) WITH INOUT AS ASSIGNMENT;', /casts/],
    ["COMMENT ON CAST (text AS integer) IS 'x';", /casts/],
    [
      'CREATE OPERATOR CLASS public.c\n    FOR TYPE integer USING btree AS\n    STORAGE integer;',
      /administrators/,
    ],
    ['CREATE INDEX by_c ON public.a USING btree (x public.c);', /needs public.c,/],
    ["COMMENT ON INDEX public.by_c IS 'x';", /needs public.by_c/],
    ['CREATE POLICY p ON public.a FOR SELECT TO readonly USING (true);', /no role/],
    ["COMMENT ON POLICY p ON public.a IS 'x';", /policy p of public.a/],
    ["UPDATE pg_catalog.pg_database SET datistemplate = true WHERE datname = 'shop';", /system catalogs/],
    ["UPDATE public.a SET language = 'pg_catalog.x' WHERE false;", null],
    ["CREATE TABLE public.old (\n    x integer\n)\nWITH (oids='true');", /hidden OIDs/],
    ['CREATE TABLE public.older (\n    x integer\n)\nWITH (OIDS=FALSE);', null],
  ];

  test('leaves out what only administrators may create, and what needs it but has no rows', async () => {
    const { count } = await load(`${BEGIN}${NEEDING.map(([sql]) => sql).join('\n')}${END}`);
    assert.equal(count, NEEDING.filter(([, reason]) => reason !== null).length);
    const one = (sql: string) => client.query({ text: sql, rowMode: 'array' }).then(({ rows }) => rows);
    assert.deepEqual(await one('SELECT * FROM a, py(1), near(), set()'), [
      [1, 'it needs public.far', 1, 'it needs public.far', 'LEAKPROOF', 'public, pg_temp'],
    ]);
    assert.deepEqual(await one('SELECT made()'), [['LANGUAGE klingon, public.far']]);
    const refused = new RefusedStatements(await factsOf(client, String((await one('SELECT user'))[0]?.[0])));
    for (const [sql, reason] of NEEDING) {
      const found = refused.of(sql);
      if (reason === null) assert.equal(found, null, sql);
      else assert.match(found?.reason ?? '', reason, sql);
    }
    // Its rows would be lost.
    const table = 'CREATE TABLE public.t (g public.box_t);';
    await assert.rejects(
      load(`${BEGIN}CREATE TYPE public.box_t;\n${table}${END}`),
      /line 6: ERROR: .*public.box_t.* does not exist/,
    );
    await load(FOREIGN_TEXT);
  });

  test('takes back the names of constraints that an older server cannot have', async (t) => {
    const [{ server_version_num: version }] = (await client.query('SHOW server_version_num')).rows;
    if (Number(version) >= 180_000) return t.skip('the server has all of it');
    const table =
      'CREATE TABLE public.a (\n    x integer CONSTRAINT there NOT NULL,\n    CONSTRAINT loose CHECK ((x > 0)) NOT ENFORCED\n);';
    const about = [
      "COMMENT ON CONSTRAINT loose ON public.a IS 'x';",
      'ALTER TABLE public.a VALIDATE CONSTRAINT loose;',
    ];
    assert.equal((await load([BEGIN, table, ...about, END].join('\n'))).count, 3);
    await load(FOREIGN_TEXT);
  });

  test('takes the archives of pg_dump', async () => {
    await load(FOREIGN_TEXT);
    await client.query("SELECT lo_from_bytea(4711, convert_to(repeat('large ', 9000), 'UTF8'))");
    await client.query('CREATE MATERIALIZED VIEW shop.seen AS SELECT name FROM shop.goods');
    const programs = await findPrograms(null);
    assert.ok('bin' in programs);
    const { uri } = await fixture.engine.endpoint(own);
    const folder = mkdtempSync(join(tmpdir(), 'archives-'));
    try {
      const dump = (...args: string[]) =>
        run(join(programs.bin, 'pg_dump'), [...args, uri(SECRET)], {
          env: { ...process.env, ...programs.env },
        });
      await dump('-Fc', '-f', join(folder, 'custom'));
      await dump('-Fc', '-Z0', '--inserts', '-f', join(folder, 'inserts'));
      await dump('-Ft', '-f', join(folder, 'tar'));
      await dump('-Fd', '-f', join(folder, 'd'));
      await run('tar', ['-cf', join(folder, 'directory'), '-C', folder, 'd']);
      for (const name of ['custom', 'inserts', 'tar', 'directory']) {
        const bytes = readFileSync(join(folder, name));
        const { count, notes } = await load(bytes);
        assert.ok(count > 0 && notes.every(({ line }) => line === null), name);
        assert.deepEqual(await goods(), GOODS, name);
        const { rows } = await client.query(
          'SELECT length(lo_get(4711))::int AS bytes, (SELECT count(*)::int FROM shop.seen) AS seen',
        );
        assert.deepEqual(rows, [{ bytes: 54_000, seen: 2 }], name);
        if (name === 'custom') await assert.rejects(load(bytes.subarray(0, -30)), LoadFailed);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
