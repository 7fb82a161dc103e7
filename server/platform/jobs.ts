/** Periodic jobs. One run of a job at a time; a failure is logged and the next run tries again. */
import type { Logger } from 'pino';

export interface Job {
  readonly name: string;
  /** Interval; the first run comes after one. */
  readonly everyMs: number;
  /** Whether each node runs it, or one node of a cluster. Today a cloud is one node. */
  readonly per: 'node' | 'cluster';
  readonly run: () => Promise<unknown>;
}

export class Jobs {
  readonly #log: Logger;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #running = new Map<string, Promise<void>>();

  constructor(log: Logger) {
    this.#log = log;
  }

  start({ name, everyMs, run }: Job): void {
    this.#timers.push(setInterval(() => this.#run(name, run), everyMs).unref());
  }

  #run(name: string, work: () => Promise<unknown>): void {
    if (this.#running.has(name)) return;
    const run = work()
      .catch((error: unknown) => this.#log.error({ job: name, err: error }, 'a job failed'))
      .then(() => void this.#running.delete(name));
    this.#running.set(name, run);
  }

  /** Starts no further runs; resolves when the current ones have ended. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#running.values());
  }
}
