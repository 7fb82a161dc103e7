/** The public view of a recovery point, in responses and in events for the webhooks of administrators. */
import type { Statement } from '../metadata/metadata.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../platform/clock.ts';
import type { Point } from './schema.ts';
import { type PointRow, type ShownState, SOUND } from './store.ts';
import type { RecoverySummaryStore } from './summary-store.ts';

/** A point with gaps is `partial`, whether or not it was verified. */
export function shownState({ state, gaps }: Pick<PointRow, 'state' | 'gaps'>): ShownState {
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
    scheduled_at: formatTimeOrNull(row.scheduled_at),
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

export interface PointAnnouncement {
  readonly accountId: number;
  readonly type: `recovery_point.${'created' | 'completed' | 'failed' | 'verified' | 'damaged' | 'deleted'}`;
  readonly data: Readonly<Record<string, unknown>>;
  /** ms since 1970. */
  readonly at: number;
}

export interface PointNewsDeps {
  readonly summaries: Pick<RecoverySummaryStore, 'administrators'>;
  readonly clock: Clock;
  readonly announce: (announcement: PointAnnouncement) => readonly Statement[];
}

export class PointEvents {
  readonly #deps: PointNewsDeps;

  constructor(deps: PointNewsDeps) {
    this.#deps = deps;
  }

  /** Statements for the commit of the event; `row`: the row after it. */
  async of(type: PointAnnouncement['type'], row: PointRow): Promise<Statement[]> {
    const { summaries, clock, announce } = this.#deps;
    const { point_id, state, state_reason, ...point } = presentPoint(row);
    const { created_at, completed_at, size_bytes, stored_bytes, gaps, damaged_files } = point;
    const sizes = { created_at, completed_at, size_bytes, stored_bytes };
    const data = { point_id, state, state_reason, ...sizes, gaps: gaps.length, damaged_files };
    const accounts = await summaries.administrators();
    return accounts.flatMap((accountId) => announce({ accountId, type, data, at: clock.now() }));
  }
}
