/**
 * Group commit: makes commits of a file in WAL mode durable before their answers are sent, many with one
 * fdatasync.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { DatabaseSync, StatementSync } from 'node:sqlite';

export class DurableLog {
  readonly #path: string;
  readonly #version: StatementSync;
  #log: Promise<FileHandle> | null = null;
  /** Version of the last durable state. Commits of an earlier process may not be durable. */
  #durable: unknown = null;
  /** Version of the state that the running sync makes durable. */
  #syncing: unknown = null;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  /**
   * `watcher`: a connection to the file at `path` that never writes, and that stays open longer than this
   * object.
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
   * Resolves when all commits so far, by any connection, are durable; null: they are. Rejects when the disk
   * fails: the state is then unknown, and this process must not continue.
   */
  flush(): Promise<void> | null {
    const now = this.#now();
    if (now === this.#durable) return null;
    if (now === this.#syncing) return this.#running;
    // The running sync may have begun before the commit.
    this.#next ??= this.#running === null ? this.#sync() : this.#running.then(() => this.#sync());
    return this.#next;
  }

  /** Do not use afterwards. Never rejects. */
  async close(): Promise<void> {
    await this.#running?.catch(() => {});
    const log = await this.#log?.catch(() => null);
    await log?.close();
  }

  #sync(): Promise<void> {
    const sync = this.#write().finally(() => {
      if (this.#running === sync) this.#running = null;
    });
    this.#running = sync;
    return sync;
  }

  async #write(): Promise<void> {
    // Includes further commits of this event loop turn.
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
