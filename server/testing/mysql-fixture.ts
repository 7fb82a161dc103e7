/** A MariaDB of a test's own, and the users' driver. */
import { type Connection, createConnection } from 'mysql2/promise';
import { NO_MARIADB } from '../../scripts/installed.ts';
import type { EngineDatabase } from '../databases/engine.ts';
import { MysqlEngine } from '../drivers/engine-mysql/mysql-engine.ts';
import { findPrograms } from '../drivers/engine-mysql/mysql-programs.ts';
import type { ManagedEngineOptions } from '../drivers/managed-server/server-engine.ts';
import { type ServerFixture, serverFixture } from './server-fixture.ts';

/** For the `skip` of tests. */
export const noMysql = 'reason' in (await findPrograms(null)) ? NO_MARIADB : false;

export type MysqlFixture = ServerFixture<MysqlEngine>;

export function mysqlFixture(
  firstPort = 31_000 + (process.pid % 1000),
  more: Pick<ManagedEngineOptions, 'external' | 'tls'> = {},
): MysqlFixture {
  return serverFixture('mysql', { firstPort }, (options) => new MysqlEngine({ ...options, ...more }));
}

/** As a user's program connects. */
export async function connectMysql(
  engine: MysqlEngine,
  database: EngineDatabase,
  password: string,
): Promise<Connection> {
  const { uri } = await engine.endpoint(database);
  const connection = await createConnection(uri(password));
  // A session that is ended.
  connection.on('error', () => {});
  return connection;
}
