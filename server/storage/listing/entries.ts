/** Rows as listing entries, versions as upload responses, and the preconditions of changes. */
import type { WriteBehind } from '../../metadata/change.ts';
import { formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { LockRow } from '../objects/object-lock.ts';
import type { EntryRow, ObjectRow, VersionRow } from '../objects/object-sql.ts';
import type { ObjectEntry, ObjectLock, Uploaded } from '../schema.ts';

/** One entry; with `versions`, it includes the fields of the version. */
export function presentEntry(
  row: EntryRow,
  accessTimes: WriteBehind<number, number>,
  versions: boolean,
): ObjectEntry {
  const entry: ObjectEntry = {
    id: row.object_id,
    name: row.name,
    size: row.size_bytes,
    size_formatted: formatSize(row.size_bytes),
    mime_type: row.mime_type,
    created_at: formatTime(row.created_at),
    last_accessed: formatTimeOrNull(accessTimes.latest(row.id) ?? row.last_accessed),
    etag: row.etag,
    storage_class: row.storage_class,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
  };
  if (!versions) return entry;
  return {
    ...entry,
    version_id: row.version_id,
    is_latest: row.is_latest === 1,
    is_delete_marker: row.blob === null,
    ...presentLock(row),
  };
}

/** Empty for a version that never had a lock. */
export function presentLock({ lock_mode, retain_until, legal_hold }: LockRow): { lock?: ObjectLock } {
  if (lock_mode === null && legal_hold === null) return {};
  const isHeld = legal_hold === 1;
  return { lock: { mode: lock_mode, retain_until: formatTimeOrNull(retain_until), legal_hold: isHeld } };
}

type PresentedVersion = Pick<
  VersionRow,
  'version_id' | 'etag' | 'size_bytes' | 'mime_type' | 'storage_class' | 'metadata' | 'created_at'
>;

/** The response to an upload. */
export function present(
  bucket: BucketRow,
  { object_id, name }: Pick<ObjectRow, 'object_id' | 'name'>,
  version: PresentedVersion,
): Uploaded {
  return {
    object_id,
    version_id: version.version_id,
    etag: version.etag,
    name,
    bucket: bucket.name,
    size: version.size_bytes,
    size_formatted: formatSize(version.size_bytes),
    mime_type: version.mime_type,
    storage_class: version.storage_class,
    metadata: version.metadata === null ? null : JSON.parse(version.metadata),
    created_at: formatTime(version.created_at),
  };
}

/** A version about to become the current one of its name. */
export interface Published {
  readonly objectId: string;
  readonly bucket: BucketRow;
  readonly name: string;
  readonly versionId: string;
  /** ms since 1970. */
  readonly createdAt: number;
  readonly isNull: boolean;
  readonly sizeBytes: number;
  readonly etag: string;
  readonly mimeType: string;
  readonly storageClass: string;
  readonly metadata: string | null;
  /** Same as in a VersionRow. */
  readonly checksum: string | null;
}

/** The response to an upload whose version is about to be committed. */
export function presentUpload(version: Published): Uploaded {
  const { objectId, bucket, name } = version;
  return present(
    bucket,
    { object_id: objectId, name },
    {
      version_id: version.versionId,
      etag: version.etag,
      size_bytes: version.sizeBytes,
      mime_type: version.mimeType,
      storage_class: version.storageClass,
      metadata: version.metadata,
      created_at: version.createdAt,
    },
  );
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];

/** From this value on, rounding to two decimals would show 1024.00. */
const ROUNDS_UP = 1023.995;

/** `1.50 KB`: 1024-based, two decimals. A value that would round to 1024.00 moves to the next unit. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (unit < UNITS.length - 1 && value >= ROUNDS_UP) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(2)} ${UNITS[unit]}`;
}

/** The tags that a precondition may name: each change sets a new id, and each upload a new ETag. */
export type Tagged = Pick<VersionRow, 'version_id' | 'etag' | 'size_bytes' | 'created_at'>;

/**
 * Throws `precondition_failed` unless the current version is the expected one; undefined: no
 * object, or a delete marker, which deletes return too. Must run where the change is built, so that
 * only one of two concurrent changes succeeds.
 */
export type Condition = (current: Tagged | undefined, marker?: Tagged) => void;

interface Headers {
  readonly 'if-match'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
}

const ANOTHER = 'The current version is not the one you specified';

/** `If-Match` and `If-None-Match` (RFC 9110 §13.1); accepts anything if the request has neither. */
export function conditionOf(headers: Headers): Condition {
  const { 'if-match': wanted, 'if-none-match': unwanted } = headers;
  return (current) => {
    if (wanted !== undefined && (current === undefined || !names(wanted, current, { isStrong: true }))) {
      throw failed(current === undefined ? 'There is no such object' : ANOTHER);
    }
    if (unwanted !== undefined && current !== undefined && names(unwanted, current, { isStrong: false })) {
      throw failed('An object with that name already exists');
    }
  };
}

/** `isStrong`: a weak tag never matches (RFC 9110 §8.8.3.2). */
function names(header: string, { version_id, etag }: Tagged, { isStrong }: { isStrong: boolean }): boolean {
  const tags = header.split(',').map((tag) => tag.trim());
  const known = [`"${version_id}"`, `"${etag}"`];
  return tags.some((tag) => tag === '*' || known.includes(isStrong ? tag : tag.replace(/^W\//, '')));
}

function failed(what: string): AppError {
  return new AppError('precondition_failed', what, {
    hint: 'The object was changed by another request: read it again, then repeat your change',
  });
}
