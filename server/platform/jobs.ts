/** Work that repeats. One run of a job at a time; a failure is logged and the next run tries again. */
import type { Logger } from 'pino';

export class Jobs {
  readonly #log: Logger;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #running = new Map<string, Promise<void>>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Runs `work` every `ms`, the first time after `ms`. */
  every(name: string, ms: number, work: () => Promise<unknown>): void {
    this.#timers.push(setInterval(() => this.#run(name, work), ms).unref());
  }

  #run(name: string, work: () => Promise<unknown>): void {
    if (this.#running.has(name)) return;
    const run = work()
      .catch((error: unknown) => this.#log.error({ job: name, err: error }, 'a job failed'))
      .then(() => void this.#running.delete(name));
    this.#running.set(name, run);
  }

  /** No further runs; resolves when those under way have ended. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#running.values());
  }
}
