/** SQL of the schedule of recovery points and its progress. */
import type { Reads, Statement } from '../../metadata/metadata.ts';
import type { Schedule } from './schedule.ts';

const SCHEDULE = 'recovery_schedule';
const PROGRESS = 'recovery_schedule_progress';

/** Times are ms since 1970. */
export interface Progress {
  /** The next point is due then; null: not known yet. */
  readonly nextAt: number | null;
  /** The point being created; null: none. */
  readonly pointId: string | null;
  /** The time of the schedule that `pointId`, or the next attempt, is for. */
  readonly dueAt: number | null;
  /** Failed attempts since the last success. */
  readonly failures: number;
  readonly failedAt: number | null;
  readonly failedReason: string | null;
  /** Why expired points were not deleted; null: they were. */
  readonly retentionFailure: string | null;
  /** The newest scheduled point. */
  readonly lastPointId: string | null;
  readonly lastAt: number | null;
}

export const NO_PROGRESS: Progress = {
  nextAt: null,
  pointId: null,
  dueAt: null,
  failures: 0,
  failedAt: null,
  failedReason: null,
  retentionFailure: null,
  lastPointId: null,
  lastAt: null,
};

export class ScheduleStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** undefined: no schedule was set. */
  schedule(): Promise<Schedule | undefined> {
    return this.#read<Schedule>(SCHEDULE);
  }

  async progress(): Promise<Progress> {
    return { ...NO_PROGRESS, ...(await this.#read<Progress>(PROGRESS)) };
  }

  setSchedule(schedule: Schedule): Statement {
    return write(SCHEDULE, schedule);
  }

  setProgress(progress: Progress): Statement {
    return write(PROGRESS, progress);
  }

  async #read<T>(name: string): Promise<T | undefined> {
    const sql = 'SELECT value FROM settings WHERE name = ?';
    const row = await this.#reads.get<{ value: string }>(sql, name);
    return row && (JSON.parse(row.value) as T);
  }
}

function write(name: string, value: unknown): Statement {
  const sql = `INSERT INTO settings (name, value) VALUES (?, ?)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
  return { sql, params: [name, JSON.stringify(value)] };
}
