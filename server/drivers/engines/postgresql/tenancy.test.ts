/** Statements that PostgreSQL refuses to tenants, sent by the tenant's own driver. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import type { Client } from 'pg';
import { type EngineDatabase, LoadFailed } from '../../../databases/engine.ts';
import { eventually } from '../../../testing/eventually.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import {
  connect,
  noPostgresql,
  type PostgresqlFixture,
  postgresqlFixture,
} from '../../../testing/postgresql-fixture.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const STAYS = new AbortController().signal;

describe('a tenant of PostgreSQL', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let other: EngineDatabase;
  let client: Client;
  before(async () => {
    fixture = postgresqlFixture();
    [own, other] = [newDatabase(), newDatabase()];
    for (const database of [own, other]) await fixture.engine.provision(database, SECRET);
    client = await connect(fixture.engine, own, SECRET);
  });
  after(async () => {
    await client?.end();
    await fixture.close();
  });

  const connectTo = (database: string, username: string, password = SECRET) =>
    connect(fixture.engine, { ...own, database, username }, password);
  const refuses = (statement: string, code: string, on = client) =>
    assert.rejects(on.query(statement), { code }, statement);

  test('comes into no other database, and by no other role (D1)', async () => {
    for (const database of [other.database, 'template1'])
      await assert.rejects(connectTo(database, own.username), { code: '42501' });
    // No entry of pg_hba.conf, or a wrong password.
    const roles = ['cloudlet', 'cloudlet_dump', own.database, own.database.replace('d_', 'q_')];
    for (const role of roles)
      for (const database of [own.database, 'postgres'])
        await assert.rejects(connectTo(database, role), { code: /^28/ }, role);
    await assert.rejects(connectTo(own.database, own.username, 'wrong'), { code: '28P01' });
  });

  test('makes what belongs into a database, and changes nothing of the database itself (D2)', async () => {
    await client.query('CREATE TABLE mine (a int)');
    await client.query('CREATE SCHEMA more');
    await client.query('CREATE EXTENSION pg_trgm');
    await client.query('CREATE TEMPORARY TABLE t (a int)');
    const name = own.database;
    await refuses(`ALTER DATABASE ${name} CONNECTION LIMIT 100`, '42501');
    await refuses(`ALTER DATABASE ${name} SET statement_timeout = 0`, '42501');
    await refuses(`ALTER DATABASE ${name} RENAME TO x`, '42501');
    await refuses(`DROP DATABASE ${name}`, '42501');
  });

  test('makes databases for tests, comes into them, and loses them with its own', async () => {
    const database = newDatabase();
    await fixture.engine.provision(database, SECRET);
    const session = await connect(fixture.engine, database, SECRET);
    await session.query('CREATE DATABASE "Test of its own"');
    const inside = await connectTo(encodeURIComponent('Test of its own'), database.username);
    await inside.query('CREATE TABLE t (a int)');
    await inside.end();
    await session.end();
    await fixture.engine.drop(database.database);
    const { rows } = await client.query("SELECT FROM pg_database WHERE datname LIKE 'Test%'");
    assert.equal(rows.length, 0);
  });

  test('sees its own sessions, and ends them', async () => {
    const session = await connect(fixture.engine, own, SECRET);
    session.on('error', () => {});
    const { rows } = await session.query('SELECT pg_backend_pid() AS pid');
    const find = 'SELECT usename FROM pg_stat_activity WHERE pid = $1';
    assert.deepEqual((await client.query(find, [rows[0].pid])).rows, [{ usename: own.username }]);
    await client.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
    await assert.rejects(session.query('SELECT 1'));
    // It sees none of our statements, which may contain password verifiers.
    const texts = `SELECT query FROM pg_stat_activity WHERE usename = 'cloudlet' AND query <> ''`;
    await fixture.engine.rotate(other, SECRET);
    assert.deepEqual((await client.query(texts)).rows, []);
    // It does not see ours.
    const admin = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cloudlet'";
    await client.query(admin).catch((error) => assert.equal(error.code, '42501'));
  });

  test('creates the extensions that are on offer, and no others', async () => {
    const { extensions = [] } = await fixture.engine.readiness();
    for (const name of ['citext', 'hstore', 'pg_trgm', 'pgcrypto'])
      assert.ok(extensions.includes(name), name);
    const { rows } = await client.query(
      'SELECT name, bool_or(trusted) AS trusted FROM pg_available_extension_versions GROUP BY name',
    );
    const named = (isTrusted: boolean) =>
      rows.filter((row) => row.trusted === isTrusted).map((row) => row.name);
    assert.deepEqual(extensions, named(true).sort());
    for (const name of extensions) await client.query(`CREATE EXTENSION IF NOT EXISTS "${name}" CASCADE`);
    const { rows: made } = await client.query('SELECT extname FROM pg_extension');
    assert.deepEqual(made.map(({ extname }) => extname).sort(), extensions);
    assert.ok(named(false).includes('file_fdw'));
    for (const name of named(false))
      await assert.rejects(client.query(`CREATE EXTENSION "${name}"`), /^error: permission denied to create/);
  });

  test('has so many connections, and raises no limit (D3)', async () => {
    const more: Client[] = [];
    for (let i = 1; i < own.limits.connections; i++) more.push(await connect(fixture.engine, own, SECRET));
    await assert.rejects(connect(fixture.engine, own, SECRET), { code: '53300' });
    for (const one of more) await one.end();
    await refuses('SET temp_file_limit = -1', '42501');
  });

  test('reaches neither the host nor what is only for administrators (D5)', async () => {
    const refused = [
      "COPY mine FROM PROGRAM 'id'",
      "COPY mine TO PROGRAM 'cat'",
      "COPY mine FROM '/etc/passwd'",
      "COPY mine TO '/tmp/x'",
      "SELECT pg_read_file('/etc/passwd')",
      "SELECT pg_ls_dir('/')",
      "SELECT lo_import('/etc/passwd')",
      'CREATE EXTENSION dblink',
      'CREATE EXTENSION postgres_fdw',
      'CREATE EXTENSION file_fdw',
      'CREATE EXTENSION adminpack',
      "ALTER SYSTEM SET port = '1'",
      "LOAD 'auto_explain'",
      'CREATE ROLE x SUPERUSER',
      'CREATE ROLE x REPLICATION',
      'GRANT pg_execute_server_program TO CURRENT_USER',
      'GRANT pg_read_server_files TO CURRENT_USER',
      'GRANT pg_write_server_files TO CURRENT_USER',
      'ALTER ROLE cloudlet PASSWORD NULL',
      'DROP ROLE cloudlet',
      'ALTER ROLE CURRENT_USER SUPERUSER',
      'SET SESSION AUTHORIZATION cloudlet',
      'SET ROLE cloudlet',
      'SET ROLE cloudlet_dump',
      'SELECT * FROM pg_authid',
      'SELECT pg_reload_conf()',
      "SET log_min_messages = 'debug5'",
      "CREATE TABLESPACE x LOCATION '/srv'",
      "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc', 'system'",
      'CREATE EVENT TRIGGER x ON ddl_command_end EXECUTE FUNCTION f()',
    ];
    for (const role of ['RESET ROLE', 'SET ROLE NONE']) {
      await client.query(role);
      for (const statement of refused)
        await assert.rejects(client.query(statement), { code: /^(?:42|58|0A|55)/ }, statement);
    }
    await client.query('RESET ROLE');
  });

  test('sees of others no more than opaque names (D4)', async () => {
    const { rows: names } = await client.query("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'");
    for (const { rolname } of names)
      assert.match(rolname, /^(?:cloudlet(?:_dump|_local)?|[duq]_[a-z0-9]{16})$/);
  });

  test('rows that are too large to be shown are reported, and are no failure of the server', async () => {
    const database = newDatabase();
    await fixture.engine.provision(database, SECRET);
    const query = {
      params: [],
      readOnly: true,
      maxRows: 100,
      maxBytes: 1000,
      timeoutMs: 20_000,
      signal: STAYS,
    };
    const statement = "SELECT repeat('x', 10000000) FROM generate_series(1, 5)";
    await assert.rejects(fixture.engine.query(database, { statement, ...query }), {
      name: 'QueryFailed',
      message: /too large to be shown/,
    });
  });

  test('who changes his own password loses it, with his sessions, when it is rotated', async () => {
    const database = newDatabase();
    await fixture.engine.provision(database, SECRET);
    const session = await connect(fixture.engine, database, SECRET);
    await session.query(`SET ROLE NONE; ALTER ROLE ${database.username} PASSWORD 'own'`);
    await fixture.engine.rotate(database, 'next');
    await assert.rejects(session.query('SELECT 1'));
    await assert.rejects(connect(fixture.engine, database, 'own'), { code: '28P01' });
    await (await connect(fixture.engine, database, 'next')).end();
    const query = { params: [], readOnly: false, maxRows: 1, maxBytes: 1000, timeoutMs: 5000, signal: STAYS };
    const local = database.database.replace('d_', 'q_');
    const change = `DO $$ BEGIN SET ROLE NONE; ALTER ROLE ${local} PASSWORD 'own'; END $$`;
    await fixture.engine.query(database, { statement: change, ...query });
    await assert.rejects(connect(fixture.engine, { ...database, username: local }, 'own'), { code: /^28/ });
    const one = await fixture.engine.query(database, { statement: 'SELECT 1', ...query });
    assert.deepEqual(one.rows.toJSON(), [[1]]);
    await fixture.engine.query(database, { statement: change, ...query });
    await fixture.engine.load(database, Readable.from([Buffer.from('SELECT 1;')]), { signal: STAYS });
  });

  test('who holds the own role by a transaction is shut out all the same, and gets a new password', async () => {
    const database = newDatabase();
    await fixture.engine.provision(database, SECRET);
    const hold = async (password: string) => {
      const holder = await connect(fixture.engine, database, password);
      holder.on('error', () => {});
      await holder.query('SET ROLE NONE; BEGIN');
      await holder.query(`ALTER ROLE ${database.username} PASSWORD 'held'`);
      return { ended: new Promise((resolve) => holder.once('end', resolve)) };
    };
    const { ended } = await hold(SECRET);
    await fixture.engine.restrict(database, 'none');
    await ended;
    await assert.rejects(connect(fixture.engine, database, SECRET), { code: /^28/ });
    await fixture.engine.restrict(database, 'full');
    const again = await hold(SECRET);
    await fixture.engine.rotate(database, 'bbbbbbbbbbbbbbbbbbbbbbbb');
    await again.ended;
    await (await connect(fixture.engine, database, 'bbbbbbbbbbbbbbbbbbbbbbbb')).end();
    await fixture.engine.drop(database.database);
  });

  test('just-in-time compilation that a tenant turns on fails nothing', async () => {
    await client.query('SET jit = on');
    await client.query('SET jit_above_cost = 0');
    const { rows } = await client.query(
      'EXPLAIN (ANALYZE, FORMAT JSON) SELECT sum(g * 2) FROM generate_series(1, 1000) g',
    );
    // It would be used wherever its library is found.
    assert.equal(rows[0]?.['QUERY PLAN'][0].JIT, undefined);
    await client.query('RESET ALL');
  });

  test('a recursion that does not end dies at the limit of temporary files, or of time', async () => {
    const wide = "SELECT repeat('x', 8000) AS x UNION ALL SELECT t.x FROM t, generate_series(1, 2)";
    await refuses(`WITH RECURSIVE t AS (${wide}) SELECT count(*) FROM t`, '53400');
    const narrow = 'SELECT 1 AS n UNION ALL SELECT n FROM t';
    const session = await connect(fixture.engine, own, SECRET);
    await session.query("SET statement_timeout = '1s'");
    await refuses(`WITH RECURSIVE t AS (${narrow}) SELECT count(*) FROM t`, '57014', session);
    await session.end();
  });

  test('temporary files and memory are bounded', async () => {
    await refuses(
      // Wide rows: the limit is reached before the statement times out, also on a busy host.
      "SELECT count(*) FROM (SELECT repeat('x', 8000) || g FROM generate_series(1, 1e7::bigint) g ORDER BY 1) x",
      '53400',
    );
    await client.query("SET work_mem = '2GB'");
    await refuses(
      "SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 900)",
      '53200',
    );
    await client.query('RESET work_mem');
    assert.equal((await client.query('SELECT 1 AS one')).rows[0]?.one, 1);
  });

  test('read only, it is shut out where it goes on to grow, and let in when it has shrunk', async () => {
    const database = newDatabase({ sizeLimitBytes: 2 ** 20 });
    const { engine } = fixture;
    await engine.provision(database, SECRET);
    const session = await connect(engine, database, SECRET);
    const grow = 'INSERT INTO big SELECT repeat(md5(g::text), 30) FROM generate_series(1, 1000) g';
    await session.query('CREATE TABLE big (a text)');
    await session.query(grow);
    await engine.restrict(database, 'read_only');
    const again = await connect(engine, database, SECRET);
    await refuses(grow, '25006', again);
    await again.query(`SET default_transaction_read_only = off`);
    await again.query(grow);
    await engine.measure(database);
    await assert.rejects(again.query('SELECT 1'));
    await assert.rejects(connect(engine, database, SECRET), { code: '28000' });
    await engine.restrict({ ...database, sizeLimitBytes: 2 ** 30 }, 'full');
    const last = await connect(engine, database, SECRET);
    await last.query('TRUNCATE big');
    await engine.restrict(database, 'read_only');
    await eventually(async () => (await engine.measure(database)).sizeBytes < 2 ** 20);
    await (await connect(engine, database, SECRET)).end();
  });

  test('a hostile dump does nothing, and the database stays as it was', async () => {
    await client.query('CREATE TABLE kept AS SELECT 1 AS a');
    const dumps = [
      '\\! id > /tmp/x\n',
      'SELECT 1; \\! id\n',
      "\\copy kept from program 'id'\n",
      '\\o /tmp/x\n',
      '\\i /etc/passwd\n',
      '\\unrestrict x\n\\! id\n',
      '\\restrict abc\n\\unrestrict abc\n\\! id\n',
      '\\restrict abc\nCREATE TABLE x (a int);\n\\unrestrict abc\n\\! id\n',
      `\\connect ${other.database}\n`,
      'RESET ROLE; ALTER ROLE CURRENT_USER SUPERUSER;',
      `RESET ROLE; ALTER ROLE ${own.username} SUPERUSER;`,
      'SET SESSION AUTHORIZATION cloudlet;',
      "COPY (SELECT 1) TO PROGRAM 'id';",
      'CREATE EXTENSION dblink;',
    ];
    for (const dump of dumps) {
      const load = fixture.engine.load(own, Readable.from([Buffer.from(dump)]), { signal: STAYS });
      await assert.rejects(load, LoadFailed, dump);
    }
    assert.equal((await client.query('SELECT count(*) FROM kept')).rows[0]?.count, '1');
    const { rows } = await client.query('SELECT rolname FROM pg_roles WHERE rolsuper');
    assert.deepEqual(rows, [{ rolname: 'cloudlet' }]);
  });

  test('a dump tells of everything: policies of rows, large objects, views, functions, and is loaded whole', async () => {
    const [from, to] = [newDatabase(), newDatabase()];
    for (const database of [from, to]) await fixture.engine.provision(database, SECRET);
    const session = await connect(fixture.engine, from, SECRET);
    await session.query(`
      CREATE TABLE t (a int PRIMARY KEY, b text);
      INSERT INTO t SELECT g, E'line\\n\\\\unrestrict ' || g FROM generate_series(1, 1000) g;
      ALTER TABLE t ENABLE ROW LEVEL SECURITY;
      ALTER TABLE t FORCE ROW LEVEL SECURITY;
      CREATE VIEW v AS SELECT count(*) FROM t;
      CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.b := upper(NEW.b); RETURN NEW; END';
      CREATE TRIGGER upper_b BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
      CREATE EXTENSION citext;
      SELECT lo_from_bytea(0, 'a large object')`);
    await fixture.engine.fork(from, to, STAYS);
    const copy = await connect(fixture.engine, to, SECRET);
    await copy.query('ALTER TABLE t NO FORCE ROW LEVEL SECURITY');
    assert.equal((await copy.query('SELECT count(*) FROM t')).rows[0]?.count, '1000');
    await copy.query("UPDATE t SET b = 'b' WHERE a = 1");
    assert.equal((await copy.query('SELECT b FROM t WHERE a = 1')).rows[0]?.b, 'B');
    assert.equal((await copy.query('SELECT count(*) FROM pg_largeobject_metadata')).rows[0]?.count, '1');
    const { rows } = await copy.query("SELECT tableowner FROM pg_tables WHERE tablename = 't'");
    assert.deepEqual(rows, [{ tableowner: to.database }]);
    await Promise.all([session.end(), copy.end()]);
  });
});
