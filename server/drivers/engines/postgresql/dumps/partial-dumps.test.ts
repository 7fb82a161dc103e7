/** Dumps of a part of a database: statements that refer to the rest are skipped and reported. */
// Its own process: it starts servers.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import type { Client } from 'pg';
import type { EngineDatabase } from '../../../../databases/engine.ts';
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
