/** Dumps of PostgreSQL 16 to 18, and of servers with extensions that are not here. */
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
const { signal } = new AbortController();
const BEGIN =
  "--\n-- PostgreSQL database dump\n--\n\nSELECT pg_catalog.set_config('search_path', '', false);\n";
const END = '\n--\n-- PostgreSQL database dump complete\n--\n\n';
const TABLE =
  'CREATE TABLE public.t (\n    id integer NOT NULL,\n    s text\n);\nCOPY public.t (id, s) FROM stdin;\n1\ta\n\\.\n';

/** What a newer server writes, the version from which a server takes it, and how it is left out. */
const NEWER: readonly (readonly [number, string, RegExp])[] = [
  [17, "CREATE VIEW public.v AS\n SELECT JSON_VALUE('{\"a\": 1}'::jsonb, '$.a') AS a;", /json_value/],
  [17, 'CREATE VIEW public.w AS\n SELECT v.a\n   FROM public.v;', /public\.v/],
  [17, 'GRANT SELECT ON TABLE public.w TO PUBLIC;', /public\.w/],
  [17, "COMMENT ON VIEW public.w IS 'x';", /public\.w/],
  [
    17,
    "CREATE VIEW public.j AS\n SELECT jt.a\n   FROM JSON_TABLE('[]'::jsonb, '$[*]' COLUMNS (a integer PATH '$.a')) jt;",
    /syntax error/,
  ],
  [
    16,
    'CREATE MATERIALIZED VIEW public.any AS\n SELECT any_value(s) AS s\n   FROM public.t\n  WITH NO DATA;',
    /any_value/,
  ],
  [16, 'REFRESH MATERIALIZED VIEW public.any;', /public\.any/],
  [
    18,
    "CREATE FUNCTION public.f() RETURNS integer\n    LANGUAGE sql\n    BEGIN ATOMIC\n  UPDATE public.t SET s = 'b'::text\n   RETURNING WITH (OLD AS o) o.id;\nEND;",
    /syntax error/,
  ],
  [18, 'CREATE INDEX i ON public.t USING btree (casefold(s));', /casefold/],
  [
    16,
    "CREATE COLLATION public.r (provider = icu, locale = 'en', rules = '&a < g');",
    /no rules of their own/,
  ],
  [16, 'CREATE VIEW public.io AS\n SELECT backend_type\n   FROM pg_catalog.pg_stat_io;', /pg_stat_io/],
  [
    18,
    'ALTER TABLE ONLY public.t\n    ADD CONSTRAINT t_key PRIMARY KEY (id, s WITHOUT OVERLAPS);',
    /syntax error/,
  ],
  [
    16,
    "CREATE TABLE public.dice (\n    id integer NOT NULL,\n    r double precision DEFAULT random_normal() NOT NULL,\n    t text DEFAULT 'random_normal()'::text\n);",
    /no random_normal\(\): the column has no default/,
  ],
  [
    18,
    "CREATE TABLE public.cut (\n    id integer\n)\nWITH (fillfactor='70', vacuum_truncate='auto');",
    /vacuum_truncate/,
  ],
  [18, 'CREATE TABLE public.keyed (\n    id uuid DEFAULT uuidv4()\n);', /no uuidv4\(\)/],
];

/** What servers with extensions write, and how it is left out; null: it is not. */
const EXTENDED: readonly (readonly [string, RegExp | null])[] = [
  ['CREATE EXTENSION IF NOT EXISTS timescaledb WITH SCHEMA public;', /timescaledb/],
  [TABLE.trim(), null],
  ['SELECT public.timescaledb_pre_restore();', /timescaledb_pre_restore\(\) does not exist/],
  ['CREATE TRIGGER tr BEFORE INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION public.of_perl();', /of_perl/],
  [
    'ALTER TABLE ONLY public.t\n    ADD CONSTRAINT t_pkey PRIMARY KEY (id) USING INDEX TABLESPACE fast;',
    /tablespace fast/,
  ],
  ["SELECT pg_catalog.setval('public.t_seq', 5, true);", null],
];

describe('a load of a newer dump into PostgreSQL', { skip: noPostgresql }, () => {
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

  async function load(text: string | Buffer): Promise<LeftOut> {
    const leftOut = new LeftOut();
    await client.end();
    const loading = fixture.engine.load(own, Readable.from([Buffer.from(text)]), { signal, leftOut });
    await loading.finally(async () => {
      client = await connect(fixture.engine, own, SECRET);
    });
    return leftOut;
  }

  const rowsOf = async (sql: string) => (await client.query({ text: sql, rowMode: 'array' })).rows;

  async function major(): Promise<number> {
    const [[version] = []] = await rowsOf("SELECT current_setting('server_version_num')::int / 10000");
    return version;
  }

  test('leaves out what this version lacks, with what needs it, and keeps all rows', async () => {
    const version = await major();
    for (const [since, sql, reason] of NEWER) {
      // What an entry needs comes before it.
      const before = NEWER.slice(
        0,
        NEWER.findIndex((entry) => entry[1] === sql),
      ).map((entry) => entry[1]);
      const text = [BEGIN, TABLE, ...before, sql, END].join('\n');
      const { count, notes } = await load(text);
      const expected = NEWER.slice(0, before.length + 1).filter((entry) => version < entry[0]).length;
      assert.equal(count, expected, sql);
      if (version >= since || count > 10) continue;
      const line = text.slice(0, text.indexOf(sql)).split('\n').length;
      const note = notes.find((each) => each.line === line);
      assert.match(note?.reason ?? '', reason, sql);
      assert.ok(sql.replace(/\s+/g, ' ').startsWith(note?.text.replace(/…$/, '') ?? '?'), sql);
      assert.deepEqual(await rowsOf('SELECT id, s FROM t'), [[1, 'a']]);
    }
    assert.deepEqual(await rowsOf('INSERT INTO dice (id, r) VALUES (1, 2) RETURNING t'), [
      ['random_normal()'],
    ]);
    assert.deepEqual(await rowsOf('SELECT unnest(reloptions) FROM pg_class WHERE relname = $$cut$$'), [
      ['fillfactor=70'],
    ]);
  });

  test('leaves out what needs an absent extension or tablespace', async () => {
    const made = 'CREATE SEQUENCE public.t_seq;';
    const { count, notes } = await load([BEGIN, made, ...EXTENDED.map(([sql]) => sql), END].join('\n'));
    const expected = EXTENDED.flatMap(([, reason]) => (reason === null ? [] : [reason]));
    assert.equal(count, expected.length);
    for (const reason of expected)
      assert.ok(
        notes.some((note) => reason.test(note.reason)),
        `${reason}: ${JSON.stringify(notes)}`,
      );
    assert.deepEqual(await rowsOf("SELECT id, s, nextval('t_seq')::int FROM t"), [[1, 'a', 6]]);
    await assert.rejects(client.query("INSERT INTO t VALUES (1, 'b')"), { code: '23505' });
  });

  test('is refused for rows that would be lost, by rows that break a rule, and in SQL that people wrote', async () => {
    const before = await rowsOf('SELECT count(*) FROM t');
    const lost = [BEGIN, 'CREATE TABLE public.g (\n    g public.geometry(Point,4326)\n);', END].join('\n');
    await assert.rejects(load(lost), /geometry/);
    const double = [
      BEGIN,
      TABLE,
      'INSERT INTO public.t VALUES (1, $$b$$);',
      'ALTER TABLE ONLY public.t\n    ADD CONSTRAINT t_pkey PRIMARY KEY (id);',
      END,
    ].join('\n');
    await assert.rejects(load(double), /line \d+: ERROR: .*could not create unique index/);
    await assert.rejects(
      load('CREATE TABLE a (x int);\nCREATE VIEW v AS SELECT nothing FROM a;\n'),
      /line 2: ERROR: .*nothing/,
    );
    assert.deepEqual(await rowsOf('SELECT count(*) FROM t'), before);
  });

  test('leaves out each of two in one line', async () => {
    const two = 'CREATE VIEW public.a AS SELECT no_function(); CREATE VIEW public.b AS SELECT no_other();';
    const { count, notes } = await load([BEGIN, TABLE, two, END].join('\n'));
    assert.equal(count, 2);
    assert.deepEqual(
      notes.map(({ reason }) => /no_(?:function|other)\(\) does not exist/.test(reason)),
      [true, true],
    );
    assert.deepEqual(await rowsOf('SELECT id, s FROM t'), [[1, 'a']]);
  });

  test('keeps the bytes of a dump in another encoding', async () => {
    const text = [
      BEGIN,
      "SET client_encoding = 'LATIN1';",
      "CREATE TABLE public.t (\n    s text DEFAULT 'é'\n);",
      "COMMENT ON TABLE public.t IS 'ü';",
      "CREATE VIEW public.v AS SELECT 'ö'::text AS s;",
      END,
    ].join('\n');
    assert.equal((await load(Buffer.from(text, 'latin1'))).count, 0);
    const said = "SELECT obj_description('t'::regclass), (SELECT s FROM v)";
    assert.deepEqual(await rowsOf(said), [['ü', 'ö']]);
    assert.deepEqual(await rowsOf('INSERT INTO t DEFAULT VALUES RETURNING s'), [['é']]);
  });

  test('shows the statement that a refused one needs, not a setting', async () => {
    const leftOut = new LeftOut();
    const text = [
      BEGIN,
      'SET no_such_setting = 0;',
      'CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA public;',
      'CREATE TABLE public.g (\n    g public.geometry\n);',
      END,
    ].join('\n');
    await assert.rejects(fixture.engine.load(own, Readable.from([Buffer.from(text)]), { signal, leftOut }));
    assert.match(leftOut.hint ?? '', /^"CREATE EXTENSION IF NOT EXISTS postgis.* It was one of 2$/);
  });
});
