/** The part of `cloudlet doctor` that checks the recovery target. */
import { join } from 'node:path';
import { bucketAt, isS3, type TargetConfig } from '../../cloud/recovery-target.ts';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import { AppError } from '../../platform/errors.ts';
import type { Finding } from '../../platform/finding.ts';
import { plural } from '../../platform/plural.ts';
import { formatSize } from '../../storage/listing/entries.ts';

const subject = 'recovery points';
/** S3 refuses requests whose time differs by 15 minutes. */
const MOST_CLOCK_MS = 60_000;

export async function checkRecovery(config: TargetConfig): Promise<Finding[]> {
  const { recoveryTarget, dataDir } = config;
  if (isS3(recoveryTarget)) return checkBucket(config);
  const location = recoveryTarget || join(dataDir, 'recovery');
  try {
    const { isOnDataDisk, freeBytes } = await new DirectoryTarget(location).inspect(dataDir);
    const detail = `${location}, ${formatSize(freeBytes)} free`;
    if (!isOnDataDisk) return [{ level: 'ok', subject, detail }];
    const fix =
      'set CLOUDLET_RECOVERY_TARGET to a directory on another disk, on NFS, or to a bucket of an S3';
    return [
      {
        level: 'warn',
        subject,
        detail: `${detail}; on the same disk as the data, so a disk failure would lose both`,
        fix,
      },
    ];
  } catch (error) {
    const fix = 'mount the directory, make it writable, or set CLOUDLET_RECOVERY_TARGET';
    return [
      { level: 'warn', subject, detail: `${location} is not usable: ${(error as Error).message}`, fix },
    ];
  }
}

async function checkBucket(config: TargetConfig): Promise<Finding[]> {
  try {
    const target = bucketAt(config.recoveryTarget, config);
    const { removal, clockAheadMs, lock } = await target.prove();
    const { location } = target;
    target.hurry();
    const detail = `${location}: If-None-Match and Content-MD5 are honoured; stored and read an object`;
    const locks = lock === null ? '' : `; points are locked for ${plural(lock.days, 'day')}`;
    const found: Finding[] = [{ level: 'ok', subject, detail: `${detail}; ${REMOVALS[removal]}${locks}` }];
    if (clockAheadMs !== null && Math.abs(clockAheadMs) > MOST_CLOCK_MS) {
      const seconds = Math.round(clockAheadMs / 1000);
      const differs = `the clock of the S3 service differs from this host's by ${seconds} s`;
      found.push({ level: 'warn', subject, detail: differs, fix: 'synchronize both clocks with NTP' });
    }
    return found;
  } catch (error) {
    const fix = (error instanceof AppError ? error.hint : undefined) ?? 'correct CLOUDLET_RECOVERY_TARGET';
    return [{ level: 'fail', subject, detail: (error as Error).message, fix }];
  }
}

const REMOVALS = {
  gone: 'removed the object again',
  hidden: 'the bucket keeps versions, so a lifecycle rule must remove the old ones',
  denied: 'the key may not remove objects, so the operator of the bucket removes deleted points',
};
