/** The composition root: every part is made here and in the files beside, in start order. */
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { SetupLinks } from '../accounts/setup-links.ts';
import { Idempotency } from '../calls/idempotency.ts';
import { IdempotencyStore } from '../calls/idempotency-store.ts';
import { Operations } from '../calls/operations.ts';
import { OperationsStore } from '../calls/operations-store.ts';
import type { Principal } from '../calls/principal.ts';
import { consoleSocket } from '../compute/console/console-routes.ts';
import { machineSource } from '../compute/machines/point-machines.ts';
import type { Config } from '../config/config.ts';
import { DataCheck } from '../databases/data-check.ts';
import { DataFaults } from '../databases/data-faults.ts';
import { Egress } from '../databases/egress.ts';
import type { ConnectionGuard } from '../http/connection-guard.ts';
import { ConsoleFiles } from '../http/console-files.ts';
import type { ControlSockets } from '../http/credentials.ts';
import { type Addresses, OwnAddresses } from '../http/own-addresses.ts';
import { updatesSocket } from '../http/update-routes.ts';
import { rotateMasterKey } from '../metadata/key-rotation.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { Jobs } from '../platform/jobs.ts';
import { Meters } from '../platform/prometheus.ts';
import { VERSION } from '../platform/version.ts';
import { gaugeLoopDelay } from '../status/event-loop-delay.ts';
import { Status } from '../status/status.ts';
import { cdnRoutes } from '../storage/content-routes.ts';
import { Links } from '../storage/links.ts';
import { buildBilling, buildCredits, buildReports, followHost, startBilling } from './billing.ts';
import { buildCompute, closeCompute, startCompute } from './compute.ts';
import {
  buildDatabases,
  buildEngines,
  closeDatabases,
  startDatabases,
  startEngines,
  upgradePostgresql,
} from './databases.ts';
import {
  type AccountParts,
  buildAccounts,
  buildStorage,
  buildWebhooks,
  flushAll,
  startJobs,
  startWebhooks,
} from './domains.ts';
import { apiRoutes, buildEdges } from './edges.ts';
import { closeFoundations, type Foundations, openFoundations } from './foundations.ts';
import { buildRecovery, closeRecovery, recoveryHold, startRecovery } from './recovery.ts';

/** What the set-up builds from console/. */
const CONSOLE_FOLDER = join(import.meta.dirname, '../../build/console');

export interface BuildOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of each step of the start. */
  readonly step: <T>(name: string, work: () => Promise<T>) => Promise<T>;
}

export interface Cloud {
  readonly config: Config;
  /** API and console. */
  readonly api: FastifyInstance;
  /** Users' files by signed link. */
  readonly data: FastifyInstance;
  readonly control: ControlSockets;
  readonly setupLinks: SetupLinks;
  readonly addresses: OwnAddresses;
  /** Begins what only a server does, and no operator's command: looking after machines. */
  serve(): void;
  /** Resolves when no call that was answered before its end still runs; after `ms` at the latest. */
  drain(ms: number): Promise<void>;
  /** Virtual machines that run now. */
  countRunning(): Promise<number>;
  /** See PostgresqlEngine.upgrade(). */
  upgradePostgresql(): Promise<{ readonly from: string; readonly to: string } | null>;
  /** Ends background work and closes the stores; the edges are closed before. */
  close(): Promise<void>;
}

/**
 * Opens the data directory and puts the cloud together. Throws StartupError, or an Error of one clear line.
 */
export async function buildCloud(options: BuildOptions): Promise<Cloud> {
  const { config, clock, log } = options;
  const base = await openFoundations(options);
  const meters = new Meters();
  const jobs = new Jobs(log);
  const addresses = new OwnAddresses({ apiUrl: config.publicUrl, dataUrl: config.dataUrl });
  const parts = await buildDomains(options, { base, meters, addresses });
  const { billing, storage, compute, databases, credits, accounts, webhooks, recovery } = parts;
  const answers = { clock, log, apiKeys: accounts.apiKeys, maxKept: config.keptAnswers };
  const idempotency = buildIdempotency(base, answers);
  const operations = buildOperations(base, answers);
  const pages = new ConsoleFiles({ folder: CONSOLE_FOLDER, dataUrl: () => addresses.dataUrl });
  const routes = routesOf(options, { parts, base, meters, operations, addresses, pages });
  const control: ControlSockets = new WeakSet();
  const edges = buildEdges(config, {
    clock,
    log,
    meters,
    accounts: accounts.authenticator,
    control,
    idempotency,
    operations,
    apiRoutes: routes,
    pages,
    dataRoutes: cdnRoutes({ ...storage, apiUrl: () => addresses.apiUrl }),
    hrana: {
      find: databases.logins.find.bind(databases.logins),
      exchange: parts.engines.exchange,
      egress: databases.egress,
    },
    sockets: [consoleSocket(compute.routes), updatesSocket(base.updates)],
    addresses,
    connections: compute.descriptors.connections,
  });
  gaugeHealth(meters, { guard: edges.guard, alarms: base.alarms });
  const loopDelay = gaugeLoopDelay(meters);
  await startJobs(jobs, { config, clock, storage, accounts, idempotency, operations });
  const close = async () => {
    edges.guard.close();
    storage.sweeper.stop();
    storage.scrubber.stop();
    webhooks.sweeper.stop();
    await jobs.stop();
    await credits.creditStates.whenIdle();
    await billing.checks.close();
    await webhooks.dispatcher.close();
    await closeRecovery(recovery);
    await closeDatabases(databases);
    await parts.engines.doors.close();
    await closeCompute(compute);
    loopDelay.stop();
    await flushAll(log, [
      storage.egress,
      databases.egress,
      storage.accessTimes,
      accounts.authenticator,
      billing,
    ]);
    await closeFoundations(base);
  };
  return {
    config,
    api: edges.api,
    data: edges.data,
    control,
    addresses,
    close,
    setupLinks: accounts.setupLinks,
    drain: (ms) => operations.drain(ms),
    upgradePostgresql: () => upgradePostgresql(parts.engines),
    countRunning: () => compute.countRunning(),
    serve: () => startDomains(options, parts, jobs),
  };
}

function startDomains({ config, log }: BuildOptions, parts: Domains, jobs: Jobs): void {
  const { billing, compute, credits, databases, engines, recovery, webhooks } = parts;
  startCompute(compute, jobs, config.sweepGraceSeconds * 1000);
  startRecovery(recovery, jobs, log);
  startEngines(engines);
  startDatabases(databases, jobs);
  startWebhooks(webhooks, jobs);
  startBilling(billing, credits, jobs);
}

type Domains = Awaited<ReturnType<typeof buildDomains>>;

/** In the order in which they need each other. */
async function buildDomains(
  { config, clock, log }: BuildOptions,
  { base, meters, addresses }: { base: Foundations; meters: Meters; addresses: Addresses },
) {
  const billing = await buildBilling({ clock, log, base });
  const isHeld = recoveryHold(base, clock);
  const storage = buildStorage({ config, clock, base, billing: billing.storageCharges, isHeld });
  const compute = await buildCompute({ config, clock, log, base, meters, billing: billing.vmCharges });
  const faults = new DataFaults(base.alarms);
  const egress = new Egress({ changes: billing.changes, billing: billing.databaseCharges });
  const engines = buildEngines({
    faults,
    config,
    clock,
    log,
    alarms: base.alarms,
    room: base.room,
    dataUrl: () => addresses.dataUrl,
    egress,
  });
  const databases = await buildDatabases({
    config,
    clock,
    log,
    base,
    meters,
    billing: billing.databaseCharges,
    faults,
    egress,
    engines: [engines.sqlite, engines.postgresql, engines.mysql, engines.mongodb],
  });
  storage.scrubber.join(new DataCheck({ source: databases.pointSource, reads: base.metadata, faults }));
  const sources = [machineSource(compute.hypervisor.copies), databases.pointSource];
  const recovery = buildRecovery({ config, clock, log, base, meters, sources });
  const credits = buildCredits(
    billing,
    [compute.accountStops, databases.accountStops],
    config.creditGraceSeconds * 1000,
  );
  const size = { diskBytes: base.room.usableBytes, memoryMb: compute.hypervisor.memoryForGuestsMb() };
  await followHost(billing, credits.plans, size);
  const accounts = await buildAccounts({ config, clock, base, credits: credits.forAccounts });
  const webhooks = buildWebhooks({ clock, log, base });
  const links = new Links({ secret: base.linkSecret, clock, keys: accounts.linkKeys });
  return {
    billing,
    engines,
    storage: { ...storage, links },
    compute,
    databases,
    credits,
    accounts,
    webhooks,
    recovery,
  };
}

interface RouteParts {
  readonly parts: Domains;
  readonly base: Foundations;
  readonly meters: Meters;
  readonly operations: Operations;
  readonly addresses: Addresses;
  readonly pages: ConsoleFiles;
}

function routesOf({ config, clock, log }: BuildOptions, from: RouteParts) {
  const { parts, base, meters, operations, addresses, pages } = from;
  const { billing, storage, compute, databases, credits, accounts, webhooks, recovery } = parts;
  const status = new Status({
    clock,
    alarms: base.alarms,
    version: VERSION,
    metrics: () => base.hostMetrics.read(),
    scrub: () => storage.scrubber.status(),
    databases: () => databases.engines.readiness(),
    recovery: () => recovery.watch.read(),
    compute: async () => ({ engine: compute.hypervisor.name, ...(await compute.hypervisor.readiness()) }),
  });
  return apiRoutes({
    accounts: {
      ...accounts,
      secureCookies: config.publicUrl.startsWith('https:'),
      publicUrl: config.publicUrl,
      apiUrl: () => addresses.apiUrl,
    },
    administration: { administration: accounts.administration },
    storage: { ...storage, dataUrl: () => addresses.dataUrl },
    compute: { ...compute.routes, apiUrl: () => addresses.apiUrl },
    databases: databases.routes,
    recovery: recovery.routes,
    billing: { ...buildReports(billing), plans: credits.plans },
    webhooks,
    operations: { operations },
    index: { needsSetup: () => accounts.setupLinks.needsSetup(), apiUrl: () => addresses.apiUrl, pages },
    system: {
      status,
      meters,
      scrubber: storage.scrubber,
      rotateMasterKey: () => recovery.points.apart(() => rotateKeys(base)),
      onJobError: (job, error) => log.error({ job, err: error }, 'a job failed'),
    },
  });
}

type AnswersDeps = Pick<BuildOptions, 'clock' | 'log'> &
  Pick<AccountParts, 'apiKeys'> & { readonly maxKept: number };

function buildIdempotency(
  { metadata, keys: sealer }: Foundations,
  { clock, apiKeys, maxKept }: AnswersDeps,
): Idempotency {
  const store = new IdempotencyStore(metadata);
  const ownKeyState = (caller: Principal) => apiKeys.ownKeyState(caller);
  return new Idempotency({ metadata, store, sealer, clock, maxKept, ownKeyState });
}

function buildOperations(
  { metadata, keys }: Foundations,
  { clock, log, apiKeys, maxKept }: AnswersDeps,
): Operations {
  return new Operations({
    metadata,
    store: new OperationsStore(metadata),
    sealer: keys,
    clock,
    maxKept,
    isOwner: (caller) => apiKeys.ownsAccount(caller),
    onLost: (operation, err) => log.error({ operation, err }, 'the outcome of an operation was not stored'),
  });
}

function gaugeHealth(meters: Meters, parts: { guard: ConnectionGuard; alarms: Alarms }): void {
  const { guard, alarms } = parts;
  meters.gauge('cloudlet_connections', {
    help: 'Open connections',
    type: 'gauge',
    read: () => guard.connections,
  });
  meters.gauge('cloudlet_alarms', {
    help: 'Active alarms',
    type: 'gauge',
    read: () => alarms.list().length,
  });
}

async function rotateKeys({ metadata, keys }: Foundations): Promise<{ key_id: string; resealed: number }> {
  const { keyId, resealed } = await rotateMasterKey({ metadata, keys });
  return { key_id: keyId, resealed };
}
