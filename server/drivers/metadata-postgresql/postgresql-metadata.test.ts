import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { testMetadata } from '../../testing/metadata.conformance.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

testMetadata('PostgreSQL', async () => {
  const server = await operatorPostgresql();
  await server.run('CREATE DATABASE cloudlet');
  const url = server.url('postgres', 'of-the-operator').replace(/postgres$/, 'cloudlet');
  return {
    open: () =>
      PostgresqlMetadata.open({
        url,
        clock: systemClock,
        alarms: new Alarms(systemClock),
        onTakenOver: assert.fail,
      }),
    end: () => server.close(),
  };
});

test('a server that does not answer is named without the password, with the way out', async () => {
  const url = 'postgresql://cloudlet:hidden@127.0.0.1:1/none';
  const opening = PostgresqlMetadata.open({
    url,
    clock: systemClock,
    alarms: new Alarms(systemClock),
    onTakenOver: assert.fail,
  });
  await assert.rejects(opening, (error: Error) => {
    assert.match(
      error.message,
      /^PostgreSQL at 127\.0\.0\.1:1\/none cannot be used .*: start it, or correct /,
    );
    return !error.message.includes('hidden');
  });
});
