/** PostgreSQL as an engine, through the users' driver. */
import { test } from 'node:test';
import { type EngineHouse, testEngine } from '../../testing/engine.conformance.ts';
import { eventually } from '../../testing/eventually.ts';
import { noPostgresql, postgresqlHouse } from '../../testing/postgresql-house.ts';
import { postgresqlEngineHouse } from '../../testing/postgresql-notes.ts';

async function open(): Promise<EngineHouse> {
  const { engine, close } = postgresqlHouse();
  const crash = async () => {
    process.kill(await eventually(() => engine.pid), 'SIGKILL');
  };
  return postgresqlEngineHouse({ engine, crash, close });
}

if (noPostgresql === false) testEngine('postgresql', open);
else test('PostgreSQL as Engine', { skip: noPostgresql }, () => {});
