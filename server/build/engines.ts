/** Makes the engines of databases. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { DataFaults } from '../databases/data-faults.ts';
import type { Egress } from '../databases/egress.ts';
import type { EngineDatabase } from '../databases/engine.ts';
import { drillGroup } from '../drivers/drill-process/drill-ground.ts';
import { CHILD_MEMORY_MB } from '../drivers/engine-children/child-host.ts';
import { ChildSlots } from '../drivers/engine-children/child-slots.ts';
import { MongodbEngine, type MongodbEngineOptions } from '../drivers/engines/mongodb/mongodb-engine.ts';
import { chooseMongodb } from '../drivers/engines/mongodb/on-server/choice.ts';
import type { HostDeploymentOptions } from '../drivers/engines/mongodb/on-server/host-deployment.ts';
import { externalMysql } from '../drivers/engines/mysql/external-server-facts.ts';
import { MysqlEngine, mysqlServers } from '../drivers/engines/mysql/mysql-engine.ts';
import { externalPostgresql } from '../drivers/engines/postgresql/external-server-facts.ts';
import { PostgresqlEngine, postgresqlServers } from '../drivers/engines/postgresql/postgresql-engine.ts';
import { hranaOf } from '../drivers/engines/sqlite/hrana-exchange.ts';
import { SqliteEngine } from '../drivers/engines/sqlite/sqlite-engine.ts';
import type { CloudClaim } from '../drivers/host-network/cloud-claim.ts';
import { HostProcesses } from '../drivers/host-process/host-processes.ts';
import { AccountServers } from '../drivers/managed-server/account-servers.ts';
import { ServerTls } from '../drivers/managed-server/server-tls.ts';
import { serverUsers } from '../drivers/managed-server/server-users.ts';
import { NoProxy } from '../drivers/server-proxy/no-proxy.ts';
import { ServerProxy } from '../drivers/server-proxy/server-proxy.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import type { DiskSpace } from '../platform/disk-space.ts';
import { readHostMemory } from '../platform/host-memory.ts';
import { whyNoOtherUsers } from '../platform/other-users.ts';
import { isContinuous } from './continuous.ts';

export interface EnginesOptions {
  readonly config: Pick<
    Config,
    | 'dataDir'
    | 'databaseUidBase'
    | 'databaseProcesses'
    | 'databaseIdleSeconds'
    | 'databaseConnections'
    | 'databaseServerConnections'
    | 'databaseStatementSeconds'
    | 'postgresqlUrl'
    | 'mysqlUrl'
    | 'postgresqlPort'
    | 'mysqlPort'
    | 'mongodbPort'
    | 'mongodbUrl'
    | 'mongodbServer'
    | 'databaseHost'
    | 'recoveryTarget'
    | 'continuousSeconds'
    | 'tlsCert'
    | 'tlsKey'
  >;
  readonly clock: Clock;
  readonly log: Logger;
  readonly alarms: Alarms;
  readonly diskSpace: Pick<DiskSpace, 'isLow' | 'level' | 'headroomBytes'>;
  readonly faults: DataFaults;
  /** The data origin's URL; known once it listens. */
  readonly dataUrl: () => string;
  readonly egress: Egress;
  readonly claim: CloudClaim;
  /** Name of the restore drill that they are for; nobody but its cloud reaches them. */
  readonly drill: string | undefined;
}

/** Share of the host's memory for database processes. */
const MEMORY_SHARE = 1 / 3;

function processesFor(memoryBytes: number): number {
  return Math.max(6, Math.min(48, Math.floor((memoryBytes * MEMORY_SHARE) / (CHILD_MEMORY_MB * 2 ** 20))));
}

/** Equal to the number of guests; databases take the first half, servers go down from the last. */
const UIDS = 2 ** 20;
/** For a restore drill, which opens one database at a time. */
const DRILL_UIDS = { offset: UIDS / 2, count: 256 };

/** null: processes of databases run as our own user. */
function usersOf({ databaseUidBase: base, dataDir }: EnginesOptions['config'], isPrivate: boolean) {
  const range = isPrivate
    ? { first: base + DRILL_UIDS.offset, count: DRILL_UIDS.count }
    : { first: base, count: UIDS };
  return whyNoOtherUsers(range, dataDir) === null ? range : null;
}

/** Control groups of the processes. */
function groupsOf(drill: string | undefined) {
  return drill === undefined
    ? { databases: 'cloudlet-databases', servers: 'cloudlet-servers' }
    : { databases: drillGroup(drill, 'databases'), servers: drillGroup(drill, 'servers') };
}

/** Limits of each database, and of the servers that accounts have. */
export function databaseLimits(
  config: Pick<Config, 'databaseConnections' | 'databaseServerConnections' | 'databaseStatementSeconds'>,
) {
  const { databaseConnections: connections, databaseStatementSeconds: seconds } = config;
  const serverConnections = Math.max(connections, config.databaseServerConnections);
  return { limits: { connections, statementMs: seconds * 1000 }, serverConnections };
}

/** No database is opened until it is used. */
export async function buildEngines(options: EnginesOptions) {
  const { config, clock, log, alarms, diskSpace, faults, dataUrl, egress, drill, claim } = options;
  const [isPrivate, groups] = [drill !== undefined, groupsOf(drill)];
  const users = usersOf(config, isPrivate);
  const slots = new ChildSlots(config.databaseProcesses || processesFor(readHostMemory().totalBytes));
  const idleMs = config.databaseIdleSeconds * 1000;
  const children = {
    clock,
    log,
    ground: config.dataDir,
    users: users && { ...users, count: Math.min(users.count, DRILL_UIDS.offset) },
    group: groups.databases,
    slots,
    idleMs,
    keepFreeBytes: () => diskSpace.headroomBytes(),
    onFault: (id: string, what: string | null) => faults.note(id, what),
  };
  const atSqlite = join(config.dataDir, 'databases', 'sqlite');
  const sqlite = new SqliteEngine({ ...children, folder: atSqlite, address: dataUrl });
  const tls = tlsOf(config, clock);
  const host = { clock, group: groups.servers, isPrivate, ground: config.dataDir };
  const processes = new HostProcesses({ ...host, hasUsers: users !== null });
  const warn = (text: string) => log.warn(text);
  const wanted = (listener: string) => {
    for (const engine of [postgresql, mysql]) if (engine instanceof AccountServers) engine.wanted(listener);
  };
  const proxy = isPrivate ? new NoProxy() : new ServerProxy({ wanted, warn, claim });
  const diskLevel = () => diskSpace.level();
  const connections = databaseLimits(config).serverConnections;
  const servers = { proxy, slots, idleMs, clock, connections, diskLevel };
  const { first, ofAccount } = serverUsers(users, isPrivate);
  const atPostgresql = {
    folder: join(config.dataDir, 'databases', 'postgresql'),
    processes,
    uidBase: first('postgresql'),
    firstPort: config.postgresqlPort,
    tls,
    alarms,
    isDiskLow: () => diskSpace.isLow(),
    keepsLogs: !isPrivate && isContinuous(config),
    warn,
  };
  const external = externalPostgresql(config);
  const postgresql =
    external === null
      ? postgresqlServers({ ...atPostgresql, servers, uidOf: ofAccount('postgresql') })
      : new PostgresqlEngine({ ...atPostgresql, external });
  const atMysql = {
    ...atPostgresql,
    folder: join(config.dataDir, 'databases', 'mysql'),
    uidBase: first('mysql'),
    firstPort: config.mysqlPort,
  };
  const externalServer = externalMysql(config);
  const mysql =
    externalServer === null
      ? mysqlServers({ ...atMysql, servers, uidOf: ofAccount('mysql') })
      : new MysqlEngine({ ...atMysql, external: externalServer });
  const sent = ({ databaseId }: EngineDatabase, bytes: number) => egress.count(databaseId, bytes);
  const ofMongodb = { ...children, tls, sent, isPrivate };
  const mongodb = await mongodbEngine({ config, alarms, log }, ofMongodb, {
    processes,
    uidBase: first('mongodb'),
  });
  return {
    list: [sqlite, postgresql, mysql, mongodb],
    postgresql,
    hrana: hranaOf(sqlite),
    /** Starts the existing servers. */
    start: () => {
      void postgresql.wake();
      void mysql.wake();
      mongodb.wake();
    },
    close: () => proxy.close(),
  };
}

/** The code for a server of MongoDB is loaded only where there is one: its driver is 150 modules. */
async function mongodbEngine(
  { config, alarms, log }: Pick<EnginesOptions, 'config' | 'alarms' | 'log'>,
  own: Omit<MongodbEngineOptions, 'folder' | 'firstPort' | 'alarms'>,
  host: Pick<HostDeploymentOptions, 'processes' | 'uidBase'>,
) {
  const folder = join(config.dataDir, 'databases', 'mongodb');
  const firstPort = config.mongodbPort;
  const choice = chooseMongodb(config, folder);
  if (choice.kind === 'built-in')
    return new MongodbEngine({ ...own, folder, firstPort, alarms, whyNoServer: choice.why });
  const [{ operatorDeployment }, { hostDeployment }, { ServerMongodb }] = await Promise.all([
    import('../drivers/engines/mongodb/on-server/deployment.ts'),
    import('../drivers/engines/mongodb/on-server/host-deployment.ts'),
    import('../drivers/engines/mongodb/on-server/server-engine.ts'),
  ]);
  const warn = (text: string) => log.warn(text);
  const deployment =
    choice.kind === 'url'
      ? operatorDeployment({ folder, address: choice.address, alarms })
      : hostDeployment({ ...host, folder, firstPort, alarms, warn });
  return new ServerMongodb({ folder, deployment });
}

function tlsOf(config: EnginesOptions['config'], clock: Clock): ServerTls {
  const { dataDir, databaseHost: host, tlsCert: certFile, tlsKey: keyFile } = config;
  return new ServerTls({ host, certFile, keyFile, folder: join(dataDir, 'databases', 'tls'), clock });
}
