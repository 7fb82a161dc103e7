/** Opens the store of objects' bytes: files of the data directory, or an S3 bucket. */
import { join } from 'node:path';
import { type Config, poolThreads } from '../config/config.ts';
import type { S3Address } from '../config/s3-address.ts';
import { FileBlobStore } from '../drivers/blobs-file/blobs-file.ts';
import { S3BlobStore } from '../drivers/blobs-s3/blobs-s3.ts';
import { meterS3 } from '../drivers/blobs-s3/s3-metrics.ts';
import { addressIn } from '../drivers/s3-client/s3-setting.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import type { DiskSpace } from '../platform/host/disk-space.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { BlobStore } from '../storage/blobs/blobs.ts';
import { assertFiles, openAtBucket } from '../storage/blobs/blobs-place.ts';

export interface BlobDeps {
  readonly config: Pick<
    Config,
    'blobsUrl' | 'blobsCredentialsFile' | 'blobsMemoryMb' | 'blobThreads' | 'dataDir'
  >;
  readonly metadata: Metadata;
  readonly cloudId: string;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly diskSpace: DiskSpace;
}

export interface OpenedBlobs {
  readonly blobs: BlobStore;
  readonly gauges: (meters: Meters) => void;
}

const MIB = 2 ** 20;

/** Throws StartupError if this cloud's objects are not in the configured store. */
export async function openBlobs(deps: BlobDeps): Promise<OpenedBlobs> {
  const { config, metadata } = deps;
  if (config.blobsUrl === '') {
    await assertFiles(metadata);
    return { blobs: await openFiles(deps), gauges: () => {} };
  }
  const address = addressOf(config);
  const open = (mayMark: boolean) => openBucket(deps, address, { mayMark });
  const blobs = await openAtBucket(metadata, address.label, open);
  return { blobs, gauges: (meters) => meterS3(meters, blobs) };
}

/** The file store of the data directory, even if this cloud's objects are elsewhere. */
export function openFiles({ config, clock, alarms, diskSpace }: BlobDeps): Promise<FileBlobStore> {
  const directory = join(config.dataDir, 'blobs');
  const directWrites = Math.floor(poolThreads() / 2);
  const threads = config.blobThreads;
  return FileBlobStore.open({ directory, threads, clock, alarms, diskSpace, directWrites });
}

/**
 * The bucket at `address`, whether or not this cloud's objects are there. Throws StartupError if it
 * belongs to another cloud, or has no mark and must not get one.
 */
export function openBucket(
  { config, cloudId, clock, alarms }: BlobDeps,
  address: S3Address,
  { mayMark }: { readonly mayMark: boolean },
): Promise<S3BlobStore> {
  const memoryBytes = config.blobsMemoryMb * MIB;
  const threads = config.blobThreads;
  return S3BlobStore.open({ address, cloudId, mayMark, threads, memoryBytes, clock, alarms });
}

/** Throws StartupError if CLOUDLET_BLOBS_URL or the file with its key is invalid. */
export function addressOf({
  blobsUrl: url,
  blobsCredentialsFile: file,
}: Pick<Config, 'blobsUrl' | 'blobsCredentialsFile'>): S3Address {
  return addressIn({ url, name: 'CLOUDLET_BLOBS_URL', file, fileName: 'CLOUDLET_BLOBS_CREDENTIALS_FILE' });
}
