/** Builds the engines of databases. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../config/config.ts';
import { databaseLimits, isContinuous } from '../../config/database-limits.ts';
import type { EngineName } from '../../databases/engine.ts';
import type { DataFaults } from '../../databases/life/data-faults.ts';
import type { Egress } from '../../databases/life/egress.ts';
import type { Alarms } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';
import type { DiskSpace } from '../../platform/host/disk-space.ts';
import { readHostMemory } from '../../platform/host/host-facts.ts';
import { whyNoOtherUsers } from '../../platform/host/other-users.ts';
import { drillGroup } from '../drill-process/drill-ground.ts';
import { CHILD_MEMORY_MB } from '../engine-children/child-host.ts';
import { ChildSlots } from '../engine-children/child-slots.ts';
import { SPARES } from '../engine-children/spares/spare-child.ts';
import { SpareUsers } from '../engine-children/spares/spare-users.ts';
import type { CloudClaim } from '../host-network/cloud-claim.ts';
import { HostProcesses } from '../host-process/host-processes.ts';
import { ServerTls } from '../managed-server/links/server-tls.ts';
import { serverUsers } from '../managed-server/processes/server-users.ts';
import type { OfferedPorts } from '../offered-ports.ts';
import { NoProxy } from '../server-proxy/no-proxy.ts';
import { ServerProxy } from '../server-proxy/server-proxy.ts';
import { ABOUT_ENGINES } from './all-engines.ts';
import type { BuiltEngine, EngineTools } from './shared/engine-about.ts';

export interface EnginesOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly alarms: Alarms;
  readonly diskSpace: Pick<DiskSpace, 'isLow' | 'level' | 'headroomBytes'>;
  readonly faults: DataFaults;
  /** The data origin's URL; known once it listens. */
  readonly dataUrl: () => string;
  readonly egress: Egress;
  readonly claim: CloudClaim;
  /** Ports to publish to other nodes; undefined: there are no other nodes. */
  readonly ports: OfferedPorts | undefined;
  /** Name of the restore drill; only its cloud can reach the engines. */
  readonly drill: string | undefined;
}

/** Share of the host's memory for database processes. */
const MEMORY_SHARE = 1 / 3;

function processesFor(memoryBytes: number): number {
  return Math.max(6, Math.min(48, Math.floor((memoryBytes * MEMORY_SHARE) / (CHILD_MEMORY_MB * 2 ** 20))));
}

/**
 * Number of user ids, the same as for guests; databases use the first half, servers count down from the last.
 */
const UIDS = 2 ** 20;
/** For a restore drill, which opens one database at a time. */
const DRILL_UIDS = { offset: UIDS / 2, count: 256 };

/** For processes that start before their database is known. */
const SPARE_UIDS = { offset: DRILL_UIDS.offset + DRILL_UIDS.count, count: 4096 };

/** null: processes of databases run as our own user. */
function usersOf({ databaseUidBase: base, dataDir }: EnginesOptions['config'], isPrivate: boolean) {
  const range = isPrivate
    ? { first: base + DRILL_UIDS.offset, count: DRILL_UIDS.count }
    : { first: base, count: UIDS };
  return whyNoOtherUsers(range, dataDir) === null ? range : null;
}

/** A drill opens each database once. */
function sparesOf({ databaseUidBase: base }: EnginesOptions['config'], hasUsers: boolean) {
  const { offset, count } = SPARE_UIDS;
  return { ...SPARES, users: new SpareUsers(hasUsers ? { first: base + offset, count } : null) };
}

/** Control groups of the processes. */
function groupsOf(drill: string | undefined) {
  return drill === undefined
    ? { databases: 'cloudlet-databases', servers: 'cloudlet-servers' }
    : { databases: drillGroup(drill, 'databases'), servers: drillGroup(drill, 'servers') };
}

/** Opens no database before it is used. */
export async function buildEngines(options: EnginesOptions) {
  const { config, clock, log, alarms, diskSpace, faults, dataUrl, egress, drill, claim, ports } = options;
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
    spares: isPrivate ? undefined : sparesOf(config, users !== null),
    idleMs,
    keepFreeBytes: () => diskSpace.headroomBytes(),
    onFault: (id: string, what: string | null) => faults.note(id, what),
  };
  const tls = tlsOf(config, clock);
  const host = { clock, group: groups.servers, isPrivate, ground: config.dataDir };
  const processes = new HostProcesses({ ...host, hasUsers: users !== null });
  const warn = (text: string) => log.warn(text);
  const wanted = (listener: string) => {
    for (const each of built) each.wanted?.(listener);
  };
  const proxy = isPrivate ? new NoProxy() : new ServerProxy({ wanted, warn, claim, ports });
  const diskLevel = () => diskSpace.level();
  const connections = databaseLimits(config).serverConnections;
  const tools: EngineTools = {
    config,
    isPrivate,
    children,
    managed: {
      processes,
      tls,
      alarms,
      warn,
      isDiskLow: diskSpace.isLow.bind(diskSpace),
      keepsLogs: !isPrivate && isContinuous(config),
      servers: {
        proxy,
        slots,
        idleMs,
        clock,
        connections,
        diskLevel,
        everywhere: ports?.everywhere.bind(ports),
      },
    },
    serverUsers: serverUsers(users, isPrivate),
    dataUrl,
    ports,
    sent: ({ databaseId }, bytes) => egress.count(databaseId, bytes),
  };
  const built: BuiltEngine[] = [];
  for (const { build } of ABOUT_ENGINES) built.push(await build(tools));
  return {
    list: built.map(({ engine }) => engine),
    /** Upgrades the engine's data to the newest installed version; null: nothing to do. */
    upgrade: async (name: EngineName) => {
      const found = built.find(({ engine }) => engine.name === name);
      return (await found?.upgrade?.()) ?? null;
    },
    hrana: hranaIn(built),
    /** Starts the existing servers. */
    start: () => {
      for (const each of built) void each.wake?.();
    },
    close: () => proxy.close(),
  };
}

function hranaIn(built: readonly BuiltEngine[]) {
  const found = built.find(({ hrana }) => hrana !== undefined)?.hrana;
  if (found === undefined) throw new Error('no engine serves the drivers of libSQL');
  return found;
}

function tlsOf(config: EnginesOptions['config'], clock: Clock): ServerTls {
  const { dataDir, databaseHost: host, tlsCert: certFile, tlsKey: keyFile } = config;
  const given = { host, shownHost: config.publicDatabaseHost, certFile, keyFile };
  return new ServerTls({ ...given, folder: join(dataDir, 'databases', 'tls'), clock });
}
