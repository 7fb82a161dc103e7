/** A recovery point's row as administrators see it. */
import { formatTime, formatTimeOrNull } from '../clock.ts';
import type { Point } from './schema.ts';
import type { PointRow } from './store.ts';

export function presentPoint(row: PointRow): Point {
  return {
    point_id: row.point_id,
    state: row.state,
    state_reason: row.reason,
    percent: row.percent,
    created_at: formatTime(row.created_at),
    completed_at: formatTimeOrNull(row.completed_at),
    verified_at: formatTimeOrNull(row.verified_at),
    size_bytes: row.size_bytes,
    stored_bytes: row.stored_bytes,
    contents: JSON.parse(row.contents) as Point['contents'],
    gaps: JSON.parse(row.gaps) as Point['gaps'],
    manifest_sha256: row.manifest_sha256,
    target: row.target,
    deletes_at: formatTimeOrNull(row.deletes_at),
  };
}
