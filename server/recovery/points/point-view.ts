/** The public view of a recovery point, in responses and in events for the webhooks of administrators. */
import type { Statement } from '../../metadata/metadata.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import type { DrillRecord } from '../drill/drill.ts';
import type { Removal } from '../repository/target.ts';
import type { Point } from '../schema.ts';
import { type PointRow, type ShownState, SOUND } from '../store.ts';
import type { RecoverySummaryStore } from '../summary-store.ts';

/** A point with gaps is `partial`, whether or not it was verified. */
export function shownState({ state, gaps }: Pick<PointRow, 'state' | 'gaps'>): ShownState {
  return SOUND.includes(state) && gaps !== '[]' ? 'partial' : state;
}

/** Work in progress on a point; null: none. */
export interface PointWork {
  readonly verifyingPercent: number | null;
  /** Stage of its drill. */
  readonly drilling: string | null;
  /** Effect of removing files from the target. */
  readonly removal: Removal;
}

export function presentPoint(row: PointRow, work: Partial<PointWork> = {}): Point {
  const { verifyingPercent = null, drilling = null, removal = 'gone' } = work;
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
    drilled_at: formatTimeOrNull(row.drilled_at),
    drilling,
    drill: presentDrill(row.drill),
    size_bytes: row.size_bytes,
    stored_bytes: row.stored_bytes,
    contents: JSON.parse(row.contents) as Point['contents'],
    gaps: JSON.parse(row.gaps) as Point['gaps'],
    manifest_sha256: row.manifest_sha256,
    damaged_files: row.damaged_files,
    damage: JSON.parse(row.damage) as Point['damage'],
    target: row.target,
    deletes_at: formatTimeOrNull(row.deletes_at),
    reclaim: row.state === 'deleting' && removal !== 'gone' ? 'by_operator' : null,
  };
}

function presentDrill(drill: string | null): Point['drill'] {
  if (drill === null) return null;
  const { started_at, ...record } = JSON.parse(drill) as DrillRecord;
  return { ...record, started_at: formatTime(started_at), checks: [...record.checks] };
}

type PointEvent = `recovery_point.${
  | 'created'
  | 'completed'
  | 'failed'
  | 'verified'
  | 'damaged'
  | 'deleted'
  | 'drilled'
  | 'drill_failed'
  | 'drill_skipped'}`;
type AlarmEvent = 'recovery.alarm_raised' | 'recovery.alarm_cleared';

export interface PointAnnouncement {
  readonly accountId: number;
  readonly type: PointEvent | AlarmEvent;
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
  async of(type: PointEvent, row: PointRow): Promise<Statement[]> {
    const { point_id, state, state_reason, ...point } = presentPoint(row);
    const { created_at, completed_at, size_bytes, stored_bytes, gaps, damaged_files } = point;
    const sizes = { created_at, completed_at, size_bytes, stored_bytes };
    const drill = type.startsWith('recovery_point.drill') ? drillFacts(point) : {};
    const data = { point_id, state, state_reason, ...sizes, gaps: gaps.length, damaged_files };
    return this.#of(type, { ...data, ...drill });
  }

  /** `data`: the code; for an alarm that was raised, also the problem and the fix. */
  ofAlarm(type: AlarmEvent, data: Readonly<Record<string, string>>): Promise<Statement[]> {
    return this.#of(type, data);
  }

  async #of(type: PointAnnouncement['type'], data: Readonly<Record<string, unknown>>): Promise<Statement[]> {
    const { summaries, clock, announce } = this.#deps;
    const accounts = await summaries.administrators();
    return accounts.flatMap((accountId) => announce({ accountId, type, data, at: clock.now() }));
  }
}

function drillFacts({ drill }: Pick<Point, 'drill'>) {
  return drill === null ? {} : { drill_reason: drill.reason, drill_seconds: drill.seconds };
}
