/** The bucket that a restore makes: like the one in the recovery point, and never more open. */
import type { Reads } from '../../metadata/metadata.ts';
import { invalidField } from '../../platform/errors.ts';
import {
  type PublicAccess,
  type SettingsChange,
  settingsOf,
  settingsText,
} from '../buckets/bucket-settings.ts';
import { type BucketRow, damagedBucket, isSoundBucket, likeOf } from '../buckets/bucket-sql.ts';
import { NamedKeySql } from '../keys/named-key-sql.ts';
import { type LeftOut, type NewBucketRestore, VERSIONING } from '../schema.ts';

interface Wish {
  /** Live. */
  readonly metadata: Reads;
  /** The owner of the new bucket. */
  readonly accountId: number;
  /** The rights of others may come back. */
  readonly mayShare: boolean;
  readonly name: string;
  readonly wanted: Pick<NewBucketRestore, 'versions'>;
}

const CLOSED: PublicAccess = { blockAcls: true, ignoreAcls: true, blockPolicy: true, restrict: true };

/**
 * Region, versioning, encryption and object lock come back. A restore of all versions brings the other
 * settings too: rights of others only if the caller may give them, nothing for everyone, and rules that
 * remove objects switched off, because the restored objects are old. Throws `data_corrupted` where the row of
 * the recovery point is damaged.
 */
export async function likeBucket(source: BucketRow, { metadata, accountId, mayShare, name, wanted }: Wish) {
  if (!isSoundBucket(source)) throw damagedBucket(source);
  const then = settingsOf(source);
  const leftOut: LeftOut[] = [];
  const leave = (what: LeftOut['what'], reason: string, count = 1) => leftOut.push({ what, reason, count });
  const { lock } = then;
  let settings: SettingsChange = lock === undefined ? {} : { lock };
  if (wanted.versions === true) {
    settings = { ...then, publicAccess: CLOSED };
    if (then.lifecycle !== undefined) {
      const rules = then.lifecycle.rules.map((rule) => ({ ...rule, isEnabled: false }));
      settings = { ...settings, lifecycle: { ...then.lifecycle, rules } };
      leave(
        'lifecycle',
        'The lifecycle rules are disabled, because they would remove restored objects',
        rules.length,
      );
    }
    settings = withoutRights(settings, { source, mayShare, name, leave });
    if (then.namedKey !== undefined && !(await isThere(metadata, accountId, then.namedKey.keyId))) {
      settings = { ...settings, namedKey: undefined };
      leave(
        'encryption_key',
        `The account has no encryption key ${then.namedKey.keyId}, so new objects use the default encryption`,
      );
    }
  }
  const isSuspended = source.versioning === VERSIONING.suspended;
  const like = {
    ...likeOf(source),
    ...(isSuspended && wanted.versions !== true && { versioning: VERSIONING.off }),
    settings: settingsText(settings),
  };
  return { like, leftOut };
}

interface Rights extends Pick<Wish, 'mayShare' | 'name'> {
  readonly source: BucketRow;
  readonly leave: (what: LeftOut['what'], reason: string) => void;
}

function withoutRights(settings: SettingsChange, { source, mayShare, name, leave }: Rights): SettingsChange {
  const { policy, acl, publicAccess } = settingsOf(source);
  const isShared = policy !== undefined || acl !== undefined;
  if (isShared && !mayShare) {
    leave('policy', "Restoring other accounts' access requires storage:admin and the same account");
    return { ...settings, policy: undefined, acl: undefined };
  }
  if (publicAccess === undefined || Object.values(publicAccess).includes(false)) {
    leave('public_access', 'Access for everyone is blocked until you allow it again');
  }
  if (policy === undefined || name === source.name) return settings;
  leave('policy', `The bucket policy names the bucket ${source.name}: set one for ${name}`);
  return { ...settings, policy: undefined };
}

async function isThere(metadata: Reads, accountId: number, keyId: string): Promise<boolean> {
  return (await new NamedKeySql(metadata).find(accountId, keyId)) !== undefined;
}

/**
 * Throws `data_corrupted`, and `invalid_request` for a live bucket that could not hold the histories of the
 * other one.
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
