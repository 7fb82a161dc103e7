/** Clients that wait at the end of a capped collection, each until its database has executed a command. */

/** Minimum time between two polls of one client, ms. */
const REST_MS = 20;

export class TailWaits {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Resolves when that database has executed a command, and after `ms` at the latest. */
  async wait(database: string, ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(database) ?? new Set();
    this.#waiting.set(database, waiting.add(resolve));
    const over = setTimeout(resolve, ms).unref();
    await promise;
    clearTimeout(over);
    waiting.delete(resolve);
    if (waiting.size === 0) this.#waiting.delete(database);
    await new Promise((rested) => setTimeout(rested, Math.min(REST_MS, ms)).unref());
  }

  wake(database: string): void {
    for (const resolve of this.#waiting.get(database) ?? []) resolve();
  }
}
