/** Has commits of a file in WAL mode on the disk before anyone hears of them, many with one fdatasync. */
import { type FileHandle, open } from 'node:fs/promises';
import type { DatabaseSync, StatementSync } from 'node:sqlite';

export class DurableLog {
  readonly #path: string;
  readonly #version: StatementSync;
  #log: Promise<FileHandle> | null = null;
  /** The version of the last state on the disk. What a child before this one left may not be there yet. */
  #durable: unknown = null;
  /** The version of the state that will be there when what runs has ended. */
  #syncing: unknown = null;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  /**
   * `watcher`: a connection to the file at `path` that nothing is ever written through, and that stays open
   * longer than this one is used.
   */
  constructor(path: string, watcher: DatabaseSync) {
    this.#path = `${path}-wal`;
    // Changes with every commit of another connection.
    this.#version = watcher.prepare('PRAGMA data_version');
  }

  #now(): unknown {
    return this.#version.get()?.data_version;
  }

  /**
   * Resolves when all that was committed up to now, by whomever, is on the disk; null: it is. Rejects when
   * the disk fails: then nobody can say what is there, and this process must not go on.
   */
  flush(): Promise<void> | null {
    const now = this.#now();
    if (now === this.#durable) return null;
    if (now === this.#syncing) return this.#running;
    // The one that runs may have begun before the commit.
    this.#next ??= this.#running === null ? this.#sync() : this.#running.then(() => this.#sync());
    return this.#next;
  }

  #sync(): Promise<void> {
    const sync = this.#write().finally(() => {
      if (this.#running === sync) this.#running = null;
    });
    this.#running = sync;
    return sync;
  }

  async #write(): Promise<void> {
    // More may be committed in this turn, and goes with it.
    await new Promise(setImmediate);
    this.#next = null;
    const version = this.#now();
    this.#syncing = version;
    this.#log ??= open(this.#path, 'r');
    await (await this.#log).datasync();
    this.#durable = version;
    this.#syncing = null;
  }
}
