/** Makes databases: their engines, and what is kept of each. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { AccountStops } from '../databases/account-stops.ts';
import { Creation } from '../databases/creation.ts';
import type { DataFaults } from '../databases/data-faults.ts';
import type { DatabaseBilling } from '../databases/database-billing.ts';
import { DatabaseDeleter } from '../databases/database-deleter.ts';
import type { Announce } from '../databases/database-events.ts';
import { DatabaseSecrets } from '../databases/database-secrets.ts';
import { DatabaseViews } from '../databases/database-view.ts';
import { Databases } from '../databases/databases.ts';
import { Dumps } from '../databases/dumps.ts';
import type { Egress } from '../databases/egress.ts';
import type { Engine, EngineDatabase, EngineLimits } from '../databases/engine.ts';
import { Engines, watchEngines } from '../databases/engines.ts';
import type { KeptDumps } from '../databases/kept-dumps.ts';
import { Lifecycle } from '../databases/lifecycle.ts';
import { Logins } from '../databases/logins.ts';
import { Metrics } from '../databases/metrics.ts';
import { moveDatabases } from '../databases/moves.ts';
import { OwnedDatabases } from '../databases/owned-databases.ts';
import { databaseSource } from '../databases/point-dumps.ts';
import { Queries } from '../databases/queries.ts';
import { Refill } from '../databases/refill.ts';
import { DATABASE_SAMPLES, meterDatabases, Sampler } from '../databases/sampler.ts';
import { DatabaseStore } from '../databases/store.ts';
import { DatabaseSupervisor } from '../databases/supervisor.ts';
import { DatabaseTurns } from '../databases/turns.ts';
import { CHILD_MEMORY_MB } from '../drivers/engine-children/child-host.ts';
import { ChildPlaces } from '../drivers/engine-children/child-places.ts';
import { MongodbEngine, type MongodbEngineOptions } from '../drivers/engine-mongodb/mongodb-engine.ts';
import { chooseMongodb } from '../drivers/engine-mongodb/on-server/choice.ts';
import { type HostSiteOptions, hostSite } from '../drivers/engine-mongodb/on-server/host-site.ts';
import { ServerMongodb } from '../drivers/engine-mongodb/on-server/server-engine.ts';
import { operatorSite } from '../drivers/engine-mongodb/on-server/site.ts';
import { externalMysql } from '../drivers/engine-mysql/external-server-facts.ts';
import { MYSQL_USERS, MysqlEngine } from '../drivers/engine-mysql/mysql-engine.ts';
import { mysqlServers } from '../drivers/engine-mysql/mysql-servers.ts';
import { externalPostgresql } from '../drivers/engine-postgresql/external-server-facts.ts';
import { PostgresqlEngine, USERS } from '../drivers/engine-postgresql/postgresql-engine.ts';
import { postgresqlServers } from '../drivers/engine-postgresql/postgresql-servers.ts';
import type { Upgrade } from '../drivers/engine-postgresql/site.ts';
import { exchangeHrana, type HranaCall } from '../drivers/engine-sqlite/hrana-exchange.ts';
import { SqliteEngine } from '../drivers/engine-sqlite/sqlite-engine.ts';
import { HostProcesses } from '../drivers/host-process/host-processes.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { AccountServers } from '../drivers/managed-server/account-servers.ts';
import { ServerTls } from '../drivers/managed-server/server-tls.ts';
import { tableNameOf } from '../drivers/server-proxy/direct-ways.ts';
import { ServerProxy } from '../drivers/server-proxy/server-proxy.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { SamplesStore } from '../metadata/samples-store.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import type { DiskRoom } from '../platform/disk-room.ts';
import { readHostMemory } from '../platform/host-memory.ts';
import type { Jobs } from '../platform/jobs.ts';
import type { Sealer } from '../platform/master-key.ts';
import { whyNoOtherUsers } from '../platform/other-users.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { SweepGuard } from '../platform/sweep-guard.ts';
import { eventStatements } from '../webhooks/events.ts';

export interface EnginesOptions {
  readonly config: Pick<
    Config,
    | 'dataDir'
    | 'databaseUidBase'
    | 'databaseProcesses'
    | 'databaseIdleSeconds'
    | 'postgresqlUrl'
    | 'mysqlUrl'
    | 'postgresqlPort'
    | 'mysqlPort'
    | 'mongodbPort'
    | 'mongodbUrl'
    | 'mongodbServer'
    | 'databaseHost'
    | 'tlsCert'
    | 'tlsKey'
  >;
  readonly clock: Clock;
  readonly log: Logger;
  readonly alarms: Alarms;
  readonly room: Pick<DiskRoom, 'isLow' | 'headroomBytes'>;
  readonly faults: DataFaults;
  /** The data origin's URL; known once it listens. */
  readonly dataUrl: () => string;
  readonly egress: Egress;
}

/** Of the host's memory, what the processes of databases may take. */
const MEMORY_SHARE = 1 / 3;

function processesFor(memoryBytes: number): number {
  return Math.max(6, Math.min(48, Math.floor((memoryBytes * MEMORY_SHARE) / (CHILD_MEMORY_MB * 2 ** 20))));
}

/** Users of what makes data and of clients, of all engines; and servers that an account may have. */
const RESERVED_UIDS = 64;
const SERVERS_EACH = 2;

/** As many as there are machines; databases take them from the first on, servers from the last. */
const UIDS = 2 ** 20;

export type DatabaseEngines = ReturnType<typeof buildEngines>;

/** No database is opened until it is used. */
export function buildEngines(options: EnginesOptions) {
  const { config, clock, log, alarms, room, faults, dataUrl, egress } = options;
  const range = { first: config.databaseUidBase, count: UIDS };
  const users = whyNoOtherUsers(range, config.dataDir) === null ? range : null;
  const places = new ChildPlaces(config.databaseProcesses || processesFor(readHostMemory().totalBytes));
  const idleMs = config.databaseIdleSeconds * 1000;
  const children = {
    clock,
    log,
    ground: config.dataDir,
    users,
    places,
    idleMs,
    keepFreeBytes: () => room.headroomBytes(),
    onFault: (id: string, what: string | null) => faults.note(id, what),
  };
  const atSqlite = join(config.dataDir, 'databases', 'sqlite');
  const sqlite = new SqliteEngine({ ...children, folder: atSqlite, address: dataUrl });
  const tls = tlsOf(config, clock);
  const processes = new HostProcesses({
    clock,
    group: 'cloudlet-servers',
    hasUsers: users !== null,
    ground: config.dataDir,
  });
  const warn = (text: string) => log.warn(text);
  const isDiskLow = () => room.isLow();
  const wanted = (door: string) => {
    for (const engine of [postgresql, mysql]) if (engine instanceof AccountServers) engine.wanted(door);
  };
  const doors = new ServerProxy({ wanted, warn, table: tableNameOf(config.dataDir) });
  const servers = { doors, places, idleMs, isDiskLow, clock, warn };
  const last = users === null ? null : users.first + users.count - 1;
  const uidOf = (nth: number) => (accountId: number) =>
    last === null ? null : last - RESERVED_UIDS - SERVERS_EACH * accountId - nth;
  const atPostgresql = {
    folder: join(config.dataDir, 'databases', 'postgresql'),
    processes,
    uidBase: users === null ? null : users.first + users.count - USERS,
    firstPort: config.postgresqlPort,
    tls,
    alarms,
    isDiskLow,
    warn,
  };
  const external = externalPostgresql(config);
  const postgresql =
    external === null
      ? postgresqlServers({ ...atPostgresql, servers, uidOf: uidOf(0) })
      : new PostgresqlEngine({ ...atPostgresql, external });
  const atMysql = {
    ...atPostgresql,
    folder: join(config.dataDir, 'databases', 'mysql'),
    uidBase: users === null ? null : users.first + users.count - USERS - MYSQL_USERS,
    firstPort: config.mysqlPort,
  };
  const externalServer = externalMysql(config);
  const mysql =
    externalServer === null
      ? mysqlServers({ ...atMysql, servers, uidOf: uidOf(1) })
      : new MysqlEngine({ ...atMysql, external: externalServer });
  const uidBase = users === null ? null : users.first + users.count - USERS - MYSQL_USERS - 1;
  const sent = ({ databaseId }: EngineDatabase, bytes: number) => egress.count(databaseId, bytes);
  const ofMongodb = { ...children, tls: tls.isRequired ? tls : null, sent };
  const mongodb = mongodbEngine({ config, alarms, log }, ofMongodb, { processes, uidBase });
  const exchange = (database: EngineDatabase, call: HranaCall) => exchangeHrana(sqlite, database, call);
  return { sqlite, postgresql, mysql, mongodb, exchange, doors };
}

function mongodbEngine(
  { config, alarms, log }: Pick<EnginesOptions, 'config' | 'alarms' | 'log'>,
  own: Omit<MongodbEngineOptions, 'folder' | 'firstPort' | 'alarms'>,
  host: Pick<HostSiteOptions, 'processes' | 'uidBase'>,
) {
  const folder = join(config.dataDir, 'databases', 'mongodb');
  const firstPort = config.mongodbPort;
  const choice = chooseMongodb(config, folder);
  if (choice.kind === 'built-in')
    return new MongodbEngine({ ...own, folder, firstPort, alarms, whyNoServer: choice.why });
  const warn = (text: string) => log.warn(text);
  const site =
    choice.kind === 'url'
      ? operatorSite({ folder, address: choice.address, alarms })
      : hostSite({ ...host, folder, firstPort, alarms, warn });
  return new ServerMongodb({ folder, site });
}

function tlsOf(config: EnginesOptions['config'], clock: Clock): ServerTls {
  const { dataDir, databaseHost: host, tlsCert: certFile, tlsKey: keyFile } = config;
  return new ServerTls({ host, certFile, keyFile, folder: join(dataDir, 'databases', 'tls'), clock });
}

/** Brings the data of each server of PostgreSQL to the newest version here; null: none needs it. */
export async function upgradePostgresql({ postgresql }: DatabaseEngines): Promise<Upgrade | null> {
  if (postgresql instanceof PostgresqlEngine) return postgresql.upgrade();
  let done: Upgrade | null = null;
  await postgresql.each(async (engine) => {
    done = (await engine.upgrade()) ?? done;
  });
  return done;
}

/** Has the servers up that there are; only a server does. */
export function startEngines({ postgresql, mysql, mongodb }: DatabaseEngines): void {
  void postgresql.wake();
  void mysql.wake();
  mongodb.wake();
}

export interface DatabasesParts {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly billing: DatabaseBilling;
  readonly egress: Egress;
  readonly engines: readonly Engine[];
  readonly kept: KeptDumps;
  readonly limits: EngineLimits;
  /** Throws `out_of_space` when so many bytes more must not be stored. */
  readonly assertRoom: (bytes: number) => void;
  /** Largest size_limit_mb. */
  readonly maxSizeMb: number;
  /** How long the last dump of a deleted database is kept; 0: there is none. */
  readonly keepMs: number;
  /** How long the dump of one may take for a recovery point, ms. */
  readonly pointDumpMs: number;
  /** How long it may give nothing meanwhile, ms. */
  readonly pointSilenceMs: number;
  /** How long what no row knows is left alone, ms. */
  readonly orphanGraceMs: number;
  readonly announce: Announce;
  readonly sweepGuard: SweepGuard;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
}

/** Makes the parts; nothing runs by itself. */
export function assembleDatabases({ engines: list, sealer, ...given }: DatabasesParts) {
  const { metadata, clock, billing, limits, maxSizeMb, announce } = given;
  const store = new DatabaseStore(metadata);
  const changes = new Changes({ metadata });
  const engines = new Engines(list);
  const secrets = new DatabaseSecrets({ sealer });
  const turns = new DatabaseTurns();
  const owned = new OwnedDatabases(store);
  const lifecycle = new Lifecycle({ store, changes, engines, secrets, clock, limits, announce });
  const views = new DatabaseViews({ engines, billing, inEngine: (row) => lifecycle.inEngine(row) });
  const parts = { ...given, store, changes, engines, secrets, turns, owned, lifecycle, views };
  const databases = new Databases(parts);
  const creation = new Creation(parts);
  const reconcileSoon = (databaseId: string) => supervisor.reconcileSoon(databaseId);
  const refill = new Refill(parts);
  const deleter = new DatabaseDeleter({ ...parts, refill, reconcileSoon });
  const supervisor = new DatabaseSupervisor({ ...parts, creation, deleter, refill });
  const accountStops = new AccountStops({ ...parts, reconcileSoon });
  const samples = new SamplesStore(metadata, DATABASE_SAMPLES);
  const sampler = new Sampler({ ...parts, samples });
  const metrics = new Metrics({ ...parts, samples, sampler });
  const queries = new Queries(parts);
  const dumps = new Dumps(parts);
  const routes = { databases, creation, deleter, engines, limits, maxSizeMb, queries, dumps, metrics };
  const logins = new Logins({ store, lifecycle, engine: 'sqlite' });
  const pointSource = databaseSource(parts);
  const { kept } = given;
  return {
    store,
    engines,
    logins,
    lifecycle,
    turns,
    supervisor,
    accountStops,
    sampler,
    kept,
    pointSource,
    routes,
  };
}

export interface DatabasesOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly keys: Sealer;
    readonly assertRoom: (bytes: number) => void;
    readonly alarms: Alarms;
    readonly sweepGuard: SweepGuard;
  };
  readonly meters: Meters;
  readonly billing: DatabaseBilling;
  readonly egress: Egress;
  readonly engines: readonly Engine[];
  readonly faults: DataFaults;
}

export type DatabaseParts = Awaited<ReturnType<typeof buildDatabases>>;

const HOUR_MS = 3_600_000;

/** Makes the parts, and frees the names of creations that the last run was cut off in. */
export async function buildDatabases(options: DatabasesOptions) {
  const { config, clock, log, base, billing, egress, engines, meters } = options;
  const { metadata, keys: sealer, assertRoom, alarms } = base;
  const directory = join(config.dataDir, 'databases', 'kept');
  const parts = assembleDatabases({
    metadata,
    clock,
    sealer,
    billing,
    egress,
    engines,
    kept: await KeptDumpFiles.open({ directory, assertRoom }),
    limits: {
      connections: config.databaseConnections,
      statementMs: config.databaseStatementSeconds * 1000,
    },
    assertRoom,
    maxSizeMb: config.databaseSizeMb,
    keepMs: config.databaseKeepHours * HOUR_MS,
    announce: eventStatements,
    sweepGuard: base.sweepGuard,
    pointDumpMs: config.recoveryDumpMinutes * 60_000,
    pointSilenceMs: config.recoverySilenceSeconds * 1000,
    orphanGraceMs: config.sweepGraceSeconds * 1000,
    onError: (id, what, error) => log.error({ id, err: error }, what),
  });
  meterDatabases(meters, parts.sampler);
  await parts.supervisor.recover();
  const watch = () => watchEngines({ engines: parts.engines, alarms, counts: () => parts.store.counts() });
  const look = () => options.faults.look(parts);
  return { ...parts, egress, watch, look };
}

const CHECK_MS = 15_000;
const SWEEP_MS = 60_000;
const MOVE_MS = 60_000;
const SAMPLE_MS = 5000;
const FLUSH_MS = 5000;

/** Begins to bring engines in line with the rows; only a server does. */
export function startDatabases(parts: DatabaseParts, jobs: Jobs): void {
  const { supervisor, sampler, egress, watch, look } = parts;
  void supervisor.check();
  const move = () => moveDatabases(parts);
  void jobs.every('move databases to servers of their accounts', MOVE_MS, move);
  void move().catch(() => {});
  jobs.every('look after databases', CHECK_MS, () => supervisor.check());
  jobs.every('flush bytes that databases sent', FLUSH_MS, () => egress.flush());
  jobs.every('measure databases', SAMPLE_MS, () => sampler.tick());
  jobs.every('watch the engines of databases', CHECK_MS, watch);
  jobs.every('look for databases that are missing', SWEEP_MS, look);
  jobs.every('sweep databases', SWEEP_MS, () => supervisor.sweepOrphans());
}

/** Ends loads and copies under way, then the engines. */
export async function closeDatabases({ turns, engines }: DatabaseParts): Promise<void> {
  await turns.close();
  for (const engine of engines.all()) await engine.close();
}
