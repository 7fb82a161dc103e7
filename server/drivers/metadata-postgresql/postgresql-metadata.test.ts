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
    open: () => PostgresqlMetadata.open({ url, clock: systemClock, alarms: new Alarms(systemClock) }),
    end: () => server.close(),
  };
});
