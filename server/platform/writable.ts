/**
 * Whether new bytes may be stored: after a failed fsync nobody knows what the disk holds, so nothing is
 * added to it.
 */
import type { Alarms } from './alarms.ts';
import { AppError } from './errors.ts';

const READ_ONLY_ALARMS: ReadonlySet<string> = new Set(['metadata_write_failed', 'blob_fsync_failed']);

/** False after either store has failed to make a write durable; a restart ends that. */
export function isWritable(alarms: Alarms): boolean {
  return !alarms.list().some(({ code }) => READ_ONLY_ALARMS.has(code));
}

/**
 * Throws AppError `read_only`. The two stores refuse by themselves; this makes each heed the other's
 * failure.
 */
export function assertWritable(alarms: Alarms): void {
  if (isWritable(alarms)) return;
  throw new AppError('read_only', 'The store is read-only after a disk error', {
    hint: 'Check the disk, then restart Cloudlet; GET /api/system/status has the details',
  });
}
