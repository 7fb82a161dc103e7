/** Extensions that tenants create, used as in the applications that require them. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { Client } from 'pg';
import type { EngineDatabase } from '../../../databases/engine.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import {
  connect,
  noPostgresql,
  type PostgresqlFixture,
  postgresqlFixture,
} from '../../../testing/postgresql-fixture.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const STAYS = new AbortController().signal;
/** Each with a query that needs it, about a table that has an index of its kind. */
const WANTED: Readonly<Record<string, readonly [make: string, ask: string, answer: unknown]>> = {
  pg_trgm: [
    'CREATE TABLE words (word text); CREATE INDEX ON words USING gin (word gin_trgm_ops)',
    "SELECT similarity('word', 'two words') > 0.3",
    true,
  ],
  hstore: [
    "CREATE TABLE bags AS SELECT 'a=>1'::hstore AS bag; CREATE INDEX ON bags USING gin (bag)",
    "SELECT bag -> 'a' FROM bags",
    '1',
  ],
  citext: ["CREATE TABLE mails AS SELECT 'A@b.c'::citext AS mail", "SELECT mail = 'a@B.C' FROM mails", true],
  'uuid-ossp': [
    'CREATE TABLE ids (id uuid DEFAULT uuid_generate_v4()); INSERT INTO ids DEFAULT VALUES',
    'SELECT length(id::text) FROM ids',
    36,
  ],
  pgcrypto: [
    "CREATE TABLE secrets AS SELECT crypt('secret', gen_salt('bf', 4)) AS kept",
    "SELECT crypt('secret', kept) = kept FROM secrets",
    true,
  ],
  unaccent: ["CREATE TABLE accents AS SELECT 'Hôtel' AS a", 'SELECT unaccent(a) FROM accents', 'Hotel'],
  btree_gin: [
    'CREATE TABLE ints AS SELECT 1 AS i; CREATE INDEX ON ints USING gin (i)',
    'SELECT i FROM ints WHERE i < 2',
    1,
  ],
  btree_gist: [
    'CREATE TABLE stays (room int, t int4range, EXCLUDE USING gist (room WITH =, t WITH &&))',
    'SELECT 1 <-> 3',
    2,
  ],
  ltree: [
    "CREATE TABLE trees AS SELECT 'a.b.c'::ltree AS path; CREATE INDEX ON trees USING gist (path)",
    "SELECT path <@ 'a.b' FROM trees",
    true,
  ],
  vector: [
    `CREATE TABLE points AS SELECT ARRAY[g, 0, 0]::vector(3) AS at FROM generate_series(1, 100) g;
     CREATE INDEX ON points USING ivfflat (at vector_l2_ops) WITH (lists = 1)`,
    "SET enable_seqscan = off; SELECT at::text FROM points ORDER BY at <-> '[7,0,0]' LIMIT 1",
    '[7,0,0]',
  ],
};
const STATISTICS = 'pg_stat_statements';
const REACHING_OUT = ['dblink', 'postgres_fdw', 'file_fdw', 'adminpack', 'pageinspect', 'pg_prewarm'];

describe('extensions of a tenant', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let client: Client;
  let offered: readonly string[];
  before(async () => {
    fixture = postgresqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
    client = await connect(fixture.engine, own, SECRET);
    offered = (await fixture.engine.readiness()).extensions ?? [];
    // Not every distribution has this package.
    assert.deepEqual(
      Object.keys(WANTED).filter((name) => !offered.includes(name) && name !== 'vector'),
      [],
    );
    for (const name of wanted()) await client.query(`CREATE EXTENSION "${name}"; ${WANTED[name]?.[0]}`);
  });
  after(async () => {
    await client?.end();
    await fixture.close();
  });

  const wanted = () => Object.keys(WANTED).filter((name) => offered.includes(name));
  const tried = async (on: Client) => {
    for (const name of wanted()) {
      const [, ask, answer] = WANTED[name] as (typeof WANTED)[string];
      const [last] = [await on.query({ text: ask, rowMode: 'array' })].flat().slice(-1);
      assert.deepEqual(last?.rows[0]?.[0], answer, name);
    }
  };

  // First, because it sees everything since the start of the server.
  test('pg_stat_statements counts statements, is emptied, and shows no verifier of ours', async (t) => {
    if (!offered.includes(STATISTICS)) return t.skip('these programs are not unpacked by us');
    await client.query(`CREATE EXTENSION ${STATISTICS}`);
    for (let i = 0; i < 3; i++) await client.query('SELECT $1::int + 4711', [i]);
    const find = "SELECT calls::int FROM pg_stat_statements WHERE query ~ '^SELECT .1::int'";
    assert.deepEqual((await client.query(find)).rows, [{ calls: 3 }]);
    const other = newDatabase();
    await fixture.engine.provision(other, SECRET);
    await fixture.engine.rotate(other, SECRET.toUpperCase());
    const { stream } = await fixture.engine.dump(own, 'sql', { signal: STAYS });
    for await (const _ of stream);
    const ofOurs = `SELECT query FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
      WHERE rolname ~ '^cloudlet' OR query ~ 'SCRAM-SHA'`;
    assert.deepEqual((await client.query(ofOurs)).rows, []);
    await assert.rejects(client.query("SET pg_stat_statements.track = 'none'"), { code: '42501' });
    await client.query('SELECT pg_stat_statements_reset()');
    assert.deepEqual((await client.query(find)).rows, []);
  });

  test('work, in a copy of the database too, and in one that its dump was loaded into', async (t) => {
    if (offered.includes(STATISTICS)) await client.query(`CREATE EXTENSION IF NOT EXISTS ${STATISTICS}`);
    await tried(client);
    const [fork, loaded] = [newDatabase(), newDatabase()];
    for (const database of [fork, loaded]) await fixture.engine.provision(database, SECRET);
    await fixture.engine.fork(own, fork, STAYS);
    const { stream } = await fixture.engine.dump(own, 'sql', { signal: STAYS });
    await fixture.engine.load(loaded, Readable.from([await buffer(stream)]), { signal: STAYS });
    for (const database of [fork, loaded]) {
      const session = await connect(fixture.engine, database, SECRET);
      t.after(() => session.end());
      await tried(session);
      if (!offered.includes(STATISTICS)) continue;
      await session.query('SELECT pg_stat_statements_reset()');
      await session.query('SELECT count(*) FROM pg_stat_statements');
    }
  });

  test('none is to be had that reaches files or other hosts, whatever the role', async () => {
    for (const role of ['RESET ROLE', 'SET ROLE NONE']) {
      await client.query(role);
      for (const name of REACHING_OUT)
        await assert.rejects(client.query(`CREATE EXTENSION ${name}`), { code: /^(?:42501|0A000)$/ }, name);
      for (const call of ["lo_import('/etc/passwd')", "lo_export(1, '/tmp/x')", "pg_read_file('PG_VERSION')"])
        await assert.rejects(client.query(`SELECT ${call}`), { code: '42501' }, call);
    }
    await client.query('RESET ROLE');
    assert.deepEqual(
      REACHING_OUT.filter((name) => offered.includes(name)),
      [],
    );
  });
});
