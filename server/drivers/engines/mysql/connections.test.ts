/** Databases have exactly as many connections as the API promises. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { Connection, RowDataPacket } from 'mysql2/promise';
import type { EngineDatabase } from '../../../databases/engine.ts';
import { eventually } from '../../../testing/eventually.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { pidOf } from '../../../testing/server-fixture.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const TOO_MANY = { errno: 1226 };
const limits = { connections: 80, statementMs: 10_000 };

describe('connections to MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  const clients: Connection[] = [];
  beforeEach(() => {
    fixture = mysqlFixture();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await fixture.close();
  });
  const open = async (database: EngineDatabase, count: number) => {
    for (let i = 0; i < count; i++) clients.push(await connectMysql(fixture.engine, database, SECRET));
  };
  const isRefused = (database: EngineDatabase) =>
    connectMysql(fixture.engine, database, SECRET).then(
      (client) => client.end().then(() => false),
      (error) => error.errno === TOO_MANY.errno,
    );

  test('a database has its own number, and all of an account that of their server', async () => {
    const [one, other] = [newDatabase({ limits }), newDatabase({ limits })];
    for (const database of [one, other]) await fixture.engine.provision(database, SECRET);
    await open(one, 80);
    assert.ok(await isRefused(one));
    await open(other, 1);
    // The server notices within a second or two.
    await eventually(async () => {
      const [rows] = await (clients.at(-1) as Connection).query<RowDataPacket[]>('SHOW GRANTS');
      return JSON.stringify(rows).includes('MAX_USER_CONNECTIONS 20');
    });
    await open(other, 19);
    assert.ok(await isRefused(other));
    assert.ok((await fixture.engine.measure(one)).connections !== null);
    for (const client of clients.splice(0, 60)) await client.end();
    await eventually(async () => !(await isRefused(other)));
  });

  test('a changed number reaches a database that exists, without a restart of its server', async () => {
    const before = newDatabase({ limits: { ...limits, connections: 2 } });
    await fixture.engine.provision(before, SECRET);
    await open(before, 2);
    assert.ok(await isRefused(before));
    const pid = pidOf(fixture.engine);
    const after = { ...before, limits: { ...limits, connections: 4 } };
    assert.deepEqual(
      [await fixture.engine.isLimited(before), await fixture.engine.isLimited(after)],
      [true, false],
    );
    await fixture.engine.restrict(after, 'full');
    assert.equal(await fixture.engine.isLimited(after), true);
    await open(after, 2);
    assert.ok(await isRefused(after));
    assert.equal(pidOf(fixture.engine), pid);
  });
});
