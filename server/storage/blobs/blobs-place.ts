/** Where the bytes of this cloud's objects are stored: in files of the data directory, or in an S3 bucket. */
import { BlobLocationStore } from '../../metadata/blob-location-store.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { StartupError } from '../../platform/data-directory.ts';
import { BlobSql } from './blob-sql.ts';

/** Throws StartupError unless objects of this cloud may be files. */
export async function assertFiles(metadata: Metadata): Promise<void> {
  const place = await new BlobLocationStore(metadata).find();
  if (place === undefined) return;
  throw new StartupError(`The objects of this cloud are in ${place}: set CLOUDLET_BLOBS_URL to it`);
}

/**
 * Opens the bucket with this label, and stores it as the location of the objects. `open` is told
 * whether no objects exist yet, so that this cloud may take over the bucket. Throws StartupError if
 * the objects are files.
 */
export async function openAtBucket<T>(
  metadata: Metadata,
  label: string,
  open: (isEmpty: boolean) => Promise<T>,
): Promise<T> {
  const locations = new BlobLocationStore(metadata);
  const place = await locations.find();
  const isEmpty = !(await new BlobSql(metadata).hasNamed());
  if (place === undefined && !isEmpty) {
    throw new StartupError(
      'The objects of this cloud are files of the data directory, and CLOUDLET_BLOBS_URL names a bucket: ' +
        'unset it to keep using the files, or move them with cloudlet migrate --blobs s3',
    );
  }
  const opened = await open(isEmpty);
  if (place !== label) await locations.write(label);
  return opened;
}
