/** Opens the store of objects' bytes: files of the data directory, or a bucket of S3. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, poolThreads } from '../config/config.ts';
import { parseS3Url, type S3Address } from '../config/s3-address.ts';
import { FileBlobStore } from '../drivers/blobs-file/blobs-file.ts';
import { S3BlobStore } from '../drivers/blobs-s3/blobs-s3.ts';
import { BlobLocationStore } from '../metadata/blob-location-store.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { StartupError } from '../platform/data-directory.ts';
import type { DiskSpace } from '../platform/host/disk-space.ts';
import type { Meters } from '../platform/prometheus.ts';
import { BlobSql } from '../storage/blobs/blob-sql.ts';
import type { BlobStore } from '../storage/blobs/blobs.ts';

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

/** Throws StartupError if the configured place is not the one where the objects of this cloud are. */
export async function openBlobs(deps: BlobDeps): Promise<OpenedBlobs> {
  const { config, metadata } = deps;
  const locations = new BlobLocationStore(metadata);
  const place = await locations.find();
  if (config.blobsUrl === '') {
    if (place !== undefined) {
      throw new StartupError(`The objects of this cloud are in ${place}: set CLOUDLET_BLOBS_URL to it`);
    }
    return { blobs: await openFiles(deps), gauges: () => {} };
  }
  const address = addressOf(config);
  const isEmpty = !(await new BlobSql(metadata).hasNamed());
  if (place === undefined && !isEmpty) {
    throw new StartupError(
      'The objects of this cloud are files of the data directory, and CLOUDLET_BLOBS_URL names a bucket: ' +
        'unset it to keep using the files, or move them with cloudlet migrate --blobs s3',
    );
  }
  const blobs = await openBucket(deps, address, { mayMark: isEmpty });
  if (place !== address.label) await locations.write(address.label);
  return { blobs, gauges: (meters) => meterS3(meters, blobs) };
}

/** The files of the data directory, whether or not this cloud's objects are there. */
export function openFiles({ config, clock, alarms, diskSpace }: BlobDeps): Promise<FileBlobStore> {
  const directory = join(config.dataDir, 'blobs');
  const directWrites = Math.floor(poolThreads() / 2);
  const threads = config.blobThreads;
  return FileBlobStore.open({ directory, threads, clock, alarms, diskSpace, directWrites });
}

/**
 * The bucket at `address`, whether or not this cloud's objects are there. Throws StartupError if it is
 * another cloud's, or has no mark and must not get one.
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

/** Throws StartupError if CLOUDLET_BLOBS_URL or the file with its key is no good. */
export function addressOf({
  blobsUrl,
  blobsCredentialsFile: path,
}: Pick<Config, 'blobsUrl' | 'blobsCredentialsFile'>): S3Address {
  try {
    return parseS3Url(blobsUrl, path === '' ? '' : readFileSync(path, 'utf8'));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const about = code === undefined ? 'CLOUDLET_BLOBS_URL' : `CLOUDLET_BLOBS_CREDENTIALS_FILE ${path}`;
    throw new StartupError(`${about} ${code === undefined ? message : `cannot be read (${code})`}`);
  }
}

function meterS3(meters: Meters, blobs: S3BlobStore): void {
  const { counters } = blobs;
  const counter = (name: string, help: string, read: () => number) =>
    meters.gauge(`cloudlet_s3_${name}`, { help, type: 'counter', read });
  counter('requests_total', 'Requests to S3, with those that were repeated', () => counters.read('requests'));
  counter('retries_total', 'Requests to S3 that were repeated', () => counters.read('retries'));
  counter('errors_total', 'Requests to S3 without a usable answer', () => counters.read('errors'));
  counter(
    'request_seconds_total',
    'Duration of all requests to S3',
    () => counters.read('microseconds') / 1e6,
  );
  counter('sent_bytes_total', 'Bytes sent to S3', () => counters.read('sentBytes'));
  counter('received_bytes_total', 'Bytes of objects received from S3', () => counters.read('receivedBytes'));
  const help = 'Memory of the parts of uploads under way';
  meters.gauge('cloudlet_s3_part_bytes', { help, type: 'gauge', read: () => blobs.partBytes });
}
