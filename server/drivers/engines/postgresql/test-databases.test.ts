/** Databases that frameworks create for their tests, on the server of their account. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Client } from 'pg';
import type { EngineDatabase } from '../../../databases/engine.ts';
import { eventually } from '../../../testing/eventually.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import {
  connect,
  noPostgresql,
  type PostgresqlFixture,
  postgresqlFixture,
} from '../../../testing/postgresql-fixture.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const MOST = 50;
const STAYS = new AbortController().signal;

describe('databases for tests in PostgreSQL', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let neighbour: EngineDatabase;
  let client: Client;
  before(async () => {
    fixture = postgresqlFixture();
    const limits = { connections: 20, statementMs: 60_000 };
    own = newDatabase({ sizeLimitBytes: 2 ** 30, limits });
    neighbour = newDatabase({ accountId: 2 });
    for (const database of [own, neighbour]) await fixture.engine.provision(database, SECRET);
    client = await connect(fixture.engine, own, SECRET);
  });
  after(async () => {
    await client?.end();
    await fixture.close();
  });
  const inside = (database: string) =>
    connect(fixture.engine, { ...own, database: encodeURIComponent(database) }, SECRET);
  const names = async (of = own) => (await fixture.engine.testDatabases(of)).map(({ name }) => name);

  test('they are made, used, listed with their bytes, and dropped as each framework does', async () => {
    // Rails, Ecto, Sequelize, createdb and Django connect to `postgres` to create them.
    for (const at of ['postgres', own.database]) {
      const maintenance = await inside(at);
      await maintenance.query('CREATE DATABASE "test_Shop"');
      await maintenance.end();
      const before = await fixture.engine.testDatabases(own);
      assert.deepEqual(
        before.map(({ name, madeBy }) => [name, madeBy]),
        [['test_Shop', own.database]],
      );
      const session = await inside('test_Shop');
      await session.query(
        'CREATE TABLE t AS SELECT g, repeat(md5(g::text), 10) FROM generate_series(1, 100000) g',
      );
      await session.query('CREATE EXTENSION IF NOT EXISTS citext');
      await session.query('CREATE SCHEMA s');
      await session.end();
      const [now] = await fixture.engine.testDatabases(own);
      assert.ok((now?.sizeBytes ?? 0) > (before[0]?.sizeBytes ?? 0) + 2 ** 20);
      // They count: the size of the account's own database includes them.
      await eventually(async () => (await fixture.engine.measure(own)).sizeBytes > 8 * 2 ** 20);
      const again = await inside(at);
      await again.query('DROP DATABASE "test_Shop"');
      await again.end();
      assert.deepEqual(await names(), []);
    }
  });

  test('nothing can be kept in the database for maintenance, and there it has its limit', async () => {
    const session = await inside('postgres');
    for (const statement of ['CREATE TABLE t (a int)', 'CREATE SCHEMA s', 'CREATE TEMPORARY TABLE t (a int)'])
      await assert.rejects(session.query(statement), { code: '42501' }, statement);
    await session.end();
    await assert.rejects(inside('template1'), { code: '42501' });
  });

  test('a database that is named like ours is its maker’s, and those that are ours are refused', async () => {
    for (const name of [own.database, 'postgres', 'template1'])
      await assert.rejects(client.query(`CREATE DATABASE ${name}`), { code: '42P04' });
    for (const name of [own.database, 'postgres', 'template1'])
      await assert.rejects(client.query(`DROP DATABASE ${name}`), { code: '42501' });
    await assert.rejects(client.query('CREATE DATABASE copy TEMPLATE postgres'), { code: '42501' });
    await client.query('CREATE DATABASE t_aaaaaaaaaaaaaaaa');
    // A start removes remains of loads, but not this one.
    await fixture.engine.restart(own);
    client = await connect(fixture.engine, own, SECRET);
    assert.deepEqual(await names(), ['t_aaaaaaaaaaaaaaaa']);
    await client.query('DROP DATABASE t_aaaaaaaaaaaaaaaa');
  });

  test('read only by its size, its tests read only, too', async () => {
    await client.query('CREATE DATABASE test_full');
    await fixture.engine.restrict(own, 'read_only');
    const session = await inside('test_full');
    await assert.rejects(session.query('CREATE TABLE t (a int)'), { code: '25006' });
    await session.end();
    await fixture.engine.restrict(own, 'full');
    client = await connect(fixture.engine, own, SECRET);
    await client.query('DROP DATABASE test_full');
  });

  test('five hundred are not made: a server has a bound, and the neighbour notices nothing', async () => {
    let made = 0;
    const errors = new Set<string>();
    for (let i = 0; i < 500 && errors.size === 0; i++)
      await client.query(`CREATE DATABASE many_${i}`).then(
        () => made++,
        (error) => errors.add(error.code),
      );
    assert.deepEqual([...errors], ['42501']);
    assert.ok(made >= MOST, `${made}`);
    assert.ok(made < 2 * MOST, `${made}`);
    const session = await connect(fixture.engine, neighbour, SECRET);
    await session.query('CREATE DATABASE test_mine');
    assert.deepEqual(await names(neighbour), ['test_mine']);
    await session.query('DROP DATABASE test_mine');
    await session.end();
    // A user who can create roles grants itself the privilege again, and loses it within a second or two.
    await client.query(`SET ROLE NONE; ALTER ROLE ${own.username} CREATEDB`).catch(() => {});
    await eventually(async () => {
      const { rows } = await client.query('SELECT FROM pg_roles WHERE rolcreatedb AND NOT rolsuper');
      return rows.length === 0;
    });
    await client.query('RESET ROLE');
    // Each waits for a checkpoint. The next tests have room for theirs.
    for (const name of (await names()).slice(MOST - 8)) await client.query(`DROP DATABASE "${name}"`);
    await eventually(() =>
      client.query('CREATE DATABASE test_again').then(
        () => true,
        () => false,
      ),
    );
    await client.query('DROP DATABASE test_again');
  });

  test('dumps, copies and loads hold them; one that cannot be read costs nothing else', async () => {
    const [from, copy] = [newDatabase(), newDatabase()];
    const elsewhere = newDatabase({ accountId: 2 });
    for (const database of [from, copy, elsewhere]) await fixture.engine.provision(database, SECRET);
    const session = await connect(fixture.engine, from, SECRET);
    await session.query('CREATE TABLE own AS SELECT 1 AS a');
    await session.query('CREATE DATABASE "test_Ä"');
    await session.query('CREATE DATABASE test_shut ALLOW_CONNECTIONS false');
    await session.end();
    const at = (database: EngineDatabase, name: string) =>
      connect(fixture.engine, { ...database, database: encodeURIComponent(name) }, SECRET);
    const tests = await at(from, 'test_Ä');
    await tests.query('CREATE TABLE t (a text PRIMARY KEY)');
    await tests.query("INSERT INTO t VALUES (E'\\n-- content\\n'), ('b')");
    await tests.query('REVOKE ALL ON DATABASE "test_Ä" FROM PUBLIC');
    await tests.end();
    const madeBy = async ({ database, ...of }: EngineDatabase) =>
      (await fixture.engine.testDatabases({ database, ...of })).flatMap((one) =>
        one.madeBy === database ? one.name : [],
      );
    const rows = async (database: EngineDatabase, name: string) => {
      const reader = await at(database, name);
      const { rowCount } = await reader.query('SELECT a FROM t');
      await reader.query("INSERT INTO t VALUES ('mine')");
      await reader.query("DELETE FROM t WHERE a = 'mine'");
      await reader.end();
      return rowCount;
    };
    await fixture.engine.fork(from, copy, STAYS);
    assert.deepEqual(await madeBy(copy), ['test_Ä_copy']);
    assert.equal(await rows(copy, 'test_Ä_copy'), 2);
    const { stream } = await fixture.engine.dump(from, 'sql', { signal: STAYS, isForPoint: true });
    await fixture.engine.load(elsewhere, stream, { signal: STAYS });
    assert.deepEqual(await madeBy(elsewhere), ['test_Ä']);
    assert.equal(await rows(elsewhere, 'test_Ä'), 2);
    // A load keeps the existing ones.
    const again = await fixture.engine.dump(from, 'sql', { signal: STAYS });
    await fixture.engine.load(from, again.stream, { signal: STAYS });
    assert.deepEqual((await madeBy(from)).sort(), ['test_shut', 'test_Ä']);
    const own = await connect(fixture.engine, from, SECRET);
    assert.equal((await own.query('SELECT a FROM own')).rowCount, 1);
    await own.end();
    for (const { database } of [from, copy]) await fixture.engine.drop(database);
  });

  test('copies of a large one end the server that they are on, at its bound, and no other', async () => {
    const greedy = newDatabase({ accountId: 3, sizeLimitBytes: 2 ** 20, limits: own.limits });
    await fixture.engine.provision(greedy, SECRET);
    const beside = await connect(fixture.engine, neighbour, SECRET);
    const at = (name: string) => connect(fixture.engine, { ...greedy, database: name }, SECRET);
    const session = await connect(fixture.engine, greedy, SECRET);
    await session.query('CREATE DATABASE test_large');
    const large = await at('test_large');
    await large.query(
      'CREATE TABLE t AS SELECT repeat(md5(g::text), 200) AS a FROM generate_series(1, 400000) g',
    );
    await large.query('ALTER TABLE t ALTER a SET STORAGE PLAIN');
    await large.end();
    const copies = async () => {
      for (let i = 0; i < 20; i++) await session.query(`CREATE DATABASE copy_${i} TEMPLATE test_large`);
    };
    await assert.rejects(copies());
    // Its session ended with the server.
    await assert.rejects(session.query('SELECT 1'));
    assert.equal((await beside.query('SELECT 1 AS one')).rows[0].one, 1);
    await beside.end();
    await fixture.engine.drop(greedy.database);
  });

  test('names that are no UTF-8 keep nothing from being read only, bounded, and dropped', async () => {
    const about = { accountId: 4, sizeLimitBytes: 2 ** 30, limits: own.limits };
    const [strange, beside] = [newDatabase(about), newDatabase(about)];
    for (const database of [strange, beside]) await fixture.engine.provision(database, SECRET);
    const at = (name: string) => connect(fixture.engine, { ...strange, database: name }, SECRET);
    const session = await at(strange.database);
    await session.query("CREATE DATABASE test_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
    await session.query('CREATE DATABASE test_raw');
    await session.end();
    const ascii = await at('test_ascii');
    const inBytes = (statement: string) =>
      ascii.query(`DO $$ BEGIN EXECUTE '${statement}"' || chr(255) || '"'; END $$`);
    await inBytes('ALTER DATABASE test_raw RENAME TO ');
    await ascii.query('SET ROLE NONE');
    await inBytes('CREATE ROLE ');
    await ascii.query(`DO $$ BEGIN EXECUTE 'ALTER ROLE "' || chr(255) || '" CREATEDB'; END $$`);
    await ascii.end();
    assert.deepEqual(await names(strange), ['test_ascii', '\uFFFD']);
    await fixture.engine.restrict(strange, 'read_only');
    await fixture.engine.restrict(strange, 'full');
    const { stream } = await fixture.engine.dump(strange, 'sql', { signal: STAYS });
    for await (const _ of stream);
    const maker = await at(strange.database);
    for (let i = 0; i < MOST; i++) await maker.query(`CREATE DATABASE many_${i}`).catch(() => {});
    await eventually(async () => {
      const { rows } = await maker.query('SELECT FROM pg_roles WHERE rolcreatedb AND NOT rolsuper');
      return rows.length === 0;
    });
    await maker.end();
    await fixture.engine.drop(strange.database);
    assert.deepEqual(await names(beside), []);
    await fixture.engine.drop(beside.database);
  });

  test('they go with the database whose user made them, also as templates', async () => {
    const gone = newDatabase();
    await fixture.engine.provision(gone, SECRET);
    const session = await connect(fixture.engine, gone, SECRET);
    await session.query('CREATE DATABASE test_gone');
    await session.query('ALTER DATABASE test_gone IS_TEMPLATE true');
    await session.end();
    await fixture.engine.drop(gone.database);
    assert.ok(!(await names()).includes('test_gone'));
  });
});
