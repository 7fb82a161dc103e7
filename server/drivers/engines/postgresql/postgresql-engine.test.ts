/** PostgreSQL as an engine, with the users' driver. */
import { test } from 'node:test';
import { Client } from 'pg';
import { testTemplates } from '../../../testing/data-template.conformance.ts';
import { type EngineFixture, testEngine } from '../../../testing/engine.conformance.ts';
import { eventually } from '../../../testing/eventually.ts';
import { testFirstConnection } from '../../../testing/first-connection.conformance.ts';
import { noPostgresql, postgresqlFixture } from '../../../testing/postgresql-fixture.ts';
import { postgresqlEngineFixture } from '../../../testing/postgresql-notes.ts';
import { pidOf } from '../../../testing/server-fixture.ts';
import { ADMIN } from './postgresql-store.ts';

async function open(): Promise<EngineFixture> {
  const { engine, close } = postgresqlFixture();
  const crash = async () => {
    process.kill(await eventually(() => pidOf(engine)), 'SIGKILL');
  };
  return postgresqlEngineFixture({ engine, crash, close });
}

if (noPostgresql === false) {
  testEngine('postgresql', open);
  testFirstConnection('postgresql', open);
  testTemplates('postgresql', {
    admin: ADMIN,
    open: (templates) => postgresqlFixture({ templates }),
    logIn: async ({ folder, port }, user, password) => {
      const client = new Client({ host: folder, port, user, password, database: 'postgres' });
      await client.connect();
      await client.end();
    },
    refusal: /password authentication failed/,
  });
} else test('PostgreSQL as Engine', { skip: noPostgresql }, () => {});
