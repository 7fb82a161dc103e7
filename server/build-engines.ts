/** The part of the composition root that makes the engines of databases. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from './config/config.ts';
import type { EngineDatabase } from './databases/engine.ts';
import { MongodbEngine } from './drivers/engine-mongodb/mongodb-engine.ts';
import { MYSQL_USERS, MysqlEngine } from './drivers/engine-mysql/mysql-engine.ts';
import { externalPostgresql } from './drivers/engine-postgresql/external-server-facts.ts';
import { PostgresqlEngine, USERS } from './drivers/engine-postgresql/postgresql-engine.ts';
import { exchangeHrana, type HranaCall } from './drivers/engine-sqlite/hrana-exchange.ts';
import { SqliteEngine } from './drivers/engine-sqlite/sqlite-engine.ts';
import { HostProcesses } from './drivers/host-process/host-processes.ts';
import { ServerTls } from './drivers/managed-server/server-tls.ts';
import type { Alarms } from './platform/alarms.ts';
import type { Clock } from './platform/clock.ts';
import type { DiskRoom } from './platform/disk-room.ts';
import { whyNoOtherUsers } from './platform/other-users.ts';

export interface EnginesOptions {
  readonly config: Pick<
    Config,
    | 'dataDir'
    | 'databaseUidBase'
    | 'databaseProcesses'
    | 'databaseIdleSeconds'
    | 'postgresqlUrl'
    | 'postgresqlPort'
    | 'mysqlPort'
    | 'mongodbPort'
    | 'databaseHost'
    | 'tlsCert'
    | 'tlsKey'
  >;
  readonly clock: Clock;
  readonly log: Logger;
  readonly alarms: Alarms;
  readonly room: Pick<DiskRoom, 'isLow'>;
  /** Of the data origin; known once it listens. */
  readonly dataUrl: () => string;
}

/** As many as there are machines; databases take them from the first on, servers from the last. */
const UIDS = 2 ** 20;

export type DatabaseEngines = ReturnType<typeof buildEngines>;

/** No database is opened until it is used. */
export function buildEngines({ config, clock, log, alarms, room, dataUrl }: EnginesOptions) {
  const range = { first: config.databaseUidBase, count: UIDS };
  const users = whyNoOtherUsers(range, config.dataDir) === null ? range : null;
  const children = {
    clock,
    log,
    ground: config.dataDir,
    users,
    maxChildren: config.databaseProcesses,
    idleMs: config.databaseIdleSeconds * 1000,
  };
  const atSqlite = join(config.dataDir, 'databases', 'sqlite');
  const sqlite = new SqliteEngine({ ...children, folder: atSqlite, address: dataUrl });
  const atMongodb = join(config.dataDir, 'databases', 'mongodb');
  const tls = tlsOf(config, clock);
  const firstPort = config.mongodbPort;
  const mongodb = new MongodbEngine({ ...children, folder: atMongodb, firstPort, tls, alarms });
  const processes = new HostProcesses({
    clock,
    group: 'cloudlet-servers',
    hasUsers: users !== null,
    ground: config.dataDir,
  });
  const postgresql = new PostgresqlEngine({
    folder: join(config.dataDir, 'databases', 'postgresql'),
    processes,
    uidBase: users === null ? null : users.first + users.count - USERS,
    firstPort: config.postgresqlPort,
    external: externalPostgresql(config),
    tls,
    alarms,
    isDiskLow: () => room.isLow(),
    notice: (text) => log.warn(text),
  });
  const mysql = new MysqlEngine({
    folder: join(config.dataDir, 'databases', 'mysql'),
    processes,
    uidBase: users === null ? null : users.first + users.count - USERS - MYSQL_USERS,
    firstPort: config.mysqlPort,
    tls,
    alarms,
    isDiskLow: () => room.isLow(),
    notice: (text) => log.warn(text),
  });
  const exchange = (database: EngineDatabase, call: HranaCall) => exchangeHrana(sqlite, database, call);
  return { sqlite, postgresql, mysql, mongodb, exchange };
}

/** For servers that users on other hosts reach; null: there are none. */
function tlsOf(config: EnginesOptions['config'], clock: Clock): ServerTls | null {
  const { dataDir, databaseHost: host, tlsCert: certFile, tlsKey: keyFile } = config;
  if (host === '') return null;
  return new ServerTls({ host, certFile, keyFile, folder: join(dataDir, 'databases', 'tls'), clock });
}

/** Has the servers up that there are; only a server does. */
export function startEngines({ postgresql, mysql, mongodb }: DatabaseEngines): void {
  postgresql.wake();
  mysql.wake();
  mongodb.wake();
}
