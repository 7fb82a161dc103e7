/** Webhook events of recovery points, for administrators only. */
import type { Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { presentPoint } from './point-view.ts';
import type { RecoverySummaryStore } from './recovery-summary-store.ts';
import type { PointRow } from './store.ts';

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
