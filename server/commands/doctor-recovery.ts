/** The part of `cloudlet doctor` that looks at the place for recovery points. */
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { lookAtDirectory } from '../drivers/recovery-directory/target-fact.ts';
import { formatSize } from '../storage/format-size.ts';
import type { Finding } from './doctor.ts';

export async function checkRecovery({ recoveryTarget, dataDir }: Config): Promise<Finding[]> {
  const subject = 'recovery points';
  const place = recoveryTarget || join(dataDir, 'recovery');
  try {
    const { isOnDataDisk, freeBytes } = await lookAtDirectory(place, dataDir);
    const detail = `${place}, ${formatSize(freeBytes)} free`;
    if (!isOnDataDisk) return [{ level: 'ok', subject, detail }];
    const fix = 'set CLOUDLET_RECOVERY_TARGET to a directory on another disk, or on NFS';
    return [{ level: 'warn', subject, detail: `${detail}: on the disk of the data, and lost with it`, fix }];
  } catch (error) {
    const fix = 'mount it, make it writable, or set CLOUDLET_RECOVERY_TARGET';
    return [{ level: 'warn', subject, detail: `${place} cannot be used: ${(error as Error).message}`, fix }];
  }
}
