/** Rows as listings show them, and versions as an upload is answered. */
import type { WriteBehind } from '../metadata/write-behind.ts';
import { formatTime, formatTimeOrNull } from '../platform/clock.ts';
import type { BucketRow } from './bucket-sql.ts';
import { formatSize } from './format-size.ts';
import type { EntryRow, ObjectRow, VersionRow } from './object-sql.ts';
import type { ObjectEntry, Uploaded } from './schema.ts';
import type { ReceivedBytes } from './upload.ts';

/** One entry; with `versions`, the members that tell versions apart. */
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
  };
}

/** A version as an upload is answered. */
export function present(
  bucket: BucketRow,
  { object_id, name }: Pick<ObjectRow, 'object_id' | 'name'>,
  version: Omit<VersionRow, 'id' | 'blob' | 'last_accessed'>,
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

interface NewVersionFacts {
  readonly versionId: string;
  readonly createdAt: number;
  readonly received: Pick<ReceivedBytes, 'md5' | 'sizeBytes'>;
  readonly name: string;
  readonly mimeType: string;
  readonly metadata: string | null;
}

/** The answer to an upload whose version is about to be committed. */
export function presentUpload(bucket: BucketRow, objectId: string, version: NewVersionFacts): Uploaded {
  const { versionId, createdAt, received, name, mimeType, metadata } = version;
  return present(
    bucket,
    { object_id: objectId, name },
    {
      version_id: versionId,
      etag: received.md5,
      size_bytes: received.sizeBytes,
      mime_type: mimeType,
      storage_class: 'STANDARD',
      metadata,
      created_at: createdAt,
    },
  );
}
