/** The public view of a recovery point's row. */
import { formatTime, formatTimeOrNull } from '../platform/clock.ts';
import type { Point } from './schema.ts';
import { type PointRow, type ShownState, SOUND } from './store.ts';

/** A point with gaps is `partial`, whether or not it was verified. */
function shownState({ state, gaps }: Pick<PointRow, 'state' | 'gaps'>): ShownState {
  return SOUND.includes(state) && gaps !== '[]' ? 'partial' : state;
}

/** `verifyingPercent`: null when it is not being verified. */
export function presentPoint(row: PointRow, verifyingPercent: number | null = null): Point {
  return {
    point_id: row.point_id,
    state: shownState(row),
    state_reason: row.reason,
    percent: row.percent,
    verifying_percent: verifyingPercent,
    created_at: formatTime(row.created_at),
    completed_at: formatTimeOrNull(row.completed_at),
    verified_at: formatTimeOrNull(row.verified_at),
    size_bytes: row.size_bytes,
    stored_bytes: row.stored_bytes,
    contents: JSON.parse(row.contents) as Point['contents'],
    gaps: JSON.parse(row.gaps) as Point['gaps'],
    manifest_sha256: row.manifest_sha256,
    damaged_files: row.damaged_files,
    damage: JSON.parse(row.damage) as Point['damage'],
    target: row.target,
    deletes_at: formatTimeOrNull(row.deletes_at),
  };
}
