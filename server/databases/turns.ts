/** Who may work on a database, and what is ended when it is deleted. */
import { AppError } from '../platform/errors.ts';
import { KeyedMutex } from '../platform/keyed-mutex.ts';

export class DatabaseTurns {
  readonly #locks = new KeyedMutex();
  /** Being worked on, or waited for, each with how often. */
  readonly #busy = new Map<string, number>();
  /** Long work, by the databases that it needs. */
  readonly #long = new Map<string, Set<AbortController>>();
  readonly #running = new Set<Promise<unknown>>();
  #isClosing = false;

  get isClosing(): boolean {
    return this.#isClosing;
  }

  isBusy(databaseId: string): boolean {
    return this.#busy.has(databaseId);
  }

  /** Runs `work` while nobody else changes this database or its engine's side. */
  async alone<T>(databaseId: string, work: () => Promise<T>): Promise<T> {
    this.#busy.set(databaseId, (this.#busy.get(databaseId) ?? 0) + 1);
    const run = this.#locks.run(databaseId, work);
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
      const left = (this.#busy.get(databaseId) ?? 1) - 1;
      if (left > 0) this.#busy.set(databaseId, left);
      else this.#busy.delete(databaseId);
    }
  }

  /**
   * Runs long work that needs these databases. Its signal aborts with `caller` (who left), when one of them
   * is deleted, and when Cloudlet stops; the work then rejects with the reason, whatever it throws itself.
   */
  async during<T>(
    databaseIds: readonly string[],
    work: (signal: AbortSignal) => Promise<T>,
    caller?: AbortSignal,
  ): Promise<T> {
    if (this.#isClosing) throw shuttingDown();
    const controller = new AbortController();
    const signal = caller === undefined ? controller.signal : AbortSignal.any([controller.signal, caller]);
    for (const id of databaseIds) this.#long.set(id, (this.#long.get(id) ?? new Set()).add(controller));
    try {
      return await work(signal);
    } catch (error) {
      throw controller.signal.aborted ? controller.signal.reason : error;
    } finally {
      for (const id of databaseIds) this.#forget(id, controller);
    }
  }

  /** Ends the long work that needs this database. Does not wait for it. */
  interrupt(databaseId: string): void {
    const reason = new AppError('database_not_ready', 'The database was deleted meanwhile');
    for (const controller of this.#long.get(databaseId) ?? []) controller.abort(reason);
  }

  /** Ends all long work and begins no more; resolves when nobody works on a database. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const controllers of this.#long.values()) {
      for (const controller of controllers) controller.abort(shuttingDown());
    }
    await this.idle();
  }

  /** Resolves when nobody works on a database. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #forget(databaseId: string, controller: AbortController): void {
    const controllers = this.#long.get(databaseId);
    controllers?.delete(controller);
    if (controllers?.size === 0) this.#long.delete(databaseId);
  }
}

function shuttingDown(): AppError {
  return new AppError('shutting_down', 'Cloudlet is being stopped');
}
