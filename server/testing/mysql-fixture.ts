/** A separate MariaDB for a test, and the users' driver. */
import { type Connection, createConnection } from 'mysql2/promise';
import { NO_MARIADB } from '../../scripts/installed.ts';
import type { Engine, EngineDatabase } from '../databases/engine.ts';
import { MysqlEngine, mysqlServers } from '../drivers/engines/mysql/mysql-engine.ts';
import { findPrograms } from '../drivers/engines/mysql/mysql-programs.ts';
import type { AccountOptions } from '../drivers/managed-server/accounts/account-kind.ts';
import type { AccountServers } from '../drivers/managed-server/accounts/account-servers.ts';
import type { ServerAddress } from '../drivers/managed-server/links/server-url.ts';
import { type ServerFixture, serverFixture } from './server-fixture.ts';

/** For the `skip` of tests. */
export const noMysql = 'reason' in (await findPrograms(null)) ? NO_MARIADB : false;

export type MysqlFixture = ServerFixture<AccountServers>;

/** Our own servers, one for each account. */
export function mysqlFixture({
  firstPort = 31_000 + (process.pid % 1000),
  ...more
}: Pick<AccountOptions, 'tls' | 'templates'> & { readonly firstPort?: number } = {}): MysqlFixture {
  return serverFixture('mysql', { firstPort }, (options) => mysqlServers({ ...options, ...more }));
}

/** An operator's server. */
export function externalMysqlFixture(external: ServerAddress): ServerFixture<MysqlEngine> {
  const make = (options: AccountOptions) => new MysqlEngine({ ...options, external });
  return serverFixture('mysql', { firstPort: 0 }, make);
}

/** Connects like a program of a user. */
export async function connectMysql(
  engine: Pick<Engine, 'endpoint'>,
  database: EngineDatabase,
  password: string,
): Promise<Connection> {
  const { uri } = await engine.endpoint(database);
  const connection = await createConnection(uri(password));
  // A session to be ended.
  connection.on('error', () => {});
  return connection;
}
