/** State of long jobs that survives restarts. */
import type { Metadata } from './metadata.ts';

export interface JobRun<State> {
  /** ms since 1970. */
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly state: State;
  /** Position at which to continue. */
  readonly cursor: string | null;
}

interface JobRunRow {
  readonly started_at: number;
  readonly finished_at: number | null;
  readonly state: string;
  readonly cursor: string | null;
}

export class JobRuns {
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  async read<State>(job: string): Promise<JobRun<State> | undefined> {
    const sql = 'SELECT started_at, finished_at, state, cursor FROM job_runs WHERE job = ?';
    const row = await this.#metadata.get<JobRunRow>(sql, job);
    if (!row) return undefined;
    return {
      startedAt: row.started_at,
      finishedAt: row.finished_at,
      state: JSON.parse(row.state) as State,
      cursor: row.cursor,
    };
  }

  async write<State>(job: string, run: JobRun<State>): Promise<void> {
    const sql = `INSERT INTO job_runs (job, started_at, finished_at, state, cursor) VALUES (?, ?, ?, ?, ?)
                 ON CONFLICT (job) DO UPDATE SET started_at = excluded.started_at,
                 finished_at = excluded.finished_at, state = excluded.state, cursor = excluded.cursor`;
    const params = [job, run.startedAt, run.finishedAt, JSON.stringify(run.state), run.cursor];
    await this.#metadata.commit([{ sql, params }]);
  }
}
