/** Makes recovery points. */

import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { PostgresqlSnapshots } from '../drivers/metadata-postgresql/postgresql-snapshots.ts';
import { SqliteSnapshots } from '../drivers/metadata-sqlite/sqlite-snapshots.ts';
import { DirectoryDataFiles } from '../drivers/recovery-directory/data-files.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Secrets } from '../metadata/secrets-store.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { Semaphore } from '../platform/concurrency.ts';
import type { DiskSpace } from '../platform/host/disk-space.ts';
import type { Job } from '../platform/jobs.ts';
import type { Meters } from '../platform/prometheus.ts';
import { VERSION } from '../platform/version.ts';
import type { Drills } from '../recovery/drill/drills.ts';
import { Verifications } from '../recovery/drill/verifications.ts';
import { LogArchive } from '../recovery/logs/log-archive.ts';
import { AccountRestores, type AccountRestoresDeps } from '../recovery/points/account-restores.ts';
import { cloudSources } from '../recovery/points/cloud-sources.ts';
import { OpenedPoints } from '../recovery/points/opened-points.ts';
import { PointFiles } from '../recovery/points/point-files.ts';
import { PointEvents, type PointWork } from '../recovery/points/point-view.ts';
import { Points } from '../recovery/points/points.ts';
import { Removals } from '../recovery/points/removals.ts';
import type { Snapshots, Source } from '../recovery/points/sources.ts';
import { Journals, type JournalsDeps } from '../recovery/repository/journal.ts';
import { JournalStore } from '../recovery/repository/journal-store.ts';
import { Lease } from '../recovery/repository/lease.ts';
import { RecoveryKeys } from '../recovery/repository/recovery-keys.ts';
import type { Target } from '../recovery/repository/target.ts';
import { recoveryRoutes } from '../recovery/routes.ts';
import { AlarmNews } from '../recovery/schedule/recovery-alarms.ts';
import type { Planned, Scheduler } from '../recovery/schedule/scheduler.ts';
import { RecoveryWatch } from '../recovery/schedule/watch.ts';
import { RecoveryStore, WRITER } from '../recovery/store.ts';
import { RecoverySummaryStore } from '../recovery/summary-store.ts';
import type { BlobStore } from '../storage/blobs/blobs.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import { buildDrills } from './recovery-drills.ts';
import { buildSchedule } from './recovery-schedule.ts';
import { type OpenedTargets, openTargets } from './recovery-target.ts';
import { pointOpener } from './restored-directory.ts';

export interface RecoveryDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly secrets: Secrets;
    readonly blobs: BlobStore;
    readonly alarms: Alarms;
    readonly diskSpace: Pick<DiskSpace, 'headroomBytes'>;
    readonly assertSpace: (bytes: number) => void;
  };
  /** The domains' data for a recovery point. */
  readonly sources: readonly Source[];
  readonly opened: OpenedPoints;
}

/** Makers of the resources of an account that is restored alone. */
export type AccountsBack = Pick<AccountRestoresDeps, 'resources' | 'createAccount'>;

/** The file layout that foundations.ts and compute.ts give to their drivers. */
const LAYOUT = { images: 'images' };
const HOUR_MS = 3_600_000;
const TICK_MS = 10 * 60_000;
const CHECK_MS = 60_000;

/** Whether a recovery point needs unreferenced data. */
export function recoveryHold({ metadata }: { readonly metadata: Metadata }, clock: Clock) {
  const store = new RecoveryStore(metadata);
  return () => store.isHeld(clock.now());
}

/** Points that owners take single resources from. */
export function openedPoints(
  { config, clock, base }: Pick<RecoveryDeps, 'config' | 'clock' | 'base'>,
  files: () => PointFiles,
): OpenedPoints {
  const directory = join(config.dataDir, 'recovery-opened');
  const { assertSpace } = base;
  return new OpenedPoints({ directory, files, assertSpace, openFolder: pointOpener(clock, assertSpace) });
}

export function buildRecovery(deps: RecoveryDeps & AccountsBack) {
  const { config, clock, log, base, sources, opened } = deps;
  const { metadata, secrets, assertSpace, blobs } = base;
  const [store, changes] = [new RecoveryStore(metadata), new Changes({ metadata })];
  const { target, reading, inspect } = openTargets(config, clock, store);
  const keys = new RecoveryKeys({ secrets, target, store, changes, clock });
  const verifying = new RecoveryKeys({ secrets, target: reading, store, changes, clock });
  const onError = (id: string, err: unknown) =>
    log.error({ id, err }, 'creating, reading or removing a recovery point failed');
  const lease = buildLease({ config, clock, base }, target);
  const cloud = () => cloudName(secrets);
  const journals = buildJournals(metadata, { clock, find: () => keys.find(), cloud });
  const news = buildNews(metadata, clock);
  const watch = buildWatch({ ...deps, keys, target, inspect, news, planned: () => scheduler.read() });
  const onEnd = () => {
    // The schedule notes the end of its point first, so that the alarm is its own.
    const noted = scheduler.tick().catch((error) => onError('', error));
    void noted.then(() => watch.check()).catch((error) => onError('', error));
  };
  const repository = () => keys.open();
  const at = { location: target.location, sweeping: new Semaphore(1) };
  const shared = { store, changes, clock, repository, onError, onEnd, news, ...at };
  const logs = new LogArchive({ ...shared, ...logDeps(metadata), find: () => keys.find(), lease });
  const verifications = new Verifications({ ...shared, logs, repository: () => verifying.open() });
  const own = { ...shared, logs, cloud, owner: () => writerName(secrets, config.dataDir) };
  const drills = buildDrills({ config, clock, base, target, keys: verifying }, own);
  const points: Points = new Points({
    ...shared,
    lease,
    cloud,
    abortSweep: () => removals.abortSweep(),
    sweep: (holding) => removals.sweepWith(holding),
    workOn: (id) => workOn(id, { verifications, drills, target }),
    snapshots: snapshotsOf({ config, clock, assertSpace }),
    sources: cloudSources({ files: new DirectoryDataFiles(config.dataDir, LAYOUT), blobs, more: sources }),
    version: VERSION,
    bytesPerSecond: config.recoveryBytesPerSecond || Number.POSITIVE_INFINITY,
  });
  const removals = new Removals({
    ...shared,
    lease,
    points,
    find: () => keys.find(),
    isLost: () => keys.isLost(),
    removal: () => target.removal,
    graceMs: config.recoveryUndeleteHours * HOUR_MS,
  });
  const accounts = new AccountRestores({ ...deps, reads: metadata, changes, points: opened });
  const schedule = buildSchedule({ ...shared, config, metadata, points, removals, lease, target });
  const scheduler: Scheduler = schedule.scheduler;
  return {
    points,
    pointFiles: new PointFiles({ ...shared, repository: () => verifying.open() }),
    logArchive: logs,
    watch,
    routes: recoveryRoutes({ points, keys, verifications, drills, removals, logs, accounts, ...schedule }),
    gauges: (meters: Meters) => meterRecovery(meters, watch),
    jobs: [
      every('remove deleted recovery points', TICK_MS, () => removals.tick()),
      every('drill the newest recovery point', HOUR_MS, () => drills.tick()),
      every('create scheduled recovery points', schedule.everyMs, () => scheduler.tick()),
      every('check the recovery repository', CHECK_MS, () => watch.check()),
      every('store the journal of revocations', config.recoveryJournalSeconds * 1000, () => journals.write()),
    ],
    start: () => {
      scheduler.start();
      cleanUp({ points, removals, drills, watch, log, opened });
    },
    stop: () => scheduler.close(),
    close: async () => {
      watch.close();
      for (const each of [target, reading]) each.hurry();
      for (const each of [opened, verifications, drills]) await each.close();
      await removals.abortSweep();
      await points.close();
    },
  };
}

function logDeps(metadata: Metadata) {
  return { verdicts: new RecoverySummaryStore(metadata) };
}

function workOn(
  id: string,
  { verifications, drills, target }: { verifications: Verifications; drills: Drills; target: Target },
): PointWork {
  const verifyingPercent = verifications.percentOf(id);
  return { verifyingPercent, drilling: drills.stageOf(id), removal: target.removal };
}

function buildJournals(metadata: Metadata, deps: Omit<JournalsDeps, 'store'>): Journals {
  return new Journals({ ...deps, store: new JournalStore(metadata) });
}

function buildNews(metadata: Metadata, clock: Clock): PointEvents {
  return new PointEvents({ summaries: new RecoverySummaryStore(metadata), clock, announce: eventStatements });
}

interface Kept {
  readonly points: Points;
  readonly removals: Removals;
  readonly drills: Drills;
  readonly watch: RecoveryWatch;
  readonly log: Logger;
  readonly opened: OpenedPoints;
}

/** Cleans up after a kill, then removes deleted points. */
function cleanUp({ points, removals, drills, watch, log, opened }: Kept): void {
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

function buildLease(
  { config, clock, base }: Pick<RecoveryDeps, 'config' | 'clock' | 'base'>,
  target: Target,
): Lease {
  return new Lease({
    target,
    clock,
    cloud: () => writerName(base.secrets, config.dataDir),
    host: hostname(),
    silenceMs: config.recoveryLeaseSeconds * 1000,
  });
}

function snapshotsOf({
  config: { dataDir: directory, metadataUrl: url },
  clock,
  assertSpace,
}: Pick<RecoveryDeps, 'config' | 'clock'> & Pick<RecoveryDeps['base'], 'assertSpace'>): Snapshots {
  const work = join(directory, 'recovery-work');
  return url === ''
    ? new SqliteSnapshots({ directory, work, assertSpace })
    : new PostgresqlSnapshots({ url, work, assertSpace, clock });
}

function meterRecovery(meters: Meters, watch: RecoveryWatch): void {
  const gauge = (name: string, help: string, read: () => number) =>
    meters.gauge(`cloudlet_recovery_${name}`, { help, type: 'gauge', read });
  gauge('points', 'Recovery points that can be restored', () => watch.figures().points);
  gauge(
    'point_age_seconds',
    'Age of the newest recovery point that can be restored',
    () => watch.figures().ageSeconds,
  );
  gauge(
    'rpo_seconds',
    'Age of the recovery point that a restore would use (data loss if the cloud were lost now)',
    () => watch.figures().latestAgeSeconds,
  );
  gauge('drill_age_seconds', 'Time since a restore drill last passed', () => watch.figures().drillAgeSeconds);
  gauge('target_up', '1 if the recovery repository answered the last check', () =>
    flag(watch.figures().isTargetUp),
  );
  gauge('target_free_bytes', 'Free space of the recovery repository', () => watch.figures().freeBytes);
  gauge('key_taken', '1 once an administrator has confirmed the recovery key', () =>
    flag(watch.figures().isKeyTaken),
  );
}

/** Unknown values have no sample: a new cloud has no repository, and no key to keep. */
const flag = (isSo: boolean | null) => (isSo === null ? Number.NaN : Number(isSo));

type WatchParts = Pick<RecoveryDeps, 'config' | 'clock' | 'base'> & {
  readonly keys: RecoveryKeys;
  readonly planned: () => Promise<Planned>;
  readonly news: PointEvents;
} & Pick<OpenedTargets, 'target' | 'inspect'>;

function buildWatch({
  config,
  clock,
  base,
  keys,
  target,
  inspect,
  planned,
  news,
}: WatchParts): RecoveryWatch {
  const { metadata, alarms } = base;
  const store = new RecoveryStore(metadata);
  const alarmNews = new AlarmNews({ store, changes: new Changes({ metadata }), news });
  return new RecoveryWatch({
    summaries: new RecoverySummaryStore(metadata),
    store,
    clock,
    alarms,
    planned,
    drillMs: config.drillDays * 24 * HOUR_MS,
    tell: (all) => alarmNews.tell(all),
    location: target.location,
    probe: async () => {
      const fact = await inspect();
      if (await keys.isLost()) throw new Error('its recovery points are missing');
      return { ...fact, repositoryId: (await keys.find())?.id ?? null };
    },
  });
}

/** Stays the same if the data directory is moved; a restored cloud has another one. */
async function cloudName(secrets: Secrets): Promise<string> {
  return createHash('sha256')
    .update('cloudlet journal ')
    .update(await secrets.get(WRITER))
    .digest('hex')
    .slice(0, 32);
}

/** A copy of a data directory has another one. */
async function writerName(secrets: Secrets, directory: string): Promise<string> {
  const [secret, { dev, ino }] = await Promise.all([secrets.get(WRITER), stat(directory)]);
  return createHash('sha256')
    .update(`${secret.toString('hex')} ${dev} ${ino}`)
    .digest('hex')
    .slice(0, 32);
}
