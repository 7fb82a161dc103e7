/** What long jobs remember of themselves across restarts. */
import type { JobRunsStore } from './job-runs-store.ts';
import type { Metadata } from './metadata.ts';

export interface JobRun<State> {
  /** ms since 1970. */
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly state: State;
  /** Where to go on. */
  readonly cursor: string | null;
}

export class JobRuns {
  readonly #metadata: Metadata;
  readonly #store: JobRunsStore;

  constructor(deps: { metadata: Metadata; store: JobRunsStore }) {
    this.#metadata = deps.metadata;
    this.#store = deps.store;
  }

  async read<State>(job: string): Promise<JobRun<State> | undefined> {
    const row = await this.#store.find(job);
    if (!row) return undefined;
    return {
      startedAt: row.started_at,
      finishedAt: row.finished_at,
      state: JSON.parse(row.state) as State,
      cursor: row.cursor,
    };
  }

  async write<State>(job: string, run: JobRun<State>): Promise<void> {
    await this.#metadata.commit([this.#store.put(job, run)]);
  }
}
