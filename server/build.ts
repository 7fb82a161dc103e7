/** The composition root: every part is made here, in start order. Only this file sees everything. */
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { AccessKeys } from './accounts/access-keys.ts';
import { Accounts } from './accounts/accounts.ts';
import { Administration } from './accounts/administration.ts';
import { ApiKeys } from './accounts/api-keys.ts';
import { Authenticator } from './accounts/authenticator.ts';
import { LoginThrottle } from './accounts/login-throttle.ts';
import { Passwords } from './accounts/passwords.ts';
import { Sessions } from './accounts/sessions.ts';
import { SetupLinks } from './accounts/setup-links.ts';
import { AccountStore } from './accounts/store.ts';
import { apiRoutes, dataRoutes } from './all-routes.ts';
import { Credit } from './billing/credit.ts';
import { CreditStore } from './billing/credit-store.ts';
import { transferStatements } from './billing/ledger.ts';
import { buildCompute, closeCompute, startCompute } from './build-compute.ts';
import type { Clock } from './clock.ts';
import { consoleSocket } from './compute/console-routes.ts';
import type { Config } from './config.ts';
import { FileBlobs } from './drivers/blobs-file/blobs-file.ts';
import { type DirectoryLock, lockDirectory } from './drivers/directory-lock.ts';
import { SqliteMetadata } from './drivers/metadata-sqlite/sqlite-metadata.ts';
import { ConnectionGuard } from './http/connection-guard.ts';
import type { ControlSockets } from './http/credentials.ts';
import { createEdge, type EdgeDeps } from './http/edge.ts';
import { API_HEADERS, DATA_HEADERS, HSTS } from './http/headers.ts';
import { RateLimiter } from './http/rate-limit.ts';
import { type SocketRoute, WebSockets } from './http/web-sockets.ts';
import type { Metadata } from './metadata/metadata.ts';
import { SealedColumnsStore } from './metadata/sealed-columns-store.ts';
import { AccessTimes } from './storage/access-times.ts';
import type { Blobs } from './storage/blobs.ts';
import { BlobsStore } from './storage/blobs-store.ts';
import { Buckets } from './storage/buckets.ts';
import { BucketStore } from './storage/buckets-store.ts';
import { Contents } from './storage/contents.ts';
import { Emptying } from './storage/emptying.ts';
import { HotContents } from './storage/hot-contents.ts';
import { Inspection } from './storage/inspection.ts';
import { Links } from './storage/links.ts';
import { Listing } from './storage/listing.ts';
import { Objects } from './storage/objects.ts';
import { Scrubber } from './storage/scrubber.ts';
import { ObjectStore } from './storage/store.ts';
import { Sweeper } from './storage/sweeper.ts';
import { Alarms } from './system/alarms.ts';
import { openDataDirectory } from './system/data-directory.ts';
import { DiskRoom } from './system/disk-room.ts';
import { gaugeLoopDelay } from './system/event-loop-delay.ts';
import { HostMetrics } from './system/host-metrics.ts';
import { Idempotency } from './system/idempotency.ts';
import { IdempotencyStore } from './system/idempotency-store.ts';
import { JobRuns } from './system/job-runs.ts';
import { JobRunsStore } from './system/job-runs-store.ts';
import { Jobs } from './system/jobs.ts';
import { rotateMasterKey } from './system/key-rotation.ts';
import { MasterKeys } from './system/master-key.ts';
import { Meters } from './system/meters.ts';
import { ReserveCommits } from './system/reserve-commits.ts';
import { Secrets } from './system/secrets.ts';
import { Status } from './system/status.ts';
import { assertWritable } from './system/writable.ts';
import { VERSION } from './version.ts';

export interface BuildOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of each step of the start. */
  readonly step: <T>(name: string, work: () => Promise<T>) => Promise<T>;
}

export interface Cloud {
  readonly config: Config;
  /** API and, later, console. */
  readonly api: FastifyInstance;
  /** Users' files by signed link. */
  readonly data: FastifyInstance;
  readonly control: ControlSockets;
  readonly setupLinks: SetupLinks;
  /** Where the data origin turned out to be; set once it listens. */
  readonly addresses: { dataUrl: string };
  /** Begins what only a server does, and no operator's command: looking after machines. */
  serve(): void;
  /** Ends background work and closes the stores; the edges are closed before. */
  close(): Promise<void>;
}

/** What everything stands on. */
interface Foundations {
  readonly lock: DirectoryLock;
  readonly keys: MasterKeys;
  readonly alarms: Alarms;
  readonly metadata: Metadata;
  readonly room: DiskRoom;
  readonly blobs: Blobs;
  readonly hostMetrics: HostMetrics;
  readonly linkSecret: Uint8Array;
}

/**
 * Opens the data directory and puts the cloud together. Throws StartupError, or an Error of one clear line.
 */
export async function buildCloud(options: BuildOptions): Promise<Cloud> {
  const { config, clock, log } = options;
  const base = await openFoundations(options);
  const meters = new Meters();
  const jobs = new Jobs(log);
  const accounts = await buildAccounts(options, base);
  const credit = new Credit({ store: new CreditStore(base.metadata) });
  const requireCredit = (accountId: number) => credit.require(accountId);
  const storage = buildStorage(options, base, requireCredit);
  const compute = await buildCompute({ config, clock, log, meters, metadata: base.metadata, requireCredit });
  const status = new Status({
    clock,
    alarms: base.alarms,
    version: VERSION,
    metrics: () => base.hostMetrics.read(),
    scrub: () => storage.scrubber.status(),
    compute: async () => ({ engine: compute.hypervisor.name, ...(await compute.hypervisor.readiness()) }),
  });
  const idempotency = new Idempotency({
    metadata: base.metadata,
    store: new IdempotencyStore(base.metadata),
    sealer: base.keys,
    clock,
  });
  const addresses = { dataUrl: config.dataUrl };
  const routes = apiRoutes({
    accounts: { ...accounts, secureCookies: config.publicUrl.startsWith('https:') },
    administration: { administration: accounts.administration },
    storage: { ...storage, dataUrl: () => addresses.dataUrl },
    compute: { ...compute.routes, publicUrl: config.publicUrl },
    system: {
      status,
      meters,
      scrubber: storage.scrubber,
      rotateMasterKey: () => rotateKeys(base),
      onJobError: (job, error) => log.error({ job, err: error }, 'a job failed'),
    },
  });
  const control: ControlSockets = new WeakSet();
  const common = { clock, log, meters, accounts: accounts.authenticator, idempotency, control };
  const edges = buildEdges(config, {
    ...common,
    apiRoutes: routes,
    dataRoutes: dataRoutes(storage),
    sockets: [consoleSocket({ ...compute.routes, publicUrl: config.publicUrl })],
  });
  gaugeHealth(meters, { guard: edges.guard, alarms: base.alarms });
  const loopDelay = gaugeLoopDelay(meters);
  await startJobs(jobs, { config, clock, storage, accounts, idempotency });
  const close = async () => {
    edges.guard.close();
    storage.sweeper.stop();
    storage.scrubber.stop();
    await jobs.stop();
    await closeCompute(compute);
    loopDelay.stop();
    await flushAll(storage.accessTimes, accounts.authenticator, log);
    await closeFoundations(base);
  };
  return {
    config,
    api: edges.api,
    data: edges.data,
    control,
    setupLinks: accounts.setupLinks,
    addresses,
    serve: () => startCompute(compute, jobs, config.sweepGraceSeconds * 1000),
    close,
  };
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

async function openFoundations({ config, clock, step }: BuildOptions): Promise<Foundations> {
  const alarms = new Alarms(clock);
  const dataDir = openDataDirectory(config.dataDir);
  const lock = lockDirectory(dataDir);
  try {
    const room = new DiskRoom({ clock, directory: dataDir });
    await room.start();
    const sqlite = await step('database', () => SqliteMetadata.open({ directory: dataDir, clock, alarms }));
    const metadata = new ReserveCommits(sqlite, () => room.releaseReserve());
    const sealed = await new SealedColumnsStore({ metadata }).holdsSealedValues();
    const keys = MasterKeys.open({ dataDir, mayCreate: !sealed });
    const secrets = new Secrets({ metadata, keys });
    const linkSecret = await secrets.get('links');
    const directory = join(dataDir, 'blobs');
    const blobs = await step('object store', () =>
      FileBlobs.open({ directory, threads: config.blobThreads, clock, alarms, room }),
    );
    const hostMetrics = new HostMetrics({ clock, dataDir });
    await hostMetrics.start();
    return { lock, keys, alarms, metadata, room, blobs, hostMetrics, linkSecret };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function closeFoundations(base: Foundations): Promise<void> {
  base.hostMetrics.stop();
  await base.room.stop();
  await base.blobs.close();
  await base.metadata.close();
  base.lock.release();
}

async function buildAccounts({ config, clock }: BuildOptions, { metadata, keys }: Foundations) {
  const store = new AccountStore({ reads: metadata });
  const authenticator = new Authenticator({ store, metadata, clock });
  const passwords = new Passwords();
  const throttle = new LoginThrottle({ clock, freeFailures: config.loginFailures });
  const shared = {
    store,
    metadata,
    clock,
    sealer: keys,
    cache: authenticator,
    passwords,
    throttle,
    transfer: transferStatements,
  };
  const apiKeys = new ApiKeys(shared);
  const accessKeys = new AccessKeys(shared);
  const accounts = new Accounts({ ...shared, apiKeys, signupMicro: config.signupCredits * 1_000_000 });
  const sessions = new Sessions({ ...shared, apiKeys });
  const administration = new Administration({ ...shared, accounts, apiKeys, authenticator });
  const setupLinks = new SetupLinks({ store, metadata, clock, accounts });
  if (config.adminKey !== '') await administration.ensureAdminKey(config.adminKey);
  return { accounts, apiKeys, accessKeys, sessions, administration, setupLinks, authenticator };
}

function buildStorage(
  { config, clock }: BuildOptions,
  { metadata, blobs, keys, alarms, room, linkSecret }: Foundations,
  requireCredit: (accountId: number) => Promise<void>,
) {
  const wrapKey = (dataKey: Uint8Array) => keys.seal(dataKey, 'blob-key');
  const unwrapKey = (wrapped: Uint8Array) => keys.unseal(wrapped, 'blob-key');
  const garbageGraceMs = config.sweepGraceSeconds * 1000;
  const store = new ObjectStore(metadata);
  const bucketStore = new BucketStore(metadata);
  const blobsStore = new BlobsStore(metadata);
  const shared = { metadata, store, bucketStore, blobs, clock, wrapKey, unwrapKey, requireCredit };
  const hot = new HotContents();
  const accessTimes = new AccessTimes(shared);
  const buckets = new Buckets({ ...shared, store: bucketStore });
  const assertRoom = (bytes: number) => {
    assertWritable(alarms);
    room.assertRoom(bytes);
  };
  const objects = new Objects({
    ...shared,
    hot,
    buckets,
    assertRoom,
    maxObjectBytes: config.maxObjectBytes,
    garbageGraceMs,
  });
  const runs = new JobRuns({ metadata, store: new JobRunsStore(metadata) });
  return {
    accessTimes,
    buckets,
    objects,
    contents: new Contents({ ...shared, accessTimes, hot }),
    listing: new Listing({ store, buckets, accessTimes }),
    inspection: new Inspection({ objects, store, accessTimes }),
    emptying: new Emptying({ buckets, objects, store }),
    links: new Links(linkSecret, clock),
    sweeper: new Sweeper({ metadata, store: blobsStore, blobs, clock, graceMs: garbageGraceMs }),
    scrubber: new Scrubber({ metadata, store: blobsStore, blobs, runs, alarms, clock, unwrapKey }),
  };
}

type Storage = ReturnType<typeof buildStorage>;
type AccountParts = Awaited<ReturnType<typeof buildAccounts>>;

type CommonEdgeDeps = Pick<EdgeDeps, 'clock' | 'log' | 'meters' | 'accounts' | 'idempotency' | 'control'>;

function buildEdges(
  config: Config,
  deps: CommonEdgeDeps & {
    apiRoutes: EdgeDeps['routes'];
    dataRoutes: EdgeDeps['routes'];
    sockets: readonly SocketRoute[];
  },
) {
  const { clock } = deps;
  const hsts = config.publicUrl.startsWith('https:') ? HSTS : {};
  const trustedProxies = config.trustedProxies.split(',').filter((address) => address !== '');
  const limiter = new RateLimiter(
    { name: 'requests', requests: config.requestsPerWindow, windowSeconds: 10 },
    clock,
  );
  const registrations = new RateLimiter(
    { name: 'registrations', requests: config.registrationsPerWindow, windowSeconds: 600 },
    clock,
  );
  const common = { ...deps, trustedProxies };
  const api = createEdge({
    ...common,
    limiter,
    routeLimiters: new Map([['register', registrations]]),
    routes: deps.apiRoutes,
    headers: { ...API_HEADERS, ...hsts },
  });
  const headers = { ...API_HEADERS, ...hsts };
  const { publicUrl } = config;
  new WebSockets({ ...deps, limiter, routes: deps.sockets, headers, publicUrl }).serve(api);
  const data = createEdge({
    ...common,
    limiter: null,
    routeLimiters: new Map(),
    routes: deps.dataRoutes,
    headers: { ...DATA_HEADERS, ...hsts },
  });
  const guard = new ConnectionGuard({
    clock,
    maxConnections: config.maxConnections,
    slowSeconds: config.slowBodySeconds,
  });
  guard.watch(api.server);
  guard.watch(data.server);
  return { api, data, guard };
}

interface JobParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly accounts: AccountParts;
  readonly idempotency: Idempotency;
}

const FLUSH_MS = 5000;
const HOUR_MS = 3_600_000;

async function startJobs(
  jobs: Jobs,
  { config, clock, storage, accounts, idempotency }: JobParts,
): Promise<void> {
  const graceMs = config.sweepGraceSeconds * 1000;
  jobs.every('flush access times', FLUSH_MS, () => storage.accessTimes.flush());
  jobs.every('flush key use', FLUSH_MS, () => accounts.authenticator.flush());
  jobs.every('sweep garbage', Math.min(graceMs, 60_000), () => storage.sweeper.sweepGarbage());
  jobs.every('sweep orphans', graceMs * 6, () => storage.sweeper.sweepOrphans());
  jobs.every('sweep sessions', HOUR_MS, () => accounts.sessions.sweep());
  jobs.every('sweep idempotency keys', HOUR_MS, () => idempotency.sweep());
  await storage.scrubber.start();
  if (config.scrubDays === 0) return;
  jobs.every('scrub', HOUR_MS, async () => {
    const finishedAt = await storage.scrubber.lastFinishedAt();
    if (finishedAt !== null && clock.now() - finishedAt < config.scrubDays * 24 * HOUR_MS) return;
    await storage.scrubber.run({ bytesPerSecond: config.scrubBytesPerSecond, fresh: false });
  });
}

async function flushAll(accessTimes: AccessTimes, authenticator: Authenticator, log: Logger): Promise<void> {
  try {
    await accessTimes.flush();
    await authenticator.flush();
  } catch (error) {
    // Times of last use are not worth a failed stop.
    log.warn({ err: error }, 'times of last use were not stored');
  }
}

async function rotateKeys({ metadata, keys }: Foundations): Promise<{ key_id: string; resealed: number }> {
  const { keyId, resealed } = await rotateMasterKey({ metadata, keys });
  return { key_id: keyId, resealed };
}
