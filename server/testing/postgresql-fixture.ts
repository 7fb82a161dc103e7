/** A separate PostgreSQL for a test, and the users' driver. */
import { Client } from 'pg';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import type { Engine, EngineDatabase } from '../databases/engine.ts';
import {
  PostgresqlEngine,
  type PostgresqlOptions,
  postgresqlServers,
} from '../drivers/engines/postgresql/postgresql-engine.ts';
import { findPrograms } from '../drivers/engines/postgresql/postgresql-programs.ts';
import type { AccountOptions } from '../drivers/managed-server/accounts/account-kind.ts';
import type { AccountServers } from '../drivers/managed-server/accounts/account-servers.ts';
import type { ServerAddress } from '../drivers/managed-server/links/server-url.ts';
import { type ServerFixture, serverFixture } from './server-fixture.ts';

/** For the `skip` of tests. */
export const noPostgresql = 'reason' in (await findPrograms(null)) ? NO_POSTGRESQL : false;

export type PostgresqlFixture = ServerFixture<AccountServers>;

/** Our own servers, one for each account. */
export function postgresqlFixture({
  firstPort = 20_000 + (process.pid % 10_000),
  idleMs,
  ...more
}: Pick<PostgresqlOptions, 'tls' | 'find'> &
  Pick<AccountOptions, 'keepsLogs' | 'templates'> & {
    readonly firstPort?: number;
    readonly idleMs?: number;
  } = {}): PostgresqlFixture {
  const when = idleMs === undefined ? { firstPort } : { firstPort, idleMs };
  return serverFixture('postgresql', when, (options) => postgresqlServers({ ...options, ...more }));
}

/** An operator's server. */
export function externalPostgresqlFixture(external: ServerAddress): ServerFixture<PostgresqlEngine> {
  const make = (options: AccountOptions) => new PostgresqlEngine({ ...options, external });
  return serverFixture('postgresql', { firstPort: 0 }, make);
}

/** Connects like a program of a user. */
export async function connect(
  engine: Pick<Engine, 'endpoint'>,
  database: EngineDatabase,
  password: string,
): Promise<Client> {
  const { uri } = await engine.endpoint(database);
  const client = new Client({ connectionString: uri(password) });
  // A session to be ended.
  client.on('error', () => {});
  await client.connect();
  return client;
}
