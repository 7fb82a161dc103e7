/** Opens the recovery target: a directory, or a bucket of S3. */
import { join, resolve } from 'node:path';
import type { Config } from '../config/config.ts';
import type { S3Address } from '../config/s3-address.ts';
import { DirectoryTarget } from '../drivers/recovery-directory/directory-target.ts';
import { S3RecoveryTarget } from '../drivers/recovery-s3/s3-recovery-target.ts';
import { addressIn } from '../drivers/s3-client/s3-setting.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import type { RecoveryTargets } from '../recovery/part.ts';
import type { Target } from '../recovery/repository/target.ts';

export type TargetConfig = Pick<
  Config,
  'recoveryTarget' | 'recoveryCredentialsFile' | 'recoveryLockDays' | 'dataDir'
>;

export interface OwnObjects {
  /** Whether this cloud has an object with that bucket, name and ETag. */
  hasObject(bucket: string, name: string, etag: string): Promise<boolean>;
}

/** The target of this cloud's points. Throws StartupError if the file with the S3 key is invalid. */
export function openTargets(config: TargetConfig, clock: Clock, own: OwnObjects): RecoveryTargets {
  const location = config.recoveryTarget || join(config.dataDir, 'recovery');
  if (!isS3(location))
    return { target: new DirectoryTarget(location), reading: new DirectoryTarget(location) };
  const address = addressOf(location, config);
  const isOwn = (key: string, md5: string) => own.hasObject(address.bucket, key, md5);
  const deps = { address, clock, isOwn, lockDays: config.recoveryLockDays };
  return { target: new S3RecoveryTarget(deps), reading: new S3RecoveryTarget(deps) };
}

/** Another target for a command that only reads: `from` is a directory, or the URL of a bucket. */
export function targetAt(from: string, config: TargetConfig): Target {
  return isS3(from) ? bucketAt(from, config) : new DirectoryTarget(resolve(from));
}

/** The bucket at that URL, for a command. Throws StartupError if the URL or its credentials are invalid. */
export function bucketAt(url: string, config: TargetConfig): S3RecoveryTarget {
  const address = addressOf(url, config);
  const { recoveryLockDays: lockDays } = config;
  return new S3RecoveryTarget({ address, clock: systemClock, isOwn: async () => false, lockDays });
}

export function isS3(location: string): boolean {
  return location.startsWith('s3:');
}

/** Credentials come from the URL, else from the file. */
function addressOf(url: string, { recoveryCredentialsFile }: TargetConfig): S3Address {
  const file = url.includes('@') ? '' : recoveryCredentialsFile;
  return addressIn({
    url,
    name: 'The recovery target',
    file,
    fileName: 'CLOUDLET_RECOVERY_CREDENTIALS_FILE',
  });
}
