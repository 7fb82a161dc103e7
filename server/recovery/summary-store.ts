/** SQL of the summary of all recovery points in a target, and of the last verification of archived logs. */
import type { Reads, Statement } from '../metadata/metadata.ts';
import type { LogReport } from './logs/log-verification.ts';

/** Times are ms since 1970; null: none. */
export interface RecoverySummary {
  /** Points that can be restored, as far as known. */
  readonly points: number;
  readonly damaged: number;
  readonly newest_at: number | null;
  readonly oldest_at: number | null;
  readonly verified_at: number | null;
  /** The last restore drill that passed. */
  readonly drilled_at: number | null;
  /** Creation time of the last point, if it failed. */
  readonly failed_at: number | null;
  readonly failed_reason: string | null;
  readonly newest_id: string | null;
  /** Gaps of the newest point, JSON; null: no point. */
  readonly newest_gaps: string | null;
  /** The point that a restore of `latest` uses: the newest complete one, else the newest partial one. */
  readonly latest_id: string | null;
  readonly latest_at: number | null;
  readonly latest_gaps: string | null;
}

const NONE: RecoverySummary = {
  points: 0,
  damaged: 0,
  newest_at: null,
  oldest_at: null,
  verified_at: null,
  drilled_at: null,
  failed_at: null,
  newest_id: null,
  newest_gaps: null,
  latest_id: null,
  latest_at: null,
  latest_gaps: null,
  failed_reason: null,
};

const LOGS = 'recovery_logs_verified';

export class RecoverySummaryStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Account ids. */
  async administrators(): Promise<number[]> {
    const sql = 'SELECT id FROM accounts WHERE is_admin = 1 AND closed_at IS NULL ORDER BY id';
    return (await this.#reads.all<{ id: number }>(sql)).map(({ id }) => id);
  }

  /** null: archived logs were never verified. */
  async logs(): Promise<LogReport | null> {
    const sql = 'SELECT value FROM settings WHERE name = ?';
    const row = await this.#reads.get<{ value: string }>(sql, LOGS);
    return row === undefined ? null : (JSON.parse(row.value) as LogReport);
  }

  setLogs(report: LogReport): Statement {
    const sql = `INSERT INTO settings (name, value) VALUES (?, ?)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    return { sql, params: [LOGS, JSON.stringify(report)] };
  }

  async of(target: string): Promise<RecoverySummary> {
    const row = await this.#reads.get<RecoverySummary>(
      `WITH here AS (SELECT * FROM recovery_points WHERE target = ?),
         sound AS (SELECT * FROM here WHERE state IN ('complete', 'verified', 'drilled')),
         last AS (SELECT * FROM here WHERE state NOT IN ('creating', 'cancelled') ORDER BY id DESC LIMIT 1),
         newest AS (SELECT * FROM sound ORDER BY created_at DESC, id DESC LIMIT 1),
         latest AS (SELECT * FROM sound ORDER BY CASE WHEN gaps = '[]' THEN 0 ELSE 1 END, created_at DESC, id DESC
           LIMIT 1),
         failed AS (SELECT * FROM last WHERE state = 'failed')
       SELECT (SELECT count(*) FROM sound) AS points,
         (SELECT count(*) FROM here WHERE state = 'damaged') AS damaged,
         (SELECT max(created_at) FROM sound) AS newest_at, (SELECT min(created_at) FROM sound) AS oldest_at,
         (SELECT max(verified_at) FROM sound) AS verified_at,
         (SELECT max(drilled_at) FROM here) AS drilled_at,
         (SELECT created_at FROM failed) AS failed_at, (SELECT reason FROM failed) AS failed_reason,
         (SELECT point_id FROM newest) AS newest_id, (SELECT gaps FROM newest) AS newest_gaps,
         (SELECT point_id FROM latest) AS latest_id, (SELECT created_at FROM latest) AS latest_at,
         (SELECT gaps FROM latest) AS latest_gaps`,
      target,
    );
    return row ?? NONE;
  }
}
