/** The operator's own PostgreSQL server: rules for every such server, and rules for this one only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../testing/eventually.ts';
import { SECRET, testExternalServer } from '../../../testing/external-server.conformance.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { operatorPostgresql } from '../../../testing/operator-postgresql.ts';
import { connect, externalPostgresqlFixture, noPostgresql } from '../../../testing/postgresql-fixture.ts';
import { serverAddress } from '../../managed-server/links/server-url.ts';
import { unmetNeed } from './external-server-facts.ts';
import { PostgresqlEngine } from './postgresql-engine.ts';

const SETTING = 'CLOUDLET_POSTGRESQL_URL';

async function session(...[engine, database, password]: Parameters<typeof connect>) {
  const client = await connect(engine, database, password);
  const ask = async (sql: string) => (await client.query(sql)).rows;
  return { ask, end: () => client.end() };
}

function onEngine(engine: unknown): PostgresqlEngine {
  assert.ok(engine instanceof PostgresqlEngine);
  return engine;
}

if (noPostgresql !== false) test("the operator's PostgreSQL", { skip: noPostgresql }, () => {});
else
  testExternalServer(
    {
      name: 'PostgreSQL',
      setting: SETTING,
      defaultPort: 5432,
      server: () => operatorPostgresql(),
      users: (password) => [
        `CREATE ROLE maker LOGIN CREATEDB CREATEROLE PASSWORD '${password}'`,
        `CREATE ROLE chief LOGIN SUPERUSER PASSWORD '${password}'`,
        `CREATE ROLE weak LOGIN PASSWORD '${password}'`,
      ],
      fixture: (external) => externalPostgresqlFixture(external),
      connect: (engine, database, password) => session(onEngine(engine), database, password),
      version: /^\d+\.\d+$/,
      limits: /does not limit.*no checksums.*can also connect to postgres, template1/,
      uri: /^postgresql:\/\/u_.*:x@127.0.0.1:\d+\/d_/,
      tableInDump: /CREATE TABLE public.t/,
      lacks: [/lacks CREATEDB and CREATEROLE/, /ALTER ROLE "weak" CREATEDB CREATEROLE/],
      lift: ['SET statement_timeout = 0'],
      sleep: 'SELECT pg_sleep(1000)',
      ours: ({ database }) => {
        const user = database.replace('d_', 'q_');
        return {
          user,
          take: `DO $$ BEGIN SET ROLE NONE; ALTER ROLE ${user} PASSWORD 'taken'; END $$`,
        };
      },
    },
    ({ cloud }) => {
      test('a tenant does not stay in databases that are not his', async (t) => {
        const engine = onEngine(cloud(t).engine);
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
    },
  );

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
    assert.equal(unmetNeed({ ...good, ...bad }, address)?.code, 'engine_unavailable');
});
