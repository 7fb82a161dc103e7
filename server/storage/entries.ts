/** Rows as the listing shows them. */
import { formatTime, formatTimeOrNull } from '../platform/clock.ts';
import type { AccessTimes } from './access-times.ts';
import { formatSize } from './format-size.ts';
import type { EntryRow } from './object-sql.ts';
import type { ObjectEntry } from './schema.ts';

/** One entry; with `versions`, the members that tell versions apart. */
export function presentEntry(row: EntryRow, accessTimes: AccessTimes, versions: boolean): ObjectEntry {
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
