/** Dumps that refer to missing things, or to their old host: statements are skipped and reported. */
// Its own process: it starts servers.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
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

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';

/** Statements of a dump of one schema from a hosted service, and of `pg_dump -t`. */
const PARTS: readonly (readonly [string, RegExp | null])[] = [
  ['CREATE EXTENSION IF NOT EXISTS "pg_graphql" WITH SCHEMA "graphql";', /not available/],
  ['CREATE EXTENSION IF NOT EXISTS "citext" WITH SCHEMA "extensions";', /extensions.* is created/],
  ['CREATE EXTENSION IF NOT EXISTS "pgcrypto" WITH SCHEMA "extensions";', null],
  [
    'CREATE TABLE "public"."todos" (\n    "id" "uuid" DEFAULT "gen_random_uuid"() NOT NULL,\n' +
      '    "by" "uuid" DEFAULT "auth"."uid"() NOT NULL,\n    "name" "extensions"."citext" DEFAULT \'auth.uid()\'::"text"\n);',
    /no default auth.uid\(\)/,
  ],
  ['CREATE TABLE shop.lists (\n    id integer DEFAULT crm.next() NOT NULL\n);', /shop .* is created/],
  ['ALTER TABLE ONLY shop.lists ALTER COLUMN id SET DEFAULT crm.next();', /schema crm/],
  ['ALTER TABLE ONLY shop.lists ALTER COLUMN id SET DEFAULT 7;', null],
  ['ALTER TABLE ONLY shop.lists\n    ADD CONSTRAINT p PRIMARY KEY (id);', null],
  [
    'ALTER TABLE ONLY public.todos\n    ADD CONSTRAINT u FOREIGN KEY (by) REFERENCES auth.users(id) ON DELETE CASCADE;',
    /table auth.users is not/,
  ],
  [
    'ALTER TABLE ONLY shop.lists\n    ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES shop.far(id);',
    /table shop.far is not/,
  ],
  ['ALTER TABLE ONLY shop.lists\n    ADD CONSTRAINT own FOREIGN KEY (id) REFERENCES shop.lists(id);', null],
  [
    'CREATE POLICY mine ON public.todos FOR SELECT USING ((( SELECT "auth"."uid"() AS "uid") = "by"));',
    /schema "auth"/,
  ],
  ["COMMENT ON POLICY mine ON public.todos IS 'x';", /policy mine of public.todos/],
  ['CREATE VIEW public.people AS\n SELECT users.id\n   FROM auth.users;', /schema auth/],
  ['GRANT SELECT ON TABLE public.people TO PUBLIC;', /needs public.people/],
  [
    'CREATE VIEW public.seen AS\n SELECT l.id, (l.id IS DISTINCT FROM t.n) AS d,\n' +
      '    EXTRACT(day FROM todos.at) AS e\n   FROM (shop.lists l\n     JOIN ( SELECT 7 AS n) t ON ((t.n = l.id))),\n' +
      '    ( SELECT now() AS at) todos;',
    null,
  ],
  ['CREATE TRIGGER made AFTER INSERT ON auth.users FOR EACH ROW EXECUTE FUNCTION public.f();', /schema auth/],
];

describe('a load into PostgreSQL', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let client: Client | undefined;

  before(async () => {
    fixture = postgresqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
  });
  after(async () => {
    await client?.end();
    await fixture?.close();
  });

  async function load(dump: string): Promise<LeftOut> {
    const leftOut = new LeftOut();
    const { signal } = new AbortController();
    await fixture.engine.load(own, Readable.from([Buffer.from(dump)]), { signal, leftOut });
    return leftOut;
  }

  test('of a part of a database makes its schema, and leaves out what needs the rest', async () => {
    const { notes, count } = await load(`${PARTS.map(([sql]) => sql).join('\n')}`);
    const expected = PARTS.filter(([, reason]) => reason !== null);
    assert.equal(count, expected.length);
    for (const [at, { text, reason }] of notes.entries()) {
      assert.ok(expected[at]?.[0].replace(/\s+/g, ' ').startsWith(text.replace(/…$/, '')), text);
      assert.match(reason, expected[at]?.[1] ?? /never/);
    }
    client = await connect(fixture.engine, own, SECRET);
    const rows = async (sql: string) => (await client?.query(sql))?.rows;
    const made = 'INSERT INTO todos (by) VALUES (gen_random_uuid()) RETURNING name';
    assert.deepEqual(await rows(made), [{ name: 'auth.uid()' }]);
    assert.deepEqual(await rows('INSERT INTO shop.lists DEFAULT VALUES RETURNING id'), [{ id: 7 }]);
    assert.deepEqual(await rows('SELECT id, d FROM seen'), [{ id: 7, d: false }]);
    await assert.rejects(rows('INSERT INTO todos (name) VALUES (1)'), { code: '23502' });
    await assert.rejects(load(`CREATE TABLE public.a (x geo.point);`), /schema "geo" does not exist/);
  });

  const rowsOf = async (sql: string) => {
    const reader = await connect(fixture.engine, own, SECRET);
    const asked = reader.query({ text: sql, rowMode: 'array' });
    return (await asked.finally(() => reader.end())).rows;
  };

  test('of tables of extensions that are not here leaves out their rows, and no others', async () => {
    const extensions = `CREATE SCHEMA tiger;
CREATE EXTENSION IF NOT EXISTS pg_cron WITH SCHEMA pg_catalog;
CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA public;
CREATE EXTENSION IF NOT EXISTS postgis_tiger_geocoder WITH SCHEMA tiger;
CREATE SEQUENCE tiger.own;
CREATE FUNCTION public.own(text) RETURNS text LANGUAGE sql AS $$ SELECT now()::text $$;
CREATE TABLE public.t (
    a integer,
    b text
);
CREATE TABLE tiger.kept (
    a integer
);
`;
    const rows: readonly (readonly [string, boolean])[] = [
      ['COPY cron.job (jobid, command) FROM stdin;\n1\tDROP TABLE t; \\.\n2\tx\n\\.', true],
      ['COPY public.spatial_ref_sys (srid) FROM stdin;\n\\.', true],
      ['COPY tiger.geocode_settings (name) FROM stdin WITH (FORMAT csv);\n"a\nb"\n\\.', true],
      ['INSERT INTO cron.job_run_details VALUES (1, $$COPY public.t FROM stdin;$$);', true],
      ["SELECT pg_catalog.setval('cron.jobid_seq', 7, true);", true],
      ["SELECT cron.schedule('0 0 * * *', 'VACUUM');", true],
      ['SELECT timescaledb_pre_restore();', true],
      ["SELECT own('it is run');", false],
      ['COPY public.t (a, b) FROM stdin;\n1\tcron.job\n\\.', false],
      ["INSERT INTO public.t VALUES (2, 'cron.job');", false],
      ['COPY tiger.kept (a) FROM stdin;\n3\n\\.', false],
      ["SELECT pg_catalog.setval('tiger.own', 9, true);", false],
    ];
    const dump = extensions + rows.map(([text]) => `${text}\n`).join('');
    const { notes, count } = await load(dump);
    const left = rows.filter(([, isLeftOut]) => isLeftOut).map(([text]) => text);
    assert.equal(count, 3 + left.length);
    for (const [at, text] of left.entries()) {
      const note = notes[3 + at];
      assert.ok(text.startsWith(note?.text ?? '?'), `${text}: ${note?.text}`);
      assert.match(note?.reason ?? '', /of an extension that was left out/);
      assert.ok(dump.split('\n')[(note?.line ?? 0) - 1]?.startsWith(text.split('\n')[0] ?? '?'));
    }
    assert.deepEqual(await rowsOf('SELECT t.*, kept.a, last_value FROM t, tiger.kept, tiger.own'), [
      [1, 'cron.job', 3, '9'],
      [2, 'cron.job', 3, '9'],
    ]);
    // Without an extension that was left out, rows never are: they may be the ones that matter.
    await assert.rejects(
      load(dump.replaceAll(/CREATE EXTENSION .*\n/g, '')),
      /line 11: ERROR: .*"cron" does not exist/,
    );
    const wrong = dump.replace('COPY public.t (a, b)', 'COPY public.t (a, c)');
    const line = wrong.split('\n').findIndex((text) => text.includes('(a, c)')) + 1;
    await assert.rejects(load(wrong), new RegExp(`line ${line}: ERROR: .*"c"`));
  });

  test('of another host has the nearest of its collations', async () => {
    const { notes, count } =
      await load(`CREATE COLLATION public.german (provider = libc, locale = 'xx_DE.utf8');
CREATE TABLE public.t (
    a text COLLATE pg_catalog."German_Germany.1252" DEFAULT ' COLLATE "xx_XX"'::text,
    b text COLLATE public.german,
    c text COLLATE "xx_XX",
    d text COLLATE pg_catalog."C"
);
INSERT INTO public.t VALUES (DEFAULT, 'b', 'c', 'd');
CREATE INDEX i ON public.t USING btree (a COLLATE pg_catalog."default");
`);
    assert.equal(count, 2);
    assert.match(notes[0]?.reason ?? '', /no locale xx_DE.utf8; the nearest is /);
    assert.match(notes[1]?.reason ?? '', /no collation German_Germany.1252; texts have the default order; /);
    assert.deepEqual(await rowsOf('SELECT a, b, c, d FROM t'), [[' COLLATE "xx_XX"', 'b', 'c', 'd']]);
    const known = await rowsOf("SELECT collname FROM pg_collation WHERE collname = 'de-DE-x-icu'");
    const { notes: near } = await load('CREATE TABLE t (a text COLLATE pg_catalog."de_DE.iso885915");\n');
    if (known.length === 1) assert.match(near[0]?.reason ?? '', /the nearest is de-DE-x-icu/);
  });

  test('of old servers, and as tools for people write it, is taken', async () => {
    const dump = `\\set ON_ERROR_STOP on
\\timing on
\\echo loading
\\encoding LATIN1
SET default_with_oids = true;
CREATE TABLE public.t (
    a text
)
WITH (
    OIDS = TRUE
)
TABLESPACE fast;
INSERT INTO public.t VALUES ('S\xe3o');
\\d t
LOAD 'auto_explain';
CREATE INDEX i ON public.t USING rum (a);
CREATE TEXT SEARCH DICTIONARY public.hun (
    TEMPLATE = pg_catalog.ispell,
    dictfile = 'german_x' );
`;
    const leftOut = new LeftOut();
    const { signal } = new AbortController();
    await fixture.engine.load(own, Readable.from([Buffer.from(dump, 'latin1')]), { signal, leftOut });
    const told = leftOut.notes.map(({ line, text }) => [line, text.slice(0, 12)]);
    assert.deepEqual(told, [
      [1, '\\set ON_ERRO'],
      [2, '\\timing on'],
      [3, '\\echo loadin'],
      [5, 'SET default_'],
      [6, 'CREATE TABLE'],
      [14, '\\d t'],
      [15, "LOAD 'auto_e"],
      [16, 'CREATE INDEX'],
      [17, 'CREATE TEXT '],
    ]);
    assert.match(leftOut.notes[4]?.reason ?? '', /no hidden OIDs; there is no tablespace fast/);
    assert.deepEqual(await rowsOf('SELECT a FROM t'), [['São']]);
    for (const command of ['\\i data.sql', "\\copy t from 'a.csv'", '\\! ls'])
      await assert.rejects(load(`CREATE TABLE t (a int);\n${command}\n`), (error: Error) => {
        assert.ok(error instanceof LoadFailed);
        assert.match(error.message, /^line 2: \\(?:i|copy|!) is a command of psql about files/);
        return true;
      });
  });

  test('with messages of programs before it is taken, and one of roles alone is not', async () => {
    const head = '--\n-- PostgreSQL database dump\n--\n\n';
    const end = '\n--\n-- PostgreSQL database dump complete\n--\n';
    const said = [
      'Defaulted container "postgres" out of: postgres, exporter',
      'Password: ',
      'pg_dump: warning: there are circular foreign-key constraints on this table:',
      'pg_dump: detail: employees',
    ];
    const dump = `${said.join('\n')}\n${head}CREATE TABLE public.t (\n    a int\n);\n${end}`;
    for (const text of [dump, dump.replaceAll('\n', '\r\n')]) {
      const { notes } = await load(text);
      assert.deepEqual(
        notes.map(({ line, text: shown }) => [line, shown]),
        said.map((shown, at) => [at + 1, shown.trim()]),
      );
    }
    const cluster = (text: string) =>
      `--\n-- PostgreSQL database cluster dump\n--\n\n${text}\n--\n-- PostgreSQL database cluster dump complete\n--\n`;
    await assert.rejects(load(cluster('CREATE ROLE shop;\n')), /no database, .*pg_dumpall --globals-only/);
    assert.deepEqual(await rowsOf('SELECT count(*)::int FROM t'), [[0]]);
    // The dump of a database without tables is one.
    await load(head + end.replace('\n', 'SET statement_timeout = 0;\n'));
    await load(
      'DROP DATABASE IF EXISTS shop;\nCREATE DATABASE shop;\n\n\\c shop;\nCREATE TABLE t (a int);\n\\c - ada\nINSERT INTO t VALUES (1);',
    );
    assert.deepEqual(await rowsOf('SELECT a FROM t'), [[1]]);
  });

  test('keeps the path of names, which functions in indexes, checks and views rely on', async () => {
    // pg_dump writes qualified names everywhere except in the bodies of functions.
    const dump = `SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
CREATE FUNCTION public.lower_name(text) RETURNS text LANGUAGE sql IMMUTABLE AS $_$ SELECT tidy($1) $_$;
CREATE FUNCTION public.tidy(text) RETURNS text LANGUAGE sql IMMUTABLE AS $_$ SELECT lower(trim($1)) $_$;
CREATE FUNCTION public.is_known(integer) RETURNS boolean LANGUAGE plpgsql AS $_$
BEGIN RETURN EXISTS (SELECT FROM kinds WHERE id = $1); END $_$;
CREATE TABLE public.kinds (id integer);
CREATE TABLE public.goods (
    kind integer,
    name text,
    low text GENERATED ALWAYS AS (public.lower_name(name)) STORED,
    CONSTRAINT known CHECK (public.is_known(kind))
);
CREATE MATERIALIZED VIEW public.words AS
 SELECT public.lower_name(goods.name) AS word FROM public.goods
  WITH NO DATA;
COPY public.kinds (id) FROM stdin;
7
\\.
COPY public.goods (kind, name) FROM stdin;
7	 Tea
\\.
CREATE INDEX by_name ON public.goods USING btree (public.lower_name(name));
REFRESH MATERIALIZED VIEW public.words;
`;
    const { signal } = new AbortController();
    const found = async (sql: string) => {
      const reader = await connect(fixture.engine, own, SECRET);
      return (await reader.query(sql).finally(() => reader.end())).rows;
    };
    const strictly = (text: string) =>
      fixture.engine.load(own, Readable.from([Buffer.from(text)]), { signal });
    for (const loaded of [load, strictly]) {
      await loaded('CREATE TABLE public.other (a integer);');
      const leftOut = await loaded(dump);
      assert.equal(leftOut?.count ?? 0, 0);
      assert.deepEqual(await found('SELECT low, word FROM goods, words'), [{ low: 'tea', word: 'tea' }]);
    }
    const rows = `SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
COPY public.goods (kind, name) FROM stdin;
7	Oil
\\.
`;
    await fixture.engine.load(own, Readable.from([Buffer.from(rows)]), { signal, adding: () => {} });
    assert.equal((await found('SELECT FROM goods')).length, 2);
  });
});
