/** A server of PostgreSQL that is the operator's: what is asked of it, what is left alone, what is said. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import { isAppError } from '../../platform/errors.ts';
import { eventually } from '../../testing/eventually.ts';
import { type OperatorServer, operatorPostgresql } from '../../testing/operator-postgresql.ts';
import { connect, newDatabase, noPostgresql, postgresqlHouse } from '../../testing/postgresql-house.ts';
import { serverAddress } from '../managed-server/server-url.ts';
import { unmetNeed } from './external-server-facts.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const PASSWORD = 'maker-of-databases';
const SETTING = 'CLOUDLET_POSTGRESQL_URL';
const STAYS = new AbortController().signal;
const unavailable = (error: unknown) => isAppError(error, 'engine_unavailable');

describe("the operator's PostgreSQL", { skip: noPostgresql }, () => {
  let server: OperatorServer;
  before(async () => {
    server = await operatorPostgresql();
    await server.run(`CREATE ROLE maker LOGIN CREATEDB CREATEROLE PASSWORD '${PASSWORD}'`);
    await server.run(`CREATE ROLE weak LOGIN PASSWORD '${PASSWORD}'`);
  });
  after(() => server.close());

  /** A cloud that uses it, in the name of that user. */
  async function cloud(t: { after(work: () => Promise<void>): void }, user = 'maker', password = PASSWORD) {
    const external = serverAddress(SETTING, server.url(user, password), 5432);
    const house = postgresqlHouse(0, { external });
    t.after(() => house.close());
    return house;
  }

  test('it is said whose it is and what cannot be had; drivers connect to it itself', async (t) => {
    const { engine, folder } = await cloud(t);
    const { available, source, version, reason } = await engine.readiness();
    assert.deepEqual([available, source], [true, 'external']);
    assert.match(`${version}`, /^\d+\.\d+$/);
    assert.match(`${reason}`, /not bounded.*no checksums.*can also connect to postgres, template1/);
    const { host, port, tls, uri } = await engine.endpoint(newDatabase());
    assert.deepEqual([host, port, tls], ['127.0.0.1', server.port, false]);
    assert.match(uri('x'), new RegExp(`^postgresql://u_.*:x@127.0.0.1:${server.port}/d_`));
    assert.deepEqual([engine.pid, fs.existsSync(join(folder, 'server'))], [null, false]);
  });

  test('a superuser will do, too', async (t) => {
    await server.run(`CREATE ROLE chief LOGIN SUPERUSER PASSWORD '${PASSWORD}'`);
    const { engine } = await cloud(t, 'chief');
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const client = await connect(engine, database, SECRET);
    await client.query('CREATE TABLE t AS SELECT 1 AS a');
    const { stream } = await engine.dump(database, 'sql', STAYS);
    assert.match((await stream.toArray()).join(''), /CREATE TABLE public.t/);
    await engine.drop(database.database);
    assert.deepEqual(await engine.list(), []);
  });

  test('databases of another cloud on it are not touched', async (t) => {
    const [one, other] = [await cloud(t), await cloud(t)];
    const database = newDatabase();
    await one.engine.provision(database, SECRET);
    await other.engine.prepare();
    assert.deepEqual(await other.engine.list(), []);
    assert.deepEqual(await one.engine.list(), [database.database]);
    await assert.rejects(other.engine.provision(database, 'theirs'), unavailable);
    await (await connect(one.engine, database, SECRET)).end();
  });

  test('a tenant does not stay in databases that are not his', async (t) => {
    const { engine } = await cloud(t);
    const [own, neighbour] = [newDatabase(), newDatabase()];
    for (const database of [own, neighbour]) await engine.provision(database, SECRET);
    await assert.rejects(connect(engine, { ...own, database: neighbour.database }, SECRET), {
      code: '42501',
    });
    const stray = await connect(engine, { ...own, database: 'postgres' }, SECRET);
    await eventually(() =>
      stray.query('SELECT 1').then(
        () => false,
        () => true,
      ),
    );
  });

  test('the role by which we run statements is ours again after each', async (t) => {
    const { engine } = await cloud(t);
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const local = database.database.replace('d_', 'q_');
    const statement = `DO $$ BEGIN SET ROLE NONE; ALTER ROLE ${local} PASSWORD 'taken'; END $$`;
    const bounds = { params: [], maxRows: 10, maxBytes: 1000, timeoutMs: 5000, signal: STAYS };
    await engine.query(database, { statement, readOnly: false, ...bounds });
    await assert.rejects(connect(engine, { ...database, username: local }, 'taken'), { code: '28P01' });
  });

  test('a wrong URL, password or missing right is said with the fix, and never the password', async (t) => {
    const wrong = await cloud(t, 'maker', 'not-the-right-one');
    const weak = await cloud(t, 'weak');
    const nowhere = serverAddress(SETTING, `postgresql://u:${PASSWORD}@127.0.0.1:1/x`, 5432);
    const closed = postgresqlHouse(0, { external: nowhere });
    t.after(() => closed.close());
    const expected = [
      [wrong, /refuses the user/, /correct user and password in CLOUDLET_POSTGRESQL_URL/],
      [weak, /lacks CREATEDB and CREATEROLE/, /ALTER ROLE "weak" CREATEDB CREATEROLE/],
      [closed, /127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED/, /start it, or correct/],
    ] as const;
    for (const [house, why, fix] of expected) {
      const readiness = await house.engine.readiness();
      assert.deepEqual([readiness.available, readiness.source], [false, 'external']);
      assert.match(`${readiness.reason}`, why);
      assert.match(`${readiness.fix}`, fix);
      await assert.rejects(house.engine.provision(newDatabase(), SECRET), unavailable);
      const said = JSON.stringify([readiness, [...house.alarms]]);
      assert.ok(!said.includes(PASSWORD) && !said.includes('not-the-right-one'), said);
    }
  });

  test('one that goes is said to be gone, and is used again when it is back', async (t) => {
    const { engine, alarms } = await cloud(t);
    await engine.prepare();
    await server.stop();
    await eventually(async () => !(await engine.readiness()).available);
    assert.ok(alarms.has('postgresql_unavailable'));
    await assert.rejects(engine.list(), unavailable);
    await server.start();
    await eventually(async () => (await engine.readiness()).available);
    assert.deepEqual([...alarms], []);
    assert.deepEqual(await engine.list(), []);
  });

  test('one that is too old, a standby or of another encoding will not do', () => {
    const address = serverAddress(SETTING, 'postgresql://u:p@db.example/x', 5432);
    const good = {
      version: '15.1',
      major: 15,
      isSuperuser: false,
      mayMakeDatabases: true,
      mayMakeRoles: true,
      isStandby: false,
      encoding: 'UTF8',
      limits: [],
      extensions: [],
    };
    assert.equal(unmetNeed(good, address), null);
    assert.deepEqual([address.tls, address.port], [true, 5432]);
    for (const bad of [{ major: 14 }, { isStandby: true }, { encoding: 'LATIN1' }])
      assert.ok(unavailable(unmetNeed({ ...good, ...bad }, address)));
  });

  test('a session goes on while Cloudlet is stopped', async (t) => {
    const { engine } = await cloud(t);
    const database = newDatabase();
    await engine.provision(database, SECRET);
    const client = new Client((await engine.endpoint(database)).uri(SECRET));
    await client.connect();
    await engine.close();
    assert.deepEqual((await client.query('SELECT 1 AS a')).rows, [{ a: 1 }]);
    await client.end();
  });
});
