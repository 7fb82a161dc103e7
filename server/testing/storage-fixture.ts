/** Storage services on a real database and real files in a temporary directory. For tests. */
import { join } from 'node:path';
import { pino } from 'pino';
import { openBilling } from '../billing/part.ts';
import type { Principal } from '../calls/principal.ts';
import { ShortTokens } from '../calls/short-tokens.ts';
import { BUILT_IN } from '../cloud/catalog.ts';
import { FileBlobStore, type FileBlobStoreDeps } from '../drivers/blobs-file/blobs-file.ts';
import { AGELESS, type Ages } from '../metadata/ages.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { JobRuns } from '../metadata/job-runs-store.ts';
import { Alarms } from '../platform/alarms.ts';
import { SweepGuard } from '../platform/background/sweep-guard.ts';
import type { FakeClock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { ALONE } from '../platform/membership.ts';
import type { DiskShares } from '../resources/disk-shares.ts';
import { Archives } from '../storage/archives/archives.ts';
import { Selections } from '../storage/archives/selections.ts';
import { BlobSql } from '../storage/blobs/blob-sql.ts';
import { RowCheck } from '../storage/blobs/row-check.ts';
import { RowCheckSql } from '../storage/blobs/row-check-sql.ts';
import { Scrubber } from '../storage/blobs/scrubber.ts';
import { Sweeper } from '../storage/blobs/sweeper.ts';
import { BucketSql } from '../storage/buckets/bucket-sql.ts';
import { openDataKeys } from '../storage/keys/encryption.ts';
import { BrowseSql } from '../storage/listing/browse-sql.ts';
import { Browsing } from '../storage/listing/browsing.ts';
import { presentUpload } from '../storage/listing/entries.ts';
import { ObjectInspector } from '../storage/listing/listing.ts';
import { objectServices } from '../storage/objects/object-services.ts';
import type { Naming, Objects } from '../storage/objects/objects.ts';
import type { Uploaded } from '../storage/schema.ts';
import {
  type AccountFixtureOptions,
  newPrincipal,
  openAccountFixture,
  testSealer,
} from './account-fixture.ts';

export interface StorageFixtureOptions extends Pick<AccountFixtureOptions, 'openMetadata'> {
  readonly maxObjectBytes?: number;
  /** Default: those of one process. */
  readonly ages?: (clock: FakeClock) => Ages;
  readonly objectShares?: (clock: FakeClock) => DiskShares;
  /** Default: nothing is marked. */
  readonly onDamaged?: (blob: number) => void;
  readonly onDamagedRow?: (version: number) => void;
  readonly onDamagedBucket?: (bucket: number) => void;
}

export const TEST_GRACE_MS = 600_000;
export const TEST_ARCHIVE_FILES = 20;

export type StorageFixture = Awaited<ReturnType<typeof openStorageFixture>>;

interface TestDiskSpace {
  /** Free bytes of the disk as seen by uploads. */
  freeBytes: number;
}

function assertFree(diskSpace: TestDiskSpace, bytes: number): void {
  if (bytes > diskSpace.freeBytes) throw new AppError('out_of_space', 'The disk is full; nothing was stored');
}

function openBlobs({ directory, ...rest }: Omit<FileBlobStoreDeps, 'threads' | 'directWrites'>) {
  return FileBlobStore.open({ directory: join(directory, 'blobs'), threads: 1, directWrites: 1, ...rest });
}

/** Opens everything. The only variable setting is `diskSpace.freeBytes`, the free bytes of the disk. */
export async function openStorageFixture(options: StorageFixtureOptions = {}) {
  const fixture = await openAccountFixture(options.openMetadata && options);
  const { metadata, changes, bus, clock, accounts, directory } = fixture;
  const ages = options.ages?.(clock) ?? AGELESS;
  const alarms = new Alarms(clock);
  const diskSpace = {
    freeBytes: Number.POSITIVE_INFINITY,
    assertSpace: (bytes: number) => assertFree(diskSpace, bytes),
  };
  const blobs = await openBlobs({ directory, clock, alarms, diskSpace });
  const log = pino({ level: 'silent' });
  const objectShares = options.objectShares?.(clock);
  const base = { metadata, bus, ages, alarms, changes, membership: ALONE, objectShares };
  const { storageCharges: billing, steady } = await openBilling({ builtIn: BUILT_IN, clock, log, base });
  const bucketSql = new BucketSql(metadata);
  const blobSql = new BlobSql(metadata);
  const sealer = testSealer();
  const shared = {
    ...base,
    clock,
    blobs,
    sealer,
    dataKeys: openDataKeys(metadata, sealer, ages),
    billing,
    steady,
    assertSpace: diskSpace.assertSpace,
    maxObjectBytes: options.maxObjectBytes ?? 2 ** 30,
    garbageGraceMs: TEST_GRACE_MS,
  };
  const { onDamaged = () => {}, onDamagedRow = () => {}, onDamagedBucket = () => {} } = options;
  const services = objectServices({ ...shared, onDamaged, onDamagedRow, onDamagedBucket });
  const { store, accessTimes, listing, downloads, objects, partUploadSql } = services;
  const runs = new JobRuns(metadata);
  const browseSql = new BrowseSql(metadata);
  const sweepGuard = new SweepGuard({ alarms, isOurs: async () => true });
  const sweeping = {
    store: blobSql,
    partUploads: partUploadSql,
    sweepGuard,
    graceMs: TEST_GRACE_MS,
    isHeld: async () => false,
  };
  const rowCheck = new RowCheck({ ...shared, rows: new RowCheckSql(metadata) });
  const openScrubber = () =>
    new Scrubber({ ...shared, store: blobSql, runs, rowCheck, metadataDamage: async () => null });
  return {
    metadata,
    clock,
    directory,
    alarms,
    blobs,
    diskSpace,
    ...services,
    bucketSql,
    blobSql,
    accounts,
    runs,
    /** A scrubber as after a restart: with stored state only. */
    openScrubber,
    openSweeper: (isWritable = () => true) => new Sweeper({ ...shared, ...sweeping, isWritable }),
    browsing: new Browsing({ store: browseSql, listing, accessTimes }),
    archives: new Archives({ store: browseSql, listing, downloads, maxFiles: TEST_ARCHIVE_FILES }),
    selections: new Selections({ tokens: new ShortTokens({ metadata, clock }), listing, clock }),
    objectInspector: new ObjectInspector({ objects, store, accessTimes }),
    removeAccount: fixture.removeAccount,
    newPrincipal: (username: string) => newPrincipal(accounts, username),
    /** Uploads `bytes` under `name`, in one piece. */
    put: (principal: Principal, bucketName: string, object: NewObject) =>
      objects
        .beginUpload(principal, bucketName)
        .then((begun) => put(objects, { ...begun, principal }, object)),
    async close() {
      await blobs.close();
      await fixture.close();
    },
  };
}

export interface NewObject extends Partial<Naming> {
  readonly name: string;
  readonly bytes: Uint8Array;
}

async function put(
  objects: Objects,
  { principal, bucket, upload }: Awaited<ReturnType<Objects['beginUpload']>> & { principal: Principal },
  { bytes, ...naming }: NewObject,
): Promise<Uploaded> {
  await upload.write(bytes);
  const received = await upload.finish();
  const whole = { mimeType: 'text/plain', metadata: null, ...naming };
  try {
    const content = objects.received(received);
    return await objects.publish(
      { ...BACKGROUND, principal },
      { bucket, content, naming: whole },
      presentUpload,
    );
  } finally {
    await upload.end();
  }
}
