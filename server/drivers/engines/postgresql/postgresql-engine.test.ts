/** PostgreSQL as an engine, through the users' driver. */
import { test } from 'node:test';
import { type EngineFixture, testEngine } from '../../../testing/engine.conformance.ts';
import { eventually } from '../../../testing/eventually.ts';
import { noPostgresql, postgresqlFixture } from '../../../testing/postgresql-fixture.ts';
import { postgresqlEngineFixture } from '../../../testing/postgresql-notes.ts';
import { pidOf } from '../../../testing/server-fixture.ts';

async function open(): Promise<EngineFixture> {
  const { engine, close } = postgresqlFixture();
  const crash = async () => {
    process.kill(await eventually(() => pidOf(engine)), 'SIGKILL');
  };
  return postgresqlEngineFixture({ engine, crash, close });
}

if (noPostgresql === false) testEngine('postgresql', open);
else test('PostgreSQL as Engine', { skip: noPostgresql }, () => {});
