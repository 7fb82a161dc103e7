/** Builds the recovery domain: the parts that make recovery points, read, drill and remove them. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Secrets } from '../metadata/secrets/secrets-store.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import { Semaphore } from '../platform/concurrency.ts';
import type { Meters } from '../platform/prometheus.ts';
import { VERSION } from '../platform/version.ts';
import type { BlobStore } from '../storage/blobs/blobs.ts';
import type { DrillGround } from './drill/drill.ts';
import { DrillStore } from './drill/drill-store.ts';
import { Drills, type DrillsDeps } from './drill/drills.ts';
import { Verifications } from './drill/verifications.ts';
import { LogArchive } from './logs/log-archive.ts';
import { AccountRestores, type AccountRestoresDeps } from './points/account-restores.ts';
import { cloudSources } from './points/cloud-sources.ts';
import { OpenedPoints, type OpenedPointsDeps } from './points/opened-points.ts';
import { PointFiles } from './points/point-files.ts';
import { PointEvents, type PointNewsDeps } from './points/point-view.ts';
import { Points } from './points/points.ts';
import { Removals } from './points/removals.ts';
import type { Snapshots, Source } from './points/sources.ts';
import { meterRecovery } from './recovery-metrics.ts';
import { Journals } from './repository/journal.ts';
import { JournalStore } from './repository/journal-store.ts';
import { KeySlot } from './repository/key-slot.ts';
import { cloudName, Lease, writerName } from './repository/lease.ts';
import { RecoveryKeys } from './repository/recovery-keys.ts';
import type { Target } from './repository/target.ts';
import { recoveryRoutes } from './routes.ts';
import { Retention } from './schedule/retention.ts';
import { ScheduleStore } from './schedule/schedule-store.ts';
import { type Planned, Scheduler } from './schedule/scheduler.ts';
import { AlarmNews, RecoveryWatch } from './schedule/watch.ts';
import { RecoveryStore } from './store.ts';
import { RecoverySummaryStore } from './summary-store.ts';

export interface RecoveryDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly secrets: Secrets;
    readonly blobs: BlobStore;
    readonly alarms: Alarms;
  };
  /** The domains' data for a recovery point. */
  readonly sources: readonly Source[];
  readonly opened: OpenedPoints;
  readonly places: RecoveryPlaces;
  /** `owner`: identifies the drill directories of this cloud. */
  readonly ground: (owner: () => Promise<string>) => DrillGround;
  readonly announce: PointNewsDeps['announce'];
  readonly chainHash: DrillsDeps['chainHash'];
  /** Restores the resources of an account that is restored alone. */
  readonly resources: AccountRestoresDeps['resources'];
  readonly createAccount: AccountRestoresDeps['createAccount'];
}

/** The sources of points, and the targets that store them. */
export interface RecoveryPlaces extends RecoveryTargets {
  readonly snapshots: Snapshots;
}

export interface RecoveryTargets {
  readonly target: Target;
  /** Same, with its own threads, so that reading does not wait for the creation of points. */
  readonly reading: Target;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TICK_MS = 10 * 60_000;
const CHECK_MS = 60_000;
const SCHEDULE_MS = 5000;

/** Whether a recovery point needs unreferenced data. */
export function recoveryHold({ metadata }: { readonly metadata: Metadata }, clock: Clock) {
  const store = new RecoveryStore(metadata);
  return () => store.isHeld(clock.now());
}

/** Open recovery points for restoring single resources; created before the recovery domain. */
export function openedPoints(dataDir: string, deps: Omit<OpenedPointsDeps, 'directory'>): OpenedPoints {
  return new OpenedPoints({ ...deps, directory: join(dataDir, 'recovery-opened') });
}

type Shared = ReturnType<typeof sharedOf>;

/** Needed by most parts of recovery. */
function sharedOf(deps: RecoveryDeps, onEnd: () => void) {
  const { config, clock, log, base, places, announce } = deps;
  const { metadata, secrets } = base;
  const { target, reading } = places;
  const [store, changes] = [new RecoveryStore(metadata), new Changes({ metadata })];
  const summaries = new RecoverySummaryStore(metadata);
  const common = { secrets, store, changes, clock };
  const keys = new RecoveryKeys({ ...common, target });
  const owner = () => writerName(secrets, config.dataDir);
  return {
    ...common,
    keys,
    verifying: new RecoveryKeys({ ...common, target: reading }),
    summaries,
    news: new PointEvents({ summaries, clock, announce }),
    owner,
    cloud: () => cloudName(secrets),
    lease: new Lease({
      target,
      clock,
      cloud: owner,
      host: hostname(),
      silenceMs: config.recoveryLeaseSeconds * 1000,
    }),
    find: () => keys.find(),
    isLost: () => keys.isLost(),
    repository: () => keys.open(),
    location: target.location,
    sweeping: new Semaphore(1),
    onError: (id: string, err: unknown) =>
      log.error({ id, err }, 'creating, reading or removing a recovery point failed'),
    onEnd,
  };
}

export function recoveryPart(deps: RecoveryDeps) {
  const { config, base, sources, opened, places } = deps;
  const { metadata, blobs } = base;
  const { target, reading } = places;
  const onEnd = () => {
    // The schedule records the end of its point first, because it raises its own alarm.
    const noted = scheduler.tick().catch((error) => shared.onError('', error));
    void noted.then(() => watch.check()).catch((error) => shared.onError('', error));
  };
  const shared = sharedOf(deps, onEnd);
  const { keys, changes } = shared;
  const readOnly = { ...shared, repository: () => shared.verifying.open() };
  const logs = new LogArchive({ ...shared, verdicts: shared.summaries });
  const verifications = new Verifications({ ...readOnly, logs });
  const drills = drillsOf(deps, { ...shared, logs });
  const points: Points = new Points({
    ...shared,
    abortSweep: () => removals.abortSweep(),
    sweep: (holding) => removals.sweepWith(holding),
    workOn: (id) => {
      const verifyingPercent = verifications.work.progressOf(id);
      return { verifyingPercent, drilling: drills.work.progressOf(id), removal: target.removal };
    },
    snapshots: places.snapshots,
    sources: cloudSources({ directory: config.dataDir, blobs, more: sources }),
    version: VERSION,
    bytesPerSecond: config.recoveryBytesPerSecond || Number.POSITIVE_INFINITY,
  });
  const removals = new Removals({
    ...shared,
    points,
    removal: () => target.removal,
    graceMs: config.recoveryUndeleteHours * HOUR_MS,
  });
  const schedule = scheduleOf(deps, { ...shared, points, removals });
  const { scheduler } = schedule;
  const watch: RecoveryWatch = watchOf(deps, { ...shared, planned: () => scheduler.read() });
  const journals = new Journals({ ...shared, store: new JournalStore(metadata) });
  const accounts = new AccountRestores({ ...deps, reads: metadata, changes, points: opened });
  return {
    points,
    pointFiles: new PointFiles(readOnly),
    logArchive: logs,
    watch,
    routes: recoveryRoutes({ points, keys, verifications, drills, removals, logs, accounts, ...schedule }),
    gauges: (meters: Meters) => meterRecovery(meters, watch),
    jobs: [
      every('remove deleted recovery points', TICK_MS, () => removals.tick()),
      every('drill the newest recovery point', HOUR_MS, () => drills.tick()),
      every('create scheduled recovery points', SCHEDULE_MS, () => scheduler.tick()),
      every('check the recovery repository', CHECK_MS, () => watch.check()),
      every('store the journal of revocations', config.recoveryJournalSeconds * 1000, () => journals.write()),
    ],
    start: () => {
      scheduler.start();
      cleanUp(deps, { points, removals, drills, watch });
    },
    stop: () => scheduler.close(),
    close: async () => {
      watch.close();
      for (const each of [target, reading]) each.hurry();
      for (const each of [opened, verifications.work, drills.work]) await each.close();
      await removals.abortSweep();
      await points.close();
    },
  };
}

interface Kept {
  readonly points: Points;
  readonly removals: Removals;
  readonly drills: Drills;
  readonly watch: RecoveryWatch;
}

/** Cleans up after a kill, then removes deleted points. */
function cleanUp({ log, opened }: RecoveryDeps, { points, removals, drills, watch }: Kept): void {
  const tell = (err: unknown, what: string) => log.error({ err }, what);
  void opened.sweep().catch((error) => tell(error, 'removing recovery points opened earlier failed'));
  void drills.sweep().catch((error) => tell(error, 'cleaning up after a killed drill failed'));
  void points
    .recover()
    .then(() => removals.reconcile())
    .finally(() => watch.check())
    .catch((error) => tell(error, 'cleaning up recovery points failed'));
}

function every(name: string, everyMs: number, run: () => Promise<unknown>): Job {
  return { name, everyMs, per: 'host', run };
}

function drillsOf(
  { config, base, places: { target }, chainHash, ground }: RecoveryDeps,
  shared: Shared & { readonly logs: LogArchive },
): Drills {
  const { store, verifying, owner } = shared;
  const drillStore = new DrillStore(base.metadata);
  const isKeyTaken = (id: string) => store.isKeyTaken(id);
  return new Drills({
    ...shared,
    everyMs: config.drillDays * DAY_MS,
    drillStore,
    slot: new KeySlot({ ...shared, target, store: drillStore, isKeyTaken }),
    keys: () => verifying.lend(),
    chainHash,
    ground: ground(owner),
  });
}

function scheduleOf(
  { config, base: { metadata }, places: { target } }: RecoveryDeps,
  { store: rows, ...shared }: Shared & Pick<Kept, 'points' | 'removals'>,
) {
  const isTargetSet = config.recoveryTarget !== '';
  const retention = new Retention({ ...shared, store: rows });
  const store = new ScheduleStore(metadata);
  // Only for directories, whose free space is known.
  const freeBytes = async () => (await target.inspect(config.dataDir)).freeBytes ?? 0;
  const scheduler = new Scheduler({ ...shared, store, rows, retention, isTargetSet, freeBytes });
  return { scheduler, retention, location: shared.location, isTargetSet };
}

function watchOf(
  { config, base: { alarms }, places: { target } }: RecoveryDeps,
  { keys, ...shared }: Shared & { readonly planned: () => Promise<Planned> },
): RecoveryWatch {
  const alarmNews = new AlarmNews(shared);
  return new RecoveryWatch({
    ...shared,
    alarms,
    drillMs: config.drillDays * DAY_MS,
    tell: (all) => alarmNews.tell(all),
    probe: async () => {
      const fact = await target.inspect(config.dataDir);
      if (await keys.isLost()) throw new Error('its recovery points are missing');
      return { ...fact, repositoryId: (await keys.find())?.id ?? null };
    },
  });
}
