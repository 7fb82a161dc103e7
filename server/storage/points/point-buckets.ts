/** The bucket that a restore creates: like the one in the recovery point, but never more public. */
import type { Reads } from '../../metadata/metadata.ts';
import { invalidField } from '../../platform/errors.ts';
import { settingsOf, settingsText } from '../buckets/bucket-settings.ts';
import { type BucketRow, damagedBucket, isSoundBucket, likeOf } from '../buckets/bucket-sql.ts';
import { type Restoring, restoredSettings } from '../buckets/setting-entries.ts';
import { NamedKeySql } from '../keys/named-key-sql.ts';
import { type LeftOut, type NewBucketRestore, VERSIONING } from '../schema.ts';

interface Wish {
  /** Live. */
  readonly metadata: Reads;
  /** The owner of the new bucket. */
  readonly accountId: number;
  /** Access of other accounts may be restored. */
  readonly mayShare: boolean;
  readonly name: string;
  readonly wanted: Pick<NewBucketRestore, 'versions'>;
}

/**
 * Region, versioning, encryption and object lock are restored. A restore of all versions restores
 * the other settings too: access of other accounts only if the caller may grant it, public access
 * never, and lifecycle rules disabled, because the restored objects are old. Throws
 * `data_corrupted` if the row in the recovery point is damaged.
 */
export async function likeBucket(source: BucketRow, { metadata, accountId, mayShare, name, wanted }: Wish) {
  if (!isSoundBucket(source)) throw damagedBucket(source);
  const then = settingsOf(source);
  const leftOut: LeftOut[] = [];
  const restoring: Restoring = {
    then,
    from: source.name,
    to: name,
    mayShare,
    hasKey: async (id) => (await new NamedKeySql(metadata).find(accountId, id)) !== undefined,
    leave: (what, reason, count = 1) => leftOut.push({ what, reason, count }),
  };
  const settings = wanted.versions === true ? await restoredSettings(restoring) : { lock: then.lock };
  const isSuspended = source.versioning === VERSIONING.suspended;
  const like = {
    ...likeOf(source),
    ...(isSuspended && wanted.versions !== true && { versioning: VERSIONING.off }),
    settings: settingsText(settings),
  };
  return { like, leftOut };
}

/**
 * Throws `data_corrupted`, and `invalid_request` for a live bucket that cannot store the other
 * bucket's histories.
 */
export function assertFits(source: BucketRow, target: BucketRow): void {
  if (!isSoundBucket(source)) throw damagedBucket(source);
  const hasLocks = (row: BucketRow) => settingsOf(row).lock !== undefined;
  if (source.versioning === target.versioning && hasLocks(source) === hasLocks(target)) return;
  throw invalidField(
    'to_bucket',
    `must be a new bucket, or have versioning and object lock like ${source.name} in the recovery point`,
  );
}
