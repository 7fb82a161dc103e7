/** Databases that frameworks create for their tests, on the server of their account. */
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { EngineDatabase } from '../../../databases/engine.ts';
import { eventually } from '../../../testing/eventually.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../testing/new-database.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const MOST = 50;
const STAYS = new AbortController().signal;
const DENIED = { errno: 1044 };

describe('databases for tests in MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let own: EngineDatabase;
  let neighbour: EngineDatabase;
  let client: Connection;
  before(async () => {
    fixture = mysqlFixture();
    own = newDatabase({ sizeLimitBytes: 2 ** 30 });
    neighbour = newDatabase({ accountId: 2 });
    for (const database of [own, neighbour]) await fixture.engine.provision(database, SECRET);
    client = await connectMysql(fixture.engine, own, SECRET);
  });
  after(async () => {
    client?.destroy();
    await fixture.close();
  });
  const names = async (of = own) => (await fixture.engine.testDatabases(of)).map(({ name }) => name);

  test('they are listed with their bytes, by names with any characters', async () => {
    for (const name of [`test_${own.database}`, 'shop-1_test', 'prisma_migrate_shadow_db_x'])
      await client.query(`CREATE DATABASE \`${name}\``);
    await client.query('CREATE TABLE `shop-1_test`.t (a LONGTEXT)');
    await client.query("INSERT INTO `shop-1_test`.t SELECT REPEAT('x', 4000000)");
    const found = new Map((await fixture.engine.testDatabases(own)).map((one) => [one.name, one.sizeBytes]));
    assert.deepEqual([...found.keys()].sort(), [
      'prisma_migrate_shadow_db_x',
      'shop-1_test',
      `test_${own.database}`,
    ]);
    assert.ok((found.get('shop-1_test') ?? 0) > 4_000_000, JSON.stringify([...found]));
    for (const name of found.keys()) await client.query(`DROP DATABASE \`${name}\``);
    assert.deepEqual(await names(), []);
  });

  test('read only by its size, its tests grow no more, too', async () => {
    await client.query('CREATE DATABASE test_full');
    await client.query('CREATE TABLE test_full.t (a int)');
    await fixture.engine.restrict(own, 'read_only');
    const session = await connectMysql(fixture.engine, own, SECRET);
    await assert.rejects(session.query('INSERT INTO test_full.t VALUES (1)'), { errno: 1142 });
    await assert.rejects(session.query('CREATE DATABASE test_more'), DENIED);
    await session.query('DELETE FROM test_full.t');
    session.destroy();
    await fixture.engine.restrict(own, 'full');
    client = await connectMysql(fixture.engine, own, SECRET);
    await client.query('INSERT INTO test_full.t VALUES (1)');
    await client.query('DROP DATABASE test_full');
  });

  test('dumps of the oldest database hold them, and a load makes those that are missing', async () => {
    const elsewhere = newDatabase({ accountId: 3 });
    const younger = newDatabase();
    for (const database of [elsewhere, younger]) await fixture.engine.provision(database, SECRET);
    await client.query('CREATE TABLE own (a int)');
    await client.query('CREATE DATABASE `test_kept-1`');
    await client.query('CREATE TABLE `test_kept-1`.t (a LONGTEXT)');
    await client.query("INSERT INTO `test_kept-1`.t VALUES ('\\n-- content\\n'), ('b')");
    await client.query('CREATE VIEW `test_kept-1`.v AS SELECT COUNT(*) AS n FROM `test_kept-1`.t');
    const dumpOf = async (database: EngineDatabase) =>
      (await fixture.engine.dump(database, 'sql', { signal: STAYS })).stream;
    assert.doesNotMatch(await text(await dumpOf(younger)), /test_kept/);
    await fixture.engine.load(elsewhere, await dumpOf(own), { signal: STAYS });
    assert.deepEqual(await names(elsewhere), ['test_kept-1']);
    const session = await connectMysql(fixture.engine, elsewhere, SECRET);
    const [rows] = await session.query<RowDataPacket[]>('SELECT n FROM `test_kept-1`.v');
    assert.equal(rows[0]?.n, 2);
    await session.query('INSERT INTO `test_kept-1`.t VALUES (1)');
    await session.query('SELECT * FROM own');
    // A load keeps the existing ones.
    await fixture.engine.load(elsewhere, await dumpOf(own), { signal: STAYS });
    const [more] = await session
      .query<RowDataPacket[]>('SELECT n FROM `test_kept-1`.v')
      .catch(() =>
        connectMysql(fixture.engine, elsewhere, SECRET).then((next) =>
          next.query<RowDataPacket[]>('SELECT n FROM `test_kept-1`.v').finally(() => next.destroy()),
        ),
      );
    assert.equal(more[0]?.n, 3);
    session.destroy();
    await client.query('DROP DATABASE `test_kept-1`');
  });

  test('hundreds that are made before the bound is seen make no dump of hundreds', async () => {
    const hasty = newDatabase({ accountId: 4 });
    await fixture.engine.provision(hasty, SECRET);
    const session = await connectMysql(fixture.engine, hasty, SECRET);
    const error = await eventually(async () => {
      const count = (await names(hasty)).length;
      return session.query(`CREATE DATABASE test_hasty_${count}`).then(
        () => null,
        ({ errno }) => errno,
      );
    });
    assert.equal(error, DENIED.errno);
    const made = (await names(hasty)).length;
    assert.ok(made >= MOST, `${made}`);
    const dump = await text((await fixture.engine.dump(hasty, 'sql', { signal: STAYS })).stream);
    const held = new Set(dump.match(/test_hasty_\d+/g));
    assert.equal(held.size, MOST);
    session.destroy();
    await fixture.engine.drop(hasty.database);
  });

  test('a table that a session holds ends a dump, with the reason', async () => {
    const held = newDatabase({ accountId: 5 });
    await fixture.engine.provision(held, SECRET);
    const session = await connectMysql(fixture.engine, held, SECRET);
    await session.query('CREATE TABLE t (a int)');
    await session.query('LOCK TABLES t WRITE');
    const dump = async () => text((await fixture.engine.dump(held, 'sql', { signal: STAYS })).stream);
    await assert.rejects(dump(), /Lock wait timeout exceeded/);
    session.destroy();
    await fixture.engine.drop(held.database);
  });

  test('a server has a bound of them, and the neighbour notices nothing', async () => {
    const isRefused = async (name: string) =>
      client.query(`CREATE DATABASE ${name}`).then(
        () => false,
        (error) => error.errno === DENIED.errno,
      );
    for (let i = 0; i < MOST; i++) await client.query(`CREATE DATABASE test_many_${i}`);
    let more = 0;
    await eventually(() => isRefused(`test_more_${more++}`));
    assert.ok(await isRefused('test_last'));
    await eventually(() => isRefused(`x_shadow_${more++}`));
    const session = await connectMysql(fixture.engine, neighbour, SECRET);
    await session.query('CREATE DATABASE test_mine');
    assert.deepEqual(await names(neighbour), ['test_mine']);
    session.destroy();
    for (const name of await names()) await client.query(`DROP DATABASE ${name}`);
    await eventually(async () => !(await isRefused('test_again')));
    await client.query('DROP DATABASE test_again');
  });
});
