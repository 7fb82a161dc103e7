/** Databases have exactly as many connections as the API promises. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
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
import { pidOf } from '../../../testing/server-fixture.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const TOO_MANY = { code: '53300' };
const limits = { connections: 80, statementMs: 10_000 };

describe('connections to PostgreSQL', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  const clients: Client[] = [];
  beforeEach(() => {
    fixture = postgresqlFixture();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.end().catch(() => {});
    await fixture.close();
  });
  const open = async (database: EngineDatabase, count: number) => {
    for (let i = 0; i < count; i++) clients.push(await connect(fixture.reopened(), database, SECRET));
  };
  const refuses = (database: EngineDatabase) =>
    assert.rejects(
      connect(fixture.reopened(), database, SECRET).then((client) => client.end()),
      TOO_MANY,
    );

  test('a database has its own number, and all of an account that of their server', async () => {
    const [one, other, last] = [newDatabase({ limits }), newDatabase({ limits }), newDatabase({ limits })];
    for (const database of [one, other, last]) await fixture.engine.provision(database, SECRET);
    await open(one, 80);
    await refuses(one);
    // The server notices within a second or two.
    const isFull = () =>
      connect(fixture.engine, last, SECRET).then(
        (client) => client.end().then(() => false),
        () => true,
      );
    await eventually(async () => {
      const { rows } = await (clients[0] as Client).query(
        'SELECT rolconnlimit AS most FROM pg_roles WHERE rolname = $1',
        [other.username],
      );
      return rows[0].most === 20;
    });
    await open(other, 20);
    await refuses(other);
    await eventually(isFull);
    // Our administrator is admitted all the same, and free connections are assigned again.
    assert.ok((await fixture.engine.measure(one)).connections !== null);
    for (const client of clients.splice(0, 60)) await client.end();
    await eventually(async () => !(await isFull()));
    await open(last, 1);
  });

  test('roles of a tenant’s own making have no more than the server has', async () => {
    const database = newDatabase({ limits });
    await fixture.engine.provision(database, SECRET);
    await open(database, 10);
    const [owner] = clients as [Client];
    await owner.query(`CREATE ROLE more LOGIN PASSWORD '${SECRET}' CONNECTION LIMIT -1`);
    await owner.query('CREATE DATABASE test_more');
    const asMore = { ...database, database: 'test_more', username: 'more' };
    await open(asMore, 110);
    await eventually(async () => {
      const { rows } = await owner.query(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE usename = 'more' OR usename = session_user",
      );
      return rows[0].n === 100;
    });
    // The oldest ones remain, and those of the database itself.
    for (const client of clients.slice(0, 100)) await client.query('SELECT 1');
  });

  test('a changed number reaches a database that exists, without a restart of its server', async () => {
    const before = newDatabase({ limits: { ...limits, connections: 2 } });
    await fixture.engine.provision(before, SECRET);
    await open(before, 2);
    await refuses(before);
    const pid = pidOf(fixture.engine);
    const after = { ...before, limits: { ...limits, connections: 4, statementMs: 5000 } };
    assert.deepEqual(
      [await fixture.engine.isLimited(before), await fixture.engine.isLimited(after)],
      [true, false],
    );
    await fixture.engine.restrict(after, 'full');
    assert.equal(await fixture.engine.isLimited(after), true);
    await open(after, 2);
    await refuses(after);
    const timeout = await clients.at(-1)?.query('SHOW statement_timeout');
    assert.equal(timeout?.rows[0].statement_timeout, '5s');
    assert.equal(pidOf(fixture.engine), pid);
  });

  test('a tenant that raises its own number loses it within seconds', async () => {
    const database = newDatabase({ limits: { ...limits, connections: 3 } });
    await fixture.engine.provision(database, SECRET);
    await open(database, 1);
    const [client] = clients as [Client];
    await client.query(`SET ROLE NONE; ALTER ROLE ${database.username} CONNECTION LIMIT -1`);
    await eventually(async () => {
      const { rows } = await client.query(
        'SELECT rolconnlimit AS most FROM pg_roles WHERE rolname = current_user',
      );
      return rows[0].most === 3;
    });
    await open(database, 2);
    await refuses(database);
  });
});
