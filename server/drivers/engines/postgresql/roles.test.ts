/** Roles that a tenant creates on its own server. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
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
const STAYS = new AbortController().signal;

describe('roles of a tenant of PostgreSQL', { skip: noPostgresql }, () => {
  let fixture: PostgresqlFixture;
  let own: EngineDatabase;
  let client: Client;
  before(async () => {
    fixture = postgresqlFixture();
    own = newDatabase();
    await fixture.engine.provision(own, SECRET);
    // Otherwise the server would end when that one is closed.
    await fixture.engine.provision(newDatabase(), SECRET);
    client = await connect(fixture.engine, own, SECRET);
    client.on('error', () => {});
    await client.query(`
      CREATE TABLE open_to_app (a int); INSERT INTO open_to_app VALUES (1);
      CREATE TABLE closed (a int);
      CREATE ROLE app LOGIN PASSWORD '${SECRET}' CONNECTION LIMIT 3;
      GRANT CONNECT ON DATABASE ${own.database} TO app;
      GRANT SELECT ON open_to_app TO app`);
  });
  after(async () => {
    await client?.end();
    await fixture.close();
  });

  const asApp = () => connect(fixture.engine, { ...own, username: 'app' }, SECRET);

  test('one logs in, has the rights that it was given, and no others', async () => {
    const app = await asApp();
    assert.deepEqual((await app.query('SELECT a FROM open_to_app')).rows, [{ a: 1 }]);
    await assert.rejects(app.query('SELECT a FROM closed'), { code: '42501' });
    await assert.rejects(app.query("COPY open_to_app FROM PROGRAM 'id'"), { code: '42501' });
    await app.end();
  });

  test('none comes into a database that is closed, nor stays there', async () => {
    const app = await asApp();
    app.on('error', () => {});
    await fixture.engine.restrict(own, 'none');
    await assert.rejects(app.query('SELECT 1'));
    await eventually(() =>
      asApp().then(
        (session) => session.end().then(() => false),
        (error) => error.code === '28000',
      ),
    );
    await fixture.engine.restrict(own, 'full');
    const again = await eventually(() => asApp().catch(() => null));
    await again?.end();
    client = await connect(fixture.engine, own, SECRET);
  });

  test('a dump makes those that policies of rows name, so that it can be loaded anywhere', async () => {
    await client.query('ALTER TABLE closed ENABLE ROW LEVEL SECURITY; CREATE ROLE "re ader"');
    // Nor do its changes to our own roles matter.
    await client.query('ALTER ROLE cloudlet_dump NOLOGIN; REVOKE pg_read_all_data FROM cloudlet_dump');
    await client.query('ALTER ROLE cloudlet_dump RENAME TO renamed');
    await client.query('CREATE POLICY p ON closed FOR SELECT TO "re ader" USING (true)');
    const dump = await buffer((await fixture.engine.dump(own, 'sql', { signal: STAYS })).stream);
    await client.query('DROP POLICY p ON closed; DROP ROLE "re ader"');
    const to = newDatabase();
    await fixture.engine.provision(to, SECRET);
    await fixture.engine.load(to, Readable.from([dump]), { signal: STAYS });
    const { rows } = await client.query("SELECT rolcanlogin FROM pg_roles WHERE rolname = 're ader'");
    assert.deepEqual(rows, [{ rolcanlogin: false }]);
  });

  test("dumps at the same time do not get in each other's way", async () => {
    const dump = async () => buffer((await fixture.engine.dump(own, 'sql', { signal: STAYS })).stream);
    for (const one of await Promise.all(Array.from({ length: 6 }, dump))) assert.ok(one.length > 1000);
  });

  test('one that holds rows of the catalogue holds up no change of its database, nor its end', async () => {
    const held = newDatabase();
    await fixture.engine.provision(held, SECRET);
    const owner = await connect(fixture.engine, held, SECRET);
    const { database, username } = held;
    await owner.query(
      `SET ROLE NONE; CREATE ROLE holder LOGIN PASSWORD '${SECRET}' CREATEROLE IN ROLE ${database}`,
    );
    await owner.end();
    const hold = async () => {
      const holder = await connect(
        fixture.engine,
        { ...held, database: 'postgres', username: 'holder' },
        SECRET,
      );
      holder.on('error', () => {});
      await holder.query(`BEGIN; ALTER ROLE ${username} VALID UNTIL 'infinity'`);
      await holder.query(`SET ROLE ${database}; GRANT CONNECT ON DATABASE ${database} TO holder`);
      return { ended: new Promise((resolve) => holder.once('end', resolve)) };
    };
    let holder = await hold();
    await fixture.engine.rotate(held, 'bbbbbbbbbbbbbbbbbbbbbbbb');
    await holder.ended;
    holder = await hold();
    await fixture.engine.restrict(held, 'read_only');
    await holder.ended;
    holder = await hold();
    await fixture.engine.drop(database);
    await holder.ended;
    assert.ok(!(await fixture.engine.list()).includes(database));
  });

  test('one that has rights elsewhere does not keep a database from being dropped', async () => {
    const other = newDatabase();
    await fixture.engine.provision(other, SECRET);
    await client.query(`CREATE SCHEMA shared; GRANT USAGE ON SCHEMA shared TO ${other.database}`);
    await fixture.engine.drop(other.database);
    const { rows } = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [other.database]);
    assert.equal(rows.length, 1);
    await assert.rejects(connect(fixture.engine, other, SECRET));
    assert.ok(!(await fixture.engine.list()).includes(other.database));
  });
});
