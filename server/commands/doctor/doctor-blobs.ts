/** The part of `cloudlet doctor` that checks the bucket in CLOUDLET_BLOBS_URL. */
import { addressOf } from '../../cloud/blobs.ts';
import type { Config } from '../../config/config.ts';
import type { BlobFault } from '../../drivers/blob-frames/blob-fault.ts';
import { type BucketFacts, bucketFacts } from '../../drivers/blobs-s3/bucket-facts.ts';
import { fixOf, isS3Fault } from '../../drivers/s3-client/s3-fault.ts';
import { type Clock, systemClock } from '../../platform/clock.ts';
import type { Finding } from '../../platform/finding.ts';

/** S3 refuses requests whose time differs by 15 minutes. */
const MOST_CLOCK_MS = 60_000;
const SUBJECT = 'objects';

/** No finding if objects are files of the data directory. */
export async function checkBlobs(
  config: Pick<Config, 'blobsUrl' | 'blobsCredentialsFile'>,
  clock: Clock = systemClock,
): Promise<Finding[]> {
  if (config.blobsUrl === '') return [];
  try {
    const address = addressOf(config);
    return describe(address.label, await bucketFacts(address, clock));
  } catch (error) {
    const fix = isS3Fault(error) ? fixOf(error as BlobFault) : 'correct CLOUDLET_BLOBS_URL';
    return [{ level: 'fail', subject: SUBJECT, detail: (error as Error).message, fix }];
  }
}

function describe(label: string, { cloudId, isVersioned, clockAheadMs }: BucketFacts): Finding[] {
  const found: Finding[] = [];
  if (isVersioned === true) {
    const detail = `${label} keeps versions, so objects that Cloudlet removes still use space`;
    const fix = 'suspend versioning, or add a lifecycle rule that removes old versions';
    found.push({ level: 'warn', subject: SUBJECT, detail, fix });
  }
  if (clockAheadMs !== null && Math.abs(clockAheadMs) > MOST_CLOCK_MS) {
    const detail = `the clock of the S3 service differs from this host's by ${Math.round(clockAheadMs / 1000)} s`;
    found.push({ level: 'warn', subject: SUBJECT, detail, fix: 'synchronize both clocks with NTP' });
  }
  if (found.length > 0) return found;
  const whose = cloudId === undefined ? 'no cloud uses it yet' : `used by cloud ${cloudId}`;
  return [
    { level: 'ok', subject: SUBJECT, detail: `${label}, ${whose}: stored, read and removed an object` },
  ];
}
