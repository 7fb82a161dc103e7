/** The composition root: all parts are built here and in the files beside it, in start order. */
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { SetupLinks } from '../accounts/links/setup-links.ts';
import { type AccountsPart, accountsPart } from '../accounts/part.ts';
import { sealHash } from '../audit/chain.ts';
import { auditPart } from '../audit/part.ts';
import { announceByMail } from '../billing/credit/credit-mails.ts';
import { transferStatements } from '../billing/ledger/ledger.ts';
import { type Billing, billingPart, openBilling } from '../billing/part.ts';
import { callsPart } from '../calls/part.ts';
import type { Principal } from '../calls/principal.ts';
import { machineSource } from '../compute/machines/point-machines.ts';
import type { NetworkServices } from '../compute/private-network.ts';
import type { Config } from '../config/config.ts';
import { databaseKeeping } from '../config/database-limits.ts';
import type { EngineName } from '../databases/engine.ts';
import { DataCheck, DataFaults } from '../databases/life/data-faults.ts';
import { Egress } from '../databases/life/egress.ts';
import { databasesPart } from '../databases/part.ts';
import { continuousOf } from '../databases/points/continuous.ts';
import { ABOUT_ENGINES } from '../drivers/engines/all-engines.ts';
import { buildEngines } from '../drivers/engines/built-engines.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { damageIn } from '../drivers/metadata-sqlite/integrity.ts';
import { NodeLinks } from '../drivers/node-proxy/node-links.ts';
import { ownFrontPorts } from '../drivers/node-proxy/own-front-ports.ts';
import { spoolsIn } from '../drivers/spool-files.ts';
import type { ControlSockets } from '../http/caller.ts';
import type { ConnectionGuard } from '../http/connections/connection-guard.ts';
import { ConsoleFiles } from '../http/console-files.ts';
import { openForwarding } from '../http/forwarding/forwarding.ts';
import { OwnAddresses } from '../http/origins.ts';
import { withPackages } from '../http/packages.ts';
import { indexRoutes } from '../http/routes/index-routes.ts';
import { updatesSocket } from '../http/routes/operation-routes.ts';
import { rotateWhileAlone } from '../metadata/secrets/key-rotation.ts';
import { nodesPart } from '../nodes/part.ts';
import { Jobs } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import { closeParts, startParts } from '../platform/parts.ts';
import { ROOT } from '../platform/program-files.ts';
import { Meters } from '../platform/prometheus.ts';
import { openedPoints, type RecoveryDeps, recoveryHold } from '../recovery/part.ts';
import { s3Part } from '../s3/part.ts';
import { computeElsewhere, databasesElsewhere } from '../status/elsewhere.ts';
import { systemPart } from '../status/part.ts';
import { type StorageDeps, storagePart } from '../storage/part.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import { webhooksPart } from '../webhooks/part.ts';
import { BUILT_IN, followHost } from './catalog.ts';
import { buildCompute } from './compute.ts';
import { buildEdges, callsRoutes, withDocuments } from './edges.ts';
import { closeFoundations, type Foundations, openFoundations } from './foundations.ts';
import { buildMail } from './mail.ts';
import type { Part } from './parts.ts';
import { buildRecovery } from './recovery.ts';
import { pointOpener } from './restored-directory.ts';

/** Folder of the built console. */
const CONSOLE_FOLDER = join(ROOT, 'build/console');

export interface BuildOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with each step of the start. */
  readonly step: <T>(name: string, work: () => Promise<T>) => Promise<T>;
  /** Called once when this node of a cluster may store nothing more. */
  readonly onFenced?: () => void;
  /** See FirstStartDeps of databases. */
  readonly tellMs?: number | undefined;
  /** Name of the restore drill that this cloud is built for, never to be served; see drill-cloud.ts. */
  readonly drill?: string;
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
  /**
   * Starts the work of a server, such as monitoring machines, which operator's commands do not
   * start. Call once both ports listen; from then on it reports that it is ready.
   */
  serve(): void;
  /** This process is a node of a cluster: others continue when it stops. */
  readonly isShared: boolean;
  /** Reports that it is no longer ready. Call before the ports are closed. Never rejects. */
  leave(): Promise<void>;
  /** Resolves when no background operation is running; after `ms` at the latest. */
  drain(ms: number): Promise<void>;
  /** Number of running virtual machines. */
  countRunning(): Promise<number>;
  /** Moves an engine's data to its newest version here, while nothing runs; null: there was nothing to do. */
  upgradeEngine(name: EngineName): Promise<{ readonly from: string; readonly to: string } | null>;
  /** Parts that a restore drill tests besides the API. */
  readonly within: { readonly base: Foundations } & Pick<Domains, 'databases' | 'compute'>;
  /** Stops background work and closes the stores; the edges must be closed before. */
  close(): Promise<void>;
}

/**
 * Opens the data directory and builds the cloud. Throws StartupError, or an Error with a one-line message.
 */
export async function buildCloud(given: BuildOptions): Promise<Cloud> {
  const base = await openFoundations(given);
  try {
    return await buildOn(base, given);
  } catch (error) {
    await closeFoundations(base);
    throw error;
  }
}

async function buildOn(base: Foundations, given: BuildOptions): Promise<Cloud> {
  const clock = base.membership.clock(given.clock);
  const options = { ...given, clock };
  const { config, log } = options;
  const addresses = new OwnAddresses({ apiUrl: config.publicUrl, dataUrl: config.dataUrl });
  const domains = await buildDomains(options, { base, addresses });
  const { audit, storage, compute, databases, credits, accounts, engines, recovery } = domains;
  const answers = { maxKept: config.keptAnswers, apiKeys: accounts.apiKeys };
  const calls = await callsPart({ ...base, clock, log, ...answers });
  const sockets = [updatesSocket(base.updates, base.tickets)];
  const meters = new Meters(clock);
  const system = buildSystem(options, { domains, base, meters });
  const routesOf = () => parts.flatMap(({ routes = [] }) => routes);
  const asked = { ...calls, passwords: accounts.passwordChecks, routesOf };
  // In start order; they stop in reverse.
  const parts: Part[] = [
    ...[
      audit,
      domains.mail,
      accounts,
      storage,
      compute,
      engines,
      databases,
      recovery,
      domains.webhooks,
      credits,
    ],
    ...[{ ...calls, routes: callsRoutes(asked), sockets }, system, nodesPart({ ...base, clock })],
  ];
  const control: ControlSockets = new WeakSet();
  const edges = await edgesOf(options, { base, addresses, domains, calls, parts, meters, control });
  const dial = edges.forward?.connect.bind(edges.forward);
  parts.push(ownFrontPorts(dial, { ...base, config, clock }));
  gaugesOf(meters, { parts, base, guard: edges.guard });
  const jobs = new Jobs({ ...base, log });
  const close = async () => {
    edges.close();
    await closeParts(parts, { jobs, log });
    await closeFoundations(base);
  };
  return {
    config,
    api: edges.api,
    data: edges.data,
    control,
    addresses,
    within: { base, databases, compute },
    close,
    setupLinks: accounts.setupLinks,
    drain: (ms) => calls.operations.drain(ms),
    upgradeEngine: (name) => engines.upgrade(name),
    countRunning: () => compute.countRunning(),
    isShared: base.membership.isShared,
    leave: async () => {
      system.leave();
      await base.membership.drain().catch(() => {});
    },
    serve: () => {
      const ofHost = [compute, engines, databases, recovery];
      startParts(parts, { elsewhere: base.membership.isHost ? [] : ofHost, jobs });
    },
  };
}

interface Built {
  readonly base: Foundations;
  readonly addresses: OwnAddresses;
  readonly domains: Domains;
  readonly calls: Awaited<ReturnType<typeof callsPart>>;
  readonly parts: readonly Part[];
  readonly meters: Meters;
  readonly control: ControlSockets;
}

async function edgesOf(
  { config, clock, log }: BuildOptions,
  { base, addresses, domains, calls, parts, ...built }: Built,
) {
  const { audit, storage, compute, databases, accounts, engines } = domains;
  const [apiUrl, dataUrl] = [() => addresses.apiUrl, () => addresses.dataUrl];
  const pages = new ConsoleFiles({ folder: CONSOLE_FOLDER, dataUrl });
  const s3 = s3Part(config, { ...accounts, storage: storage.services, clock, dataUrl });
  const needsSetup = () => accounts.setupLinks.needsSetup();
  const holders = accounts.rightsHolders;
  const index = indexRoutes({ config, needsSetup, apiUrl, pages });
  const routes = [...parts.flatMap((part) => part.routes ?? []), ...s3.routes, ...index];
  return buildEdges(config, {
    ...built,
    ...calls,
    clock,
    log,
    accounts: accounts.authenticator,
    passwords: accounts.passwordChecks,
    tickets: base.tickets,
    audit: audit.trail,
    apiRoutes: withDocuments(routes, { apiUrl, library: pages.referenceLibrary, holders }),
    pages: withPackages(pages, config.publicUrl),
    dataRoutes: parts.flatMap(({ dataRoutes = [] }) => dataRoutes),
    hrana: {
      find: databases.logins.find.bind(databases.logins),
      ...engines.hrana,
      egress: databases.egress,
    },
    s3: s3.sources,
    named: compute.named,
    sockets: parts.flatMap(({ sockets = [] }) => sockets),
    addresses,
    connections: compute.connections,
    forwarding: await openForwarding({ ...base, clock, links: new NodeLinks() }),
  });
}

function gaugesOf(
  meters: Meters,
  { parts, base, guard }: { parts: readonly Part[]; base: Foundations; guard: ConnectionGuard },
): void {
  const read = () => guard.connections;
  meters.gauge('cloudlet_connections', { help: 'Open connections', type: 'gauge', read });
  base.gauges(meters);
  for (const part of parts) part.gauges?.(meters);
}

type Domains = Awaited<ReturnType<typeof buildDomains>>;

/** In dependency order. */
async function buildDomains(
  { config, clock, log, drill, tellMs }: BuildOptions,
  { base, addresses }: { base: Foundations; addresses: OwnAddresses },
) {
  const billing = await openBilling({ clock, log, base, builtIn: BUILT_IN });
  const openFolder = pointOpener(clock, base.assertSpace);
  const points = openedPoints(config.dataDir, { ...base, openFolder, files: () => recovery.pointFiles });
  const storage = await storagePart({
    config,
    clock,
    base: { ...base, assertSpace: base.assertObjectSpace },
    isHeld: recoveryHold(base, clock),
    metadataDamage: () => damageIn(config.dataDir),
    points,
    billing: billing.storageCharges,
    steady: billing.steady,
    announce: eventStatements,
    ...linksBy(() => accounts),
    addresses,
  });
  const [apiUrl, dataUrl] = [() => addresses.apiUrl, () => addresses.dataUrl];
  const options = { config, clock, log, base, drill, points };
  const mailUrl = () => config.publicUrl || addresses.listening.apiUrl;
  const mail = buildMail({ ...options, mailUrl });
  const services = servicesOf(() => databases.privately);
  const ofVms = { urls: addresses, billing: billing.vmCharges, isCurrent: isCurrentBy(() => accounts) };
  const compute = await buildCompute({ ...options, ...ofVms, services });
  const faults = new DataFaults(base.alarms);
  const egress = new Egress({ changes: billing.changes, billing: billing.databaseCharges });
  const engines = await buildEngines({ ...options, ...base, faults, dataUrl, egress });
  const databases = await databasesPart({
    ...base,
    ...databaseKeeping(config),
    clock,
    faults,
    egress,
    announce: eventStatements,
    isHere: base.membership.isHost,
    sealer: base.keys,
    tunnels: compute.tunnels,
    billing: billing.databaseCharges,
    engines: engines.list,
    abouts: ABOUT_ENGINES,
    kept: await openKept(config, base),
    pointFiles: points,
    continuous: continuousOf(config, base.alarms, () => recovery.logArchive),
    tellMs,
    onError: (id, what, error) => log.error({ id, err: error }, what),
  });
  storage.scrubber.join(new DataCheck({ source: databases.pointSource, reads: base.metadata, faults }));
  const sources = [machineSource(compute.hypervisor.copies), databases.pointSource];
  const resources = { bucket: storage.resources, database: databases.resources, machine: compute.resources };
  const ofPoints = { ...options, opened: points, chainHash: chainHashOf(billing, base) };
  const createAccount: RecoveryDeps['createAccount'] = (...of) => accounts.administration.create(...of);
  const recovery = buildRecovery({ ...ofPoints, sources, resources, createAccount });
  const credits = billingPart(billing, [compute.accountStops, databases.accountStops], {
    graceMs: config.creditGraceSeconds * 1000,
    announce: announceByMail(eventStatements, mail.outbox, mailUrl),
    changeAccount: (...of) => accounts.accountChanges.apply(...of),
  });
  const size = { diskBytes: base.diskSpace.usableBytes, memoryMb: compute.hypervisor.memoryForGuestsMb() };
  await followHost(log, credits.plans, size);
  const audit = auditPart({ ...base, clock });
  const webhooks = await webhooksPart({ clock, log, base, announceBy: audit.announceBy });
  const exported = [storage, databases, compute, credits, webhooks, audit].map((domain) => domain.exported);
  const accounts = await accountsPart({
    ...options,
    transfer: transferStatements,
    announce: eventStatements,
    base: { ...base, audit: audit.trail },
    outbox: mail.outbox,
    mailUrl,
    apiUrl,
    dataUrl,
    credits: credits.forAccounts,
    exports: { sources: exported, openSpool: spoolsIn(config.dataDir, base.assertSpace) },
  });
  return { audit, storage, engines, compute, databases, credits, accounts, mail, webhooks, recovery };
}

/** Hashes of the records that each drill compares a point's chains with. */
function chainHashOf({ transferHash }: Billing, { metadata }: Foundations): RecoveryDeps['chainHash'] {
  return ({ chain, number }) => (chain === 'ledger' ? transferHash(number) : sealHash(metadata, number));
}

function openKept({ dataDir }: Config, { assertSpace }: Foundations) {
  return KeptDumpFiles.open({ directory: join(dataDir, 'databases', 'kept'), assertSpace });
}

/** API keys and passwords that links to objects depend on. Accounts are created after storage. */
function linksBy(accounts: () => AccountsPart): Pick<StorageDeps, 'linkKeys' | 'sharePasswords'> {
  const [keys, passwords] = [() => accounts().linkKeys, () => accounts().sharePasswords];
  return {
    linkKeys: { currentId: (of) => keys().currentId(of), holderOf: (keyId) => keys().holderOf(keyId) },
    sharePasswords: { hash: (...of) => passwords().hash(...of), check: (...of) => passwords().check(...of) },
  };
}

/** Accounts are built after machines, and used once both run. */
function isCurrentBy(accounts: () => Pick<AccountsPart, 'authenticator'>) {
  return (principal: Principal) => accounts().authenticator.isCurrent(principal);
}

/** Databases are built after machines, and used once both run. */
function servicesOf(databases: () => NetworkServices): NetworkServices {
  return {
    find: (...of) => databases().find(...of),
    dial: (request) => databases().dial(request),
    uri: (...of) => databases().uri(...of),
  };
}

function buildSystem(
  { clock, log }: BuildOptions,
  { domains, base, meters }: { domains: Domains; base: Foundations; meters: Meters },
) {
  const { storage, compute, databases, recovery } = domains;
  const { hypervisor } = compute;
  const { membership } = base;
  const here = {
    databases: () => databases.engines.readiness(),
    compute: async () => ({ engine: hypervisor.name, ...(await hypervisor.readiness()) }),
  };
  const names = ABOUT_ENGINES.map(({ name }) => name);
  const elsewhere = {
    databases: async () => databasesElsewhere(membership, names),
    compute: async () => computeElsewhere(membership, hypervisor.name),
  };
  return systemPart({
    clock,
    meters,
    alarms: base.alarms,
    membership: base.membership,
    stores: base.engines,
    host: base.hostMetrics,
    scrub: () => storage.scrubber.status(),
    ...(membership.isHost ? here : elsewhere),
    hasMachines: compute.hasMachines,
    recovery: () => recovery.watch.read(),
    scrubber: storage.scrubber,
    rotateMasterKey: () => recovery.points.apart(() => rotateWhileAlone(base)),
    onJobError: (job, error) => log.error({ job, err: error }, 'a job failed'),
  });
}
