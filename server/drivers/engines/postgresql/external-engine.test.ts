/** The operator's own PostgreSQL server as an engine, with the users' driver. */
import { test } from 'node:test';
import { type EngineFixture, testEngine } from '../../../testing/engine.conformance.ts';
import { operatorPostgresql } from '../../../testing/operator-postgresql.ts';
import { externalPostgresqlFixture, noPostgresql } from '../../../testing/postgresql-fixture.ts';
import { postgresqlEngineFixture } from '../../../testing/postgresql-notes.ts';
import { serverAddress } from '../../managed-server/links/server-url.ts';

/** With exactly the permissions that Cloudlet asks for. */
async function open(): Promise<EngineFixture> {
  const server = await operatorPostgresql();
  await server.run("CREATE ROLE maker LOGIN CREATEDB CREATEROLE PASSWORD 'p:/@ word'");
  const address = serverAddress('CLOUDLET_POSTGRESQL_URL', server.url('maker', 'p:/@ word'), 5432);
  const { engine, close } = externalPostgresqlFixture(address);
  return postgresqlEngineFixture({
    engine,
    crash: () => server.crash(),
    close: async () => {
      await close();
      await server.close();
    },
  });
}

if (noPostgresql === false) testEngine('postgresql by URL', open);
else test("The operator's PostgreSQL as Engine", { skip: noPostgresql }, () => {});
