/** SQL of job runs. */
import type { Awaitable, Reads, Statement } from './metadata.ts';

export interface JobRunRow {
  readonly started_at: number;
  readonly finished_at: number | null;
  readonly state: string;
  readonly cursor: string | null;
}

export interface JobRunValues {
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly state: unknown;
  readonly cursor: string | null;
}

export class JobRunsStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(job: string): Awaitable<JobRunRow | undefined> {
    return this.#reads.get('SELECT started_at, finished_at, state, cursor FROM job_runs WHERE job = ?', job);
  }

  put(job: string, run: JobRunValues): Statement {
    return {
      sql: `INSERT INTO job_runs (job, started_at, finished_at, state, cursor) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (job) DO UPDATE SET started_at = excluded.started_at, finished_at = excluded.finished_at,
            state = excluded.state, cursor = excluded.cursor`,
      params: [job, run.startedAt, run.finishedAt, JSON.stringify(run.state), run.cursor],
    };
  }
}
