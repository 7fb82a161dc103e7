/** A PostgreSQL of a test's own, and the users' driver. */
import { Client } from 'pg';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import type { EngineDatabase } from '../databases/engine.ts';
import { PostgresqlEngine } from '../drivers/engine-postgresql/postgresql-engine.ts';
import { findPrograms } from '../drivers/engine-postgresql/postgresql-programs.ts';
import type { PostgresqlOptions } from '../drivers/engine-postgresql/site.ts';
import { type ServerFixture, serverFixture } from './server-fixture.ts';

/** For the `skip` of tests. */
export const noPostgresql = 'reason' in (await findPrograms(null)) ? NO_POSTGRESQL : false;

export type PostgresqlFixture = ServerFixture<PostgresqlEngine>;

export function postgresqlFixture(
  firstPort = 20_000 + (process.pid % 10_000),
  more: Pick<PostgresqlOptions, 'external' | 'tls' | 'find'> = {},
): PostgresqlFixture {
  return serverFixture('postgresql', firstPort, (options) => new PostgresqlEngine({ ...options, ...more }));
}

/** As a user's program connects. */
export async function connect(
  engine: PostgresqlEngine,
  database: EngineDatabase,
  password: string,
): Promise<Client> {
  const { uri } = await engine.endpoint(database);
  const client = new Client({ connectionString: uri(password) });
  // A session that is ended.
  client.on('error', () => {});
  await client.connect();
  return client;
}
