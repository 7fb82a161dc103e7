/**
 * Reads that must be consistent with each other. A snapshot keeps old rows alive (SQLite's log
 * grows, PostgreSQL cannot vacuum), so only a few are open at once, and each only briefly. Both
 * engines use it.
 */
import { Semaphore } from '../platform/concurrency.ts';
import { storeBusy } from './commit-queue.ts';
import type { Awaitable, Reads, SqlValue } from './metadata.ts';

export interface OpenSnapshot {
  readonly reads: Reads;
  /** Called once, whether it was used or not. */
  end(): Awaitable<void>;
}

const AT_ONCE = 2;
const WAIT_MS = 10_000;
const LIMIT_MS = 30_000;

export class ReadSnapshots {
  readonly #open: () => Awaitable<OpenSnapshot>;
  readonly #limitMs: number;
  readonly #slots = new Semaphore(AT_ONCE);

  constructor(open: () => Awaitable<OpenSnapshot>, limitMs = LIMIT_MS) {
    this.#open = open;
    this.#limitMs = limitMs;
  }

  /** See Metadata.snapshot(). */
  async run<T>(work: (reads: Reads) => Promise<T>): Promise<T> {
    const waiting = new AbortController();
    const timer = setTimeout(() => waiting.abort(storeBusy('too many snapshots are open')), WAIT_MS);
    try {
      return await this.#slots.run(waiting.signal, () => {
        clearTimeout(timer);
        return this.#within(work);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #within<T>(work: (reads: Reads) => Promise<T>): Promise<T> {
    const { reads, end } = await this.#open();
    let ended: Awaitable<void> | null = null;
    const close = () => {
      ended ??= end() ?? Promise.resolve();
      return ended;
    };
    const timer = setTimeout(() => {
      // The next read reports that it ended; a lost connection does not matter here.
      void (async () => close())().catch(() => {});
    }, this.#limitMs);
    const assertOpen = () => {
      if (ended !== null) throw storeBusy('a snapshot was open for too long');
    };
    try {
      return await work({
        get: <R>(sql: string, ...params: SqlValue[]) => {
          assertOpen();
          return reads.get<R>(sql, ...params);
        },
        all: <R>(sql: string, ...params: SqlValue[]) => {
          assertOpen();
          return reads.all<R>(sql, ...params);
        },
      });
    } finally {
      clearTimeout(timer);
      await close();
    }
  }
}
