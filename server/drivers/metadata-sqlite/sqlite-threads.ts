/** Long reading beside the event loop: a thread for each call, with a connection that cannot write. */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { ReadingThreads, Reads } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';

/** What a thread is given. */
export interface ThreadInput {
  readonly directory: string;
  readonly module: string;
  readonly input: unknown;
}

/** More would take from those who are served meanwhile. */
const MAX_THREADS = 2;

export class SqliteThreads implements ReadingThreads {
  readonly threads = Math.min(MAX_THREADS, availableParallelism());
  readonly #directory: string;
  readonly #running = new Set<Worker>();
  #isClosed = false;

  /** `directory`: of the database, which is open for writing already. */
  constructor(deps: { readonly directory: string }) {
    this.#directory = deps.directory;
  }

  run<Run extends (reads: Reads, input: never) => unknown>(
    module: URL,
    input: Parameters<Run>[1],
  ): Promise<Awaited<ReturnType<Run>>> {
    if (this.#isClosed) return Promise.reject(ended());
    const workerData: ThreadInput = { directory: this.#directory, module: module.href, input };
    const url = new URL('./reading-thread.ts', import.meta.url);
    const worker = new Worker(url, { workerData, execArgv: [] });
    this.#running.add(worker);
    return new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', () => {
        this.#running.delete(worker);
        reject(ended());
      });
    });
  }

  /** Ends what runs: it is rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#running].map((worker) => worker.terminate()));
  }
}

function ended(): AppError {
  return new AppError('shutting_down', 'The metadata store is closed');
}
