/** Builds object storage: buckets, objects, downloads, the sweeper and the scrub. */
import { ShortTokens } from '../calls/short-tokens.ts';
import type { Config } from '../config/config.ts';
import type { Ages } from '../metadata/ages.ts';
import type { Bus } from '../metadata/bus.ts';
import { Changes } from '../metadata/change.ts';
import { JobRuns } from '../metadata/job-runs-store.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { RestingNamesStore } from '../metadata/resting-names-store.ts';
import { type Alarms, isWritable } from '../platform/alarms.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { SweepGuard } from '../platform/background/sweep-guard.ts';
import { stopCode } from '../platform/background/sweep-guard.ts';
import type { Clock } from '../platform/clock.ts';
import { ScanTurns } from '../platform/concurrency.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Meters } from '../platform/prometheus.ts';
import { type ArchiveRoutesDeps, archiveRoutes } from './archives/archive-routes.ts';
import { Archives } from './archives/archives.ts';
import { ExportedBuckets } from './archives/exported-buckets.ts';
import { Selections } from './archives/selections.ts';
import { BlobSql } from './blobs/blob-sql.ts';
import type { BlobStore } from './blobs/blobs.ts';
import { RowCheck } from './blobs/row-check.ts';
import { RowCheckSql } from './blobs/row-check-sql.ts';
import { Scrubber } from './blobs/scrubber.ts';
import { Sweeper } from './blobs/sweeper.ts';
import { accountBuckets } from './buckets/account-buckets.ts';
import { type BucketRoutesDeps, bucketRoutes } from './buckets/bucket-routes.ts';
import { openDataKeys } from './keys/encryption.ts';
import { type EncryptionKeyRoutesDeps, encryptionKeyRoutes } from './keys/encryption-key-routes.ts';
import { LifecycleRuns, type LifecycleRunsDeps } from './lifecycle/lifecycle-runs.ts';
import { LifecycleSql } from './lifecycle/lifecycle-sql.ts';
import { BrowseSql } from './listing/browse-sql.ts';
import { Browsing } from './listing/browsing.ts';
import { FolderSizes } from './listing/folder-sizes.ts';
import { ObjectInspector } from './listing/listing.ts';
import { type ContentRoutesDeps, cdnRoutes, contentRoutes } from './objects/content-routes.ts';
import { Links, type LinksDeps } from './objects/links.ts';
import { type ObjectRoutesDeps, objectRoutes } from './objects/object-routes.ts';
import { type ObjectServices, objectServices } from './objects/object-services.ts';
import { PointRestores } from './points/point-restores.ts';
import type { StoragePoints } from './points/point-steps.ts';
import { type ShareRoutesDeps, shareRoutes } from './shares/share-routes.ts';
import { ShareSql } from './shares/share-sql.ts';
import { type SharedRoutesDeps, sharedRoutes } from './shares/shared-routes.ts';
import { type SharePasswords, Shares } from './shares/shares.ts';
import type { StorageBilling } from './storage-billing.ts';
import { meterStorage } from './storage-metrics.ts';
import { openUploadRoutes } from './uploads/open-upload-routes.ts';
import { OpenUploads } from './uploads/open-uploads.ts';
import { partRoutes } from './uploads/part-routes.ts';
import { RestUploads } from './uploads/rest-uploads.ts';
import { uploadRoutes } from './uploads/upload-routes.ts';

export interface StorageDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly base: {
    readonly metadata: Metadata;
    readonly bus: Bus;
    readonly ages: Ages;
    readonly blobs: BlobStore;
    readonly keys: MasterKeys;
    readonly alarms: Alarms;
    readonly sweepGuard: SweepGuard;
    readonly linkSecret: Uint8Array;
    /** Throws if that many more bytes cannot be stored. */
    readonly assertSpace: (bytes: number) => void;
  };
  readonly billing: StorageBilling;
  /** See ObjectServicesDeps. */
  readonly steady: { readonly now: () => number };
  /** Checks the metadata; null: no damage found. */
  readonly metadataDamage: () => Promise<string | null>;
  readonly announce: LifecycleRunsDeps['announce'];
  /** See SweeperDeps.isHeld. */
  readonly isHeld: () => Promise<boolean>;
  /** API keys that signed links depend on. */
  readonly linkKeys: LinksDeps['keys'];
  readonly sharePasswords: SharePasswords;
  readonly points: StoragePoints;
  /** URLs of the origins, `http://host:port`. */
  readonly addresses: { readonly apiUrl: string; readonly dataUrl: string };
}

export function storageRoutes(
  deps: BucketRoutesDeps &
    ObjectRoutesDeps &
    ContentRoutesDeps &
    ArchiveRoutesDeps &
    EncryptionKeyRoutesDeps &
    ShareRoutesDeps & { readonly openUploads: OpenUploads; readonly restUploads: RestUploads },
) {
  return [
    ...bucketRoutes(deps),
    ...uploadRoutes(deps),
    ...openUploadRoutes(deps),
    ...partRoutes(deps),
    ...objectRoutes(deps),
    ...contentRoutes(deps),
    ...archiveRoutes(deps),
    ...shareRoutes(deps),
    ...encryptionKeyRoutes(deps),
  ];
}

const FLUSH_MS = 5000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Readers call these when they find damage. If marking fails, the next scrub finds it. */
function marksOf(scrubber: Scrubber) {
  return {
    onDamaged: (blob: number) => void scrubber.noteDamaged(blob).catch(() => {}),
    onDamagedRow: (version: number) => void scrubber.noteDamagedRow(version).catch(() => {}),
    onDamagedBucket: (bucket: number) => void scrubber.noteDamagedBucket(bucket).catch(() => {}),
  };
}

/** Builds object storage, and raises the alarm again for damage found by an earlier scrub. */
export async function storagePart(deps: StorageDeps) {
  const { config, clock, base, isHeld, metadataDamage, linkKeys, addresses } = deps;
  const { metadata, bus, ages, blobs, keys, alarms } = base;
  const dataKeys = openDataKeys(metadata, keys, ages);
  const garbageGraceMs = config.sweepGraceSeconds * 1000;
  const [blobSql, changes] = [new BlobSql(metadata), new Changes({ metadata, bus })];
  const rowCheck = new RowCheck({ changes, rows: new RowCheckSql(metadata), clock });
  const scrubbed = { blobs, rowCheck, runs: new JobRuns(metadata), alarms, clock, dataKeys, metadataDamage };
  const scrubber = new Scrubber({ changes, store: blobSql, ...scrubbed });
  const services = objectServices({
    ...deps,
    ...base,
    changes,
    sealer: keys,
    dataKeys,
    garbageGraceMs,
    ...sizesOf(config),
    ...marksOf(scrubber),
  });
  const { store, accessTimes, egress, listing, downloads, objects, partUploads } = services;
  const walks = { store: new BrowseSql(metadata), listing, turns: new ScanTurns() };
  const sweeper = new Sweeper({
    changes,
    store: blobSql,
    partUploads: services.partUploadSql,
    blobs,
    clock,
    sweepGuard: base.sweepGuard,
    graceMs: garbageGraceMs,
    isWritable: () => isWritable(alarms),
    isHeld,
  });
  const lifecycle = lifecycleJob(deps, { changes, services });
  await scrubber.start();
  const sweepMs = Math.min(garbageGraceMs, MINUTE_MS);
  const isAble = () => blobs.works;
  const jobs: Job[] = [
    { name: 'flush access times', everyMs: FLUSH_MS, per: 'node', run: () => accessTimes.flush() },
    { name: 'store egress of buckets', everyMs: FLUSH_MS, per: 'node', run: () => egress.flush() },
    { name: 'sweep garbage', everyMs: sweepMs, per: 'cluster', isAble, run: () => sweeper.sweepGarbage() },
    { name: 'abort uploads', everyMs: HOUR_MS, per: 'cluster', run: () => partUploads.abortForgotten() },
    restJob(deps, changes),
    lifecycle.job,
    { name: 'sweep uploads', everyMs: sweepMs, per: 'cluster', run: () => partUploads.sweep() },
    { ...orphansJob(sweeper, Math.max(garbageGraceMs * 6, blobs.minOrphanAgeMs / 6)), isAble },
  ];
  if (config.scrubDays !== 0) jobs.push(scrubJob(deps, scrubber));
  const pointRestores = new PointRestores({ ...deps, ...base, ...services });
  const links = new Links({ secret: base.linkSecret, clock, keys: linkKeys });
  const browsing = new Browsing({ ...walks, accessTimes });
  const archives = archiveServices(deps, walks, services);
  const shared = shareServices(deps, { changes, listing, downloads, browsing, archives: archives.archives });
  return {
    scrubber,
    services,
    resources: accountBuckets(pointRestores),
    exported: new ExportedBuckets({ ...services, shares: shared.shares }),
    routes: storageRoutes({
      ...services,
      pointRestores,
      ...uploadServices(services, clock),
      browsing,
      folderSizes: new FolderSizes({ ...walks, steady: deps.steady }),
      objectInspector: new ObjectInspector({ objects, store, accessTimes }),
      ...archives,
      links,
      shares: shared.shares,
      dataUrl: () => addresses.dataUrl,
    }),
    dataRoutes: [...cdnRoutes({ downloads, links, apiUrl: () => addresses.apiUrl }), ...shared.dataRoutes],
    jobs: [...jobs, ...shared.jobs],
    gauges: (meters: Meters) =>
      meterStorage(meters, { totals: () => services.buckets.totals(), scrub: () => scrubber.status() }),
    stop: () => {
      pointRestores.stop();
      lifecycle.runs.stop();
      sweeper.stop();
      scrubber.stop();
    },
    flush: async () => {
      for (const each of [egress, accessTimes, shared.shares]) await each.flush();
    },
  };
}

function scrubJob({ config, clock }: StorageDeps, scrubber: Scrubber): Job {
  const run = async () => {
    const finishedAt = await scrubber.lastFinishedAt();
    if (finishedAt !== null && clock.now() - finishedAt < config.scrubDays * 24 * HOUR_MS) return;
    await scrubber.run({ bytesPerSecond: config.scrubBytesPerSecond, fresh: false });
  };
  return { name: 'scrub', everyMs: HOUR_MS, per: 'host', run };
}

function uploadServices(services: ObjectServices, clock: Pick<Clock, 'now'>) {
  const now = () => clock.now();
  return { openUploads: new OpenUploads(services), restUploads: new RestUploads({ ...services, now }) };
}

/** Links that owners see and end, and the routes of their visitors. */
function shareServices(
  { clock, base, linkKeys, sharePasswords, addresses }: StorageDeps,
  visits: Omit<SharedRoutesDeps, 'shares'> & { readonly changes: Changes },
) {
  const shares = new Shares({
    ...visits,
    store: new ShareSql(base.metadata),
    clock,
    secret: base.linkSecret,
    keys: linkKeys,
    passwords: sharePasswords,
    dataUrl: () => addresses.dataUrl,
  });
  const jobs: Job[] = [
    { name: 'sweep shared links', everyMs: HOUR_MS, per: 'cluster', run: () => shares.sweep() },
    { name: 'store downloads of shared links', everyMs: FLUSH_MS, per: 'node', run: () => shares.flush() },
  ];
  return { shares, jobs, dataRoutes: sharedRoutes({ ...visits, shares }) };
}

function archiveServices(
  { config, clock, base: { metadata } }: StorageDeps,
  { store, turns }: { readonly store: BrowseSql; readonly turns: ScanTurns },
  { listing, downloads }: ObjectServices,
) {
  return {
    archives: new Archives({ store, listing, downloads, turns, maxFiles: config.maxArchiveFiles }),
    selections: new Selections({ tokens: new ShortTokens({ metadata, clock }), listing, clock }),
  };
}

function sizesOf({ maxObjectBytes, inlineBytes: maxInlineBytes }: StorageDeps['config']) {
  return { maxObjectBytes, maxInlineBytes };
}

/** Listing millions of objects costs requests: if orphans must be old, it runs less often. */
function orphansJob(sweeper: { sweepOrphans(): Promise<unknown> }, everyMs: number): Job {
  const raises = [stopCode('blobs')];
  return { name: 'sweep orphans', everyMs, per: 'cluster', raises, run: () => sweeper.sweepOrphans() };
}

/** Ends expired reservations of names. */
function restJob({ base, clock }: StorageDeps, changes: Changes): Job {
  const resting = new RestingNamesStore(base.metadata);
  const run = () => changes.store([resting.sweep(clock.now())]);
  return { name: 'release reserved bucket names', everyMs: HOUR_MS, per: 'cluster', run };
}

/** Runs the lifecycle rules; often if days are short, for tests. */
function lifecycleJob(
  { config, clock, base, announce }: StorageDeps,
  { changes, services }: { readonly changes: Changes; readonly services: ObjectServices },
) {
  const dayMs = config.s3LifecycleDaySeconds * 1000;
  const runs = new LifecycleRuns({
    ...services,
    changes,
    clock,
    announce,
    dayMs,
    store: new LifecycleSql(base.metadata),
    uploadStore: services.partUploadSql,
  });
  const job: Job = {
    name: 'run lifecycle rules',
    everyMs: Math.min(dayMs / 5, MINUTE_MS),
    per: 'cluster',
    run: () => runs.run(),
  };
  return { runs, job };
}
